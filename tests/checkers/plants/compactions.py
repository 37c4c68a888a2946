"""Compacted logs: what may be gone from them, what may not, and what may not be there any more."""

from __future__ import annotations

from harness.model import Kind, Source
from tests.checkers.plants.changes import Change, each_of, nothing, replicas_of
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant

RUN = "sim-compaction"
# Of the run's keys: the only record of k0 that is left, and one of k1 that has a newer one. A, the leader, was
# compacted past that one, B and C up to it.
NEWEST, OLDER = 17, 18
# A run in which the tombstone at 1 deletes the record at 0. C, which was away, has the one and not the other.
TOMBSTONES = "sim-tombstones"
DELETED, TOMBSTONE = 0, 1


def _without(offset: int, *nodes: str) -> Change:
    """Return a change that removes a batch of one record from final logs, of all replicas if none is named."""

    def change(edit: Edit) -> None:
        for node in nodes or replicas_of(edit):
            if any(batch["value"]["base"] == offset for batch in edit.batches(node)):
                edit.drop_batch(node, offset)

    return change


def _back(node: str, offset: int, of: str) -> Change:
    """Return a change that puts another node's record into a node's final log, before those behind it."""

    def change(edit: Edit) -> None:
        later = [dict(batch["value"]) for batch in edit.batches(node) if batch["value"]["base"] > offset]
        edit.drop_batch(node, offset + 1, cut=True)
        source = edit.batch_at(of, offset)
        for value in (source["value"], *later):
            edit.put_batch(node, source, **value)

    return change


def _delay(ms: int) -> Change:
    """Return a change in which tombstones were to stay for so long."""

    def change(edit: Edit) -> None:
        edit.change(edit.lines[0], delete_retention_ms=ms)

    return change


def _by_files(edit: Edit) -> None:
    """Let brokers have followed the older rule, by which a tombstone may go at once."""
    edit.change(edit.lines[0], rules={**edit.lines[0]["value"]["rules"], "tombstone_horizon": "no"})


def _upto(node: str, offset: int) -> Change:
    """Return a change in which a node says that it compacted its log further than it did."""

    def change(edit: Edit) -> None:
        edit.change(edit.find(Source.BROKER, "cleaned", node, nth=-1), upto=offset)

    return change


def _unsaid(edit: Edit) -> None:
    """Let no broker say that it compacted anything."""
    edit.drop(*edit.all(Source.BROKER, "cleaned"))


COMPACTIONS = [
    plant("compaction-lawful", RUN)(nothing),
    plant("compaction-took-the-newest", RUN, Kind.CHECKPOINT, Kind.HOLE, Kind.LOST)(_without(NEWEST)),
    plant("compaction-took-the-newest-lawful", RUN)(_without(OLDER)),
    plant("compaction-took-the-newest-of-one", RUN, Kind.CHECKPOINT, Kind.HOLE)(_without(NEWEST, "B")),
    plant("compaction-took-the-newest-of-one-lawful", RUN)(_without(OLDER, "B")),
    plant("compaction-took-the-newest-of-the-leader", RUN, Kind.CHECKPOINT, Kind.HOLE, Kind.LOST)(
        _without(NEWEST, "A")
    ),
    plant("compaction-undone", RUN, Kind.NOT_COMPACTED)(_back("A", OLDER, "B")),
    plant("compaction-left-the-older", RUN, Kind.NOT_COMPACTED)(_upto("B", 20)),
    plant("compaction-left-the-older-lawful", RUN)(each_of(_without(OLDER, "B"), _upto("B", 20))),
    plant("compaction-left-the-older-of-two", RUN, Kind.NOT_COMPACTED)(each_of(_upto("B", 20), _upto("C", 20))),
    plant("compaction-unsaid", RUN, Kind.CHECKPOINT, Kind.HOLE, Kind.LOST, Kind.NOT_REPLICATED, Kind.UNCHECKED)(
        _unsaid
    ),
    plant("tombstones-lawful", TOMBSTONES)(nothing),
    plant("tombstones-resurrected", TOMBSTONES, Kind.RESURRECTED)(_back("A", DELETED, "C")),
    plant("tombstones-resurrected-on-a-follower", TOMBSTONES, Kind.RESURRECTED)(_back("B", DELETED, "C")),
    plant("tombstones-resurrected-on-two", TOMBSTONES, Kind.RESURRECTED)(
        each_of(_back("A", DELETED, "C"), _back("B", DELETED, "C"))
    ),
    plant(
        "tombstones-gone-early",
        TOMBSTONES,
        *(Kind.CHECKPOINT, Kind.HOLE, Kind.LOST, Kind.NOT_REPLICATED, Kind.RESURRECTED, Kind.UNCHECKED),
    )(_delay(100_000)),
    plant("tombstones-gone-early-lawful", TOMBSTONES)(_delay(10)),
    plant("tombstones-resurrected-on-who-was-back", TOMBSTONES, Kind.RESURRECTED)(
        each_of(_by_files, _delay(100_000))
    ),
    plant("tombstones-resurrected-on-who-was-back-lawful", TOMBSTONES)(_by_files),
]
