"""What consumers are shown while things break: records that are gone, uncommitted, skipped or shown again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from harness.model import Kind, Source
from tests.checkers.plants.changes import (
    BROKER,
    Change,
    acked,
    each_of,
    last_read,
    leader_of,
    outcome,
    resends,
    with_acks,
)
from tests.checkers.plants.edit import Edit, Line
from tests.checkers.plants.plant import plant
from tests.checkers.polling import poll, poll_refused

READ_LOST, DIRTY = Kind.READ_LOST, Kind.READ_UNCOMMITTED
SKIP, BACK, DIFFER = Kind.POLL_SKIP, Kind.NONMONOTONIC_POLL, Kind.INCONSISTENT_OFFSETS
HIGH_WATERMARK: Final = Kind.WRONG_HIGH_WATERMARK
# What is found in local-kip101-1-hw as it is.
_HW: Final = (Kind.LOST, Kind.NOT_REPLICATED)


def final(edit: Edit) -> list[list[Any]]:
    """Return the records of the leader's final log."""
    batches = edit.batches(leader_of(edit))
    return [[offset, value] for batch in batches for offset, _, value in batch["value"]["records"]]


def at_end(edit: Edit, records: Sequence[Sequence[Any]] | None = None, **value: Any) -> Line:
    """Insert a poll of the last leader after the last read; of all records of its log, if none are given."""
    everything = final(edit)
    shown = everything if records is None else records
    high = value.pop("high_watermark", len(everything))
    return poll(edit, value.pop("after", last_read(edit)), leader_of(edit), shown, high, **value)


def all_at_end(edit: Edit) -> None:
    """A consumer is shown the leader's log."""
    at_end(edit)


# --- records that were read and are gone ---------------------------------------------------------------------
def _unsaid(name: str) -> Change:
    """Return a change in which the produces of a group have no answer: they may have been appended."""
    return lambda edit: outcome(edit, name, "info", "no answer")


def shown(name: str, node: str, high_watermark: int, *, position: int) -> Change:
    """Return a change in which a consumer is shown a group of records after the last answer to their produces."""

    def change(edit: Edit) -> None:
        answers = [line for line in edit.produces(name) if line["type"] != "invoke"]
        records = [[position + at, line["value"]["value"]] for at, line in enumerate(answers)]
        poll(edit, answers[-1], node, records, high_watermark)

    return change


def _kept_alive(edit: Edit) -> None:
    """Let nobody lose power: the process of each node ends, and keeps what it wrote."""
    for line in edit.all(Source.NEMESIS, "power-loss"):
        line["f"], line["value"]["effect"] = "kill", "down"


LOST = [
    # Nobody was told of m2, and the leader showed it; then its members are killed, and no power is lost.
    plant("read-and-gone-kafka", "kafka-kip101-2", READ_LOST, DIFFER)(
        each_of(_unsaid("m2"), shown("m2", "A", 3, position=1), _kept_alive)
    ),
    plant("read-and-gone-kafka-lawful", "kafka-kip101-2", Kind.PERMITTED)(
        each_of(_unsaid("m2"), shown("m2", "A", 3, position=1))
    ),
    # A client that does not tell whom it asked: whoever had the record may have shown it.
    plant("read-from-nobody-knows-whom-and-gone-lawful", "local-kip101-2", Kind.PERMITTED)(
        each_of(_unsaid("m2"), shown("m2", "", 3, position=1))
    ),
    plant(
        "read-from-nobody-knows-whom-and-gone",
        "local-kip101-2",
        Kind.COMMITTED_LOST,
        Kind.NOT_REPLICATED,
        DIFFER,
    )(each_of(_unsaid("m2"), shown("m2", "", 3, position=1), _kept_alive)),
    plant("read-and-gone-with-acks-1-kafka", "kafka-kip101-2", Kind.UNPROMISED, READ_LOST, DIFFER)(
        each_of(lambda edit: with_acks(edit, "m2", 1), shown("m2", "A", 3, position=1), _kept_alive)
    ),
    plant("read-and-gone-with-acks-1-kafka-lawful", "kafka-kip101-2", Kind.UNPROMISED, Kind.PERMITTED)(
        each_of(lambda edit: with_acks(edit, "m2", 1), shown("m2", "A", 3, position=1))
    ),
]


def _in_place_of(offset: int, value: str) -> Change:
    """Return a change in which a consumer is shown another sent record in place of one."""

    def change(edit: Edit) -> None:
        resends(edit)
        records = final(edit)
        records[offset] = [offset, value]
        at_end(edit, records)

    return change


def _as_it_stands(edit: Edit) -> None:
    """A consumer is shown the leader's log, of clients that send again."""
    resends(edit)
    at_end(edit)


LOST += [
    plant("read-another-than-the-log-has", "local-kip101-1", READ_LOST, DIFFER)(_in_place_of(3, "m1.0")),
    plant("read-another-than-the-log-has-lawful", "local-kip101-1")(_as_it_stands),
    plant("read-another-than-the-log-has-sim", "sim-clean-8", READ_LOST, DIFFER)(_in_place_of(2, "m1.0")),
    plant("read-another-than-the-log-has-sim-lawful", "sim-clean-8")(_as_it_stands),
]


# --- records that were not committed -------------------------------------------------------------------------
def _polled(after: Change, node: str, records: Sequence[Sequence[Any]], high_watermark: int) -> Change:
    """Return a change in which a consumer polls a node after a line; `after` finds the line."""
    return lambda edit: poll(edit, after(edit), node, records, high_watermark)


def _mark(node: str, to: int) -> Change:
    return lambda edit: edit.find(BROKER, "high-watermark", node, to=to)


def _written(node: str, base: int, role: str) -> Change:
    return lambda edit: edit.find(BROKER, "append", node, base=base, role=role)


def _of(name: str) -> Change:
    return lambda edit: acked(edit, name)


def _mark_too_early(edit: Edit) -> None:
    """The high watermark passes m1 before any follower has it, and a consumer is shown m1 then."""
    line = edit.find(BROKER, "high-watermark", to=2)
    edit.move(line, after=edit.find(BROKER, "append", line["process"], role="leader"))
    poll(edit, line, line["process"], [[0, "m1.0"], [1, "m1.1"]], 2)


def _mark_in_time(edit: Edit) -> None:
    line = edit.find(BROKER, "high-watermark", to=2)
    poll(edit, line, line["process"], [[0, "m1.0"], [1, "m1.1"]], 2)


M1: Final = [[0, "m1.0"], [1, "m1.1"], [2, "m1.2"]]
UNCOMMITTED = [
    plant("read-above-its-own-mark-kafka", "kafka-kip101-1", DIRTY)(_polled(_of("m1"), "B", M1, 2)),
    plant("read-above-its-own-mark-kafka-lawful", "kafka-kip101-1")(_polled(_of("m1"), "B", M1, 3)),
    plant("read-above-the-leaders-mark", "sim-clean-8", DIRTY, HIGH_WATERMARK)(
        _polled(_written("A", 2, "leader"), "A", [[2, "m2.0"]], 3)
    ),
    plant("read-above-the-leaders-mark-lawful", "sim-clean-8")(_polled(_mark("A", 3), "A", [[2, "m2.0"]], 3)),
    plant("read-what-was-never-committed", "sim-unpromised", DIRTY, HIGH_WATERMARK, Kind.UNPROMISED)(
        _polled(_of("m8"), "B", [[9, "m7.0"], [10, "m8.0"]], 11)
    ),
    plant("read-what-was-never-committed-lawful", "sim-unpromised", Kind.UNPROMISED)(
        _polled(_of("m8"), "B", [[9, "m7.0"]], 10)
    ),
    plant("read-from-a-follower", "sim-unpromised", DIRTY, Kind.UNPROMISED)(
        _polled(_written("C", 10, "follower"), "C", [[10, "m9.0"]], 11)
    ),
    plant("read-from-a-follower-lawful", "sim-unpromised", Kind.UNPROMISED)(
        _polled(_mark("C", 11), "C", [[10, "m9.0"]], 11)
    ),
    plant("read-before-a-member-copied-it", "sim-clean-8", DIRTY, HIGH_WATERMARK)(_mark_too_early),
    plant("read-before-a-member-copied-it-lawful", "sim-clean-8")(_mark_in_time),
]


# --- consumers that skip, or go back -------------------------------------------------------------------------
def _without_second(edit: Edit) -> None:
    """A poll's records lack the second."""
    records = final(edit)
    at_end(edit, [records[0], *records[2:]])


def _beginning_late(edit: Edit) -> None:
    """The first record that comes is not at the position that was asked for."""
    at_end(edit, final(edit)[1:], position=0)


def _jumping(*, sought: bool) -> Change:
    """Return a change in which the second poll begins one record later than the first one ended."""

    def change(edit: Edit) -> None:
        records = final(edit)
        first = at_end(edit, records[:1])
        at_end(edit, records[2:], after=first, sought=sought)

    return change


SKIPS = [
    plant("poll-skips", "local-kip101-1", SKIP)(_without_second),
    plant("poll-skips-lawful", "local-kip101-1")(all_at_end),
    plant("poll-skips-kafka", "kafka-kip101-1", SKIP)(_beginning_late),
    plant("poll-skips-kafka-lawful", "kafka-kip101-1")(all_at_end),
    plant("poll-skips-sim", "sim-clean", SKIP)(_jumping(sought=False)),
    plant("poll-skips-sim-lawful", "sim-clean")(_jumping(sought=True)),
]


def _again(*, sought: bool) -> Change:
    """Return a change in which the second poll begins at the last record of the first one."""

    def change(edit: Edit) -> None:
        records = final(edit)
        at_end(edit, records[-1:], after=at_end(edit, records), sought=sought)

    return change


def _fallen(edit: Edit) -> None:
    """A poll's records do not rise."""
    records = final(edit)
    at_end(edit, [records[1], records[0], *records[2:]], position=0)


def _uncut(edit: Edit) -> None:
    """A poll's records begin below its position, as the batch that holds it does."""
    at_end(edit, final(edit), position=1, sought=True)


BACKWARDS = [
    plant("poll-goes-back", "local-kip101-1", BACK)(_again(sought=False)),
    plant("poll-goes-back-lawful", "local-kip101-1")(_again(sought=True)),
    plant("poll-goes-back-kafka", "kafka-kip101-1", BACK)(_uncut),
    plant("poll-goes-back-kafka-lawful", "kafka-kip101-1")(all_at_end),
    plant("poll-goes-back-sim", "sim-clean", BACK)(_fallen),
    plant("poll-goes-back-sim-lawful", "sim-clean")(all_at_end),
]


def _refused(edit: Edit) -> None:
    """A poll fails, and the consumer reads on where it was."""
    records = final(edit)
    first = at_end(edit, records[:1])
    at_end(edit, records[1:], after=poll_refused(edit, first, leader_of(edit), 1))


REFUSED = plant("poll-refused-and-read-on-lawful", "kafka-kip101-1")(_refused)


# --- readers that differ -------------------------------------------------------------------------------------
def _two_readers(name: str, node: str, position: int) -> Change:
    """Return a change in which one consumer is shown what is lost, and another what stands there in the end."""

    def change(edit: Edit) -> None:
        records = [
            [line["value"]["offset"], line["value"]["value"]]
            for line in edit.produces(name)
            if line["type"] == "ok"
        ]
        high = position + len(records)
        poll(edit, acked(edit, name), node, records, high)
        at_end(edit, process="client-51")

    return change


DIFFERENT = [
    plant("readers-differ-kafka", "kafka-kip101-2", DIFFER, Kind.LOST)(
        each_of(_two_readers("m2", "A", 1), _kept_alive)
    ),
    plant("readers-differ-kafka-lawful", "kafka-kip101-2", Kind.PERMITTED)(_two_readers("m2", "A", 1)),
    plant("readers-differ", "local-kip101-2", DIFFER, READ_LOST, Kind.PERMITTED)(_in_place_of(3, "m3.0")),
    plant("readers-differ-lawful", "local-kip101-2", Kind.PERMITTED)(_two_readers("m2", "A", 1)),
    plant("readers-differ-sim", "sim-last-standing", DIFFER, READ_LOST, Kind.LAST_STANDING)(
        _in_place_of(0, "m1.1")
    ),
    plant("readers-differ-sim-lawful", "sim-last-standing", Kind.LAST_STANDING)(_two_readers("m1", "A", 0)),
]
