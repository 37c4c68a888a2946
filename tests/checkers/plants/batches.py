"""Batches and snapshots that claim what the log does not hold."""

from __future__ import annotations

from typing import Final

from harness.model import Kind, Source
from tests.checkers.plants.changes import Change, delete_before, leader_of, outcome, replicas_of, snapshots
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant

INCOMPLETE: Final = Kind.INCOMPLETE


def _without(edit: Edit, offset: int) -> None:
    """Remove one record from its batch on every replica; the batch claims its offset still."""
    for node in replicas_of(edit):
        batch = edit.batch_at(node, offset)
        records = [record for record in batch["value"]["records"] if record[0] != offset]
        edit.change(batch, records=records)


@plant("record-missing-in-a-batch", "kafka-kip101-1", INCOMPLETE, Kind.LOST)
def missing_in_batch(edit: Edit) -> None:
    _without(edit, 2)


@plant("record-missing-at-a-batchs-end", "sim-unpromised", INCOMPLETE, Kind.UNPROMISED, Kind.WRONG_READ)
def missing_at_end(edit: Edit) -> None:
    """m5 was sent with acks=1, and its last record is not there."""
    outcome(edit, "m5", "info", "no answer")
    _without(edit, 7)


@plant("records-missing-in-a-batch-of-none", "local-kip101-1", INCOMPLETE, Kind.WRONG_READ)
def batch_of_none(edit: Edit) -> None:
    outcome(edit, "m3", "info", "no answer")
    _without(edit, 4)


@plant("batch-that-claims-too-many", "sim-clean", INCOMPLETE)
def claims_too_many(edit: Edit) -> None:
    """The last batch claims a million records, and the logs end where they would end."""
    for node in replicas_of(edit):
        edit.change(edit.batch_at(node, 3), last=1_000_003)
        edit.change(edit.snapshot(node), log_end_offset=1_000_004)


@plant("record-beyond-its-batch", "local-kip101-1", INCOMPLETE, Kind.DISORDER, Kind.WRONG_READ)
def beyond_batch(edit: Edit) -> None:
    outcome(edit, "m3", "info", "no answer")
    for node in replicas_of(edit):
        edit.batch_at(node, 4)["value"]["records"][0][0] = 9


@plant("end-beyond-the-batches", "local-kip101-1", INCOMPLETE)
def end_beyond(edit: Edit) -> None:
    for line in snapshots(edit):
        line["value"]["log_end_offset"] += 2


@plant("end-beyond-the-batches-kafka", "kafka-kip101-2", INCOMPLETE, Kind.PERMITTED)
def end_beyond_kafka(edit: Edit) -> None:
    for line in snapshots(edit):
        line["value"]["log_end_offset"] += 1


@plant("end-of-an-empty-log", "sim-clean", INCOMPLETE, Kind.LOST)
def end_of_empty(edit: Edit) -> None:
    """Every batch is gone, and the logs claim their end still."""
    for node in replicas_of(edit):
        end = edit.snapshot(node)["value"]["log_end_offset"]
        edit.drop_batch(node, 0, cut=True)
        edit.change(edit.snapshot(node), log_end_offset=end)


@plant("end-below-the-batches", "sim-clean-8", INCOMPLETE, Kind.WRONG_HIGH_WATERMARK)
def end_below(edit: Edit) -> None:
    for line in snapshots(edit):
        line["value"]["log_end_offset"] -= 1


@plant("start-beyond-the-end", "local-kip101-1", INCOMPLETE, Kind.DELETED_EARLY)
def start_beyond(edit: Edit) -> None:
    for line in snapshots(edit):
        line["value"] |= {"log_start_offset": 9}


@plant("checkpointed-mark-beyond-the-end", "local-kip101-1", INCOMPLETE)
def mark_beyond(edit: Edit) -> None:
    edit.snapshot("A")["value"]["high_watermark"] = 7


@plant("checkpointed-mark-beyond-the-end-kafka", "kafka-kip101-1", INCOMPLETE)
def mark_beyond_kafka(edit: Edit) -> None:
    edit.snapshot("B")["value"]["high_watermark"] = 9


@plant("checkpointed-mark-beyond-the-end-sim", "sim-clean", INCOMPLETE)
def mark_beyond_sim(edit: Edit) -> None:
    edit.snapshot("C")["value"]["high_watermark"] = 5


@plant("checkpointed-mark-at-the-end-lawful", "local-kip101-1")
def mark_at_end(edit: Edit) -> None:
    """Both replicas write their last high watermark before the end, also B, which is told of it late."""
    last = edit.find(Source.BROKER, "high-watermark", "A", nth=-1)
    edit.event(last, "B", "high-watermark", to=last["value"]["to"])
    for line in snapshots(edit):
        line["value"]["high_watermark"] = line["value"]["log_end_offset"]


@plant("batch-before-its-segment", "local-kip101-2", INCOMPLETE, Kind.PERMITTED)
def before_segment(edit: Edit) -> None:
    for node in replicas_of(edit):
        edit.change(edit.batch_at(node, 2), segment="00000000000000000003.log")


@plant("segment-of-its-own-lawful", "local-kip101-2", Kind.PERMITTED)
def own_segment(edit: Edit) -> None:
    for node in replicas_of(edit):
        for offset in (3, 4):
            edit.change(edit.batch_at(node, offset), segment="00000000000000000003.log")


@plant("start-inside-a-batch-lawful", "local-kip101-1-hw", Kind.LOST, Kind.NOT_REPLICATED)
def start_inside(edit: Edit) -> None:
    """DeleteRecords moved the log's start; the segment keeps the records below it."""
    delete_before(edit, 2)
    for line in snapshots(edit):
        line["value"]["log_start_offset"] = 2


# --- a message format that has no epochs -------------------------------------------------------------------------
def _format(magic: int, *offsets: int, epoch: int | None = None) -> Change:
    """Return a change in which all replicas have these batches in another message format, and perhaps epoch."""

    def change(edit: Edit) -> None:
        for node in replicas_of(edit):
            for offset in offsets:
                batch = edit.batch_at(node, offset)
                edit.change(batch, magic=magic, epoch=batch["value"]["epoch"] if epoch is None else epoch)

    return change


FORMATS = [
    plant("epoch-in-format-1", "local-kip101-1", Kind.INCOMPLETE)(_format(1, 3)),
    plant("epoch-in-format-1-lawful", "local-kip101-1")(_format(1, 3, epoch=-1)),
    plant("epoch-in-format-1-kafka", "kafka-kip101-1", Kind.INCOMPLETE)(_format(1, 4)),
    plant("epoch-in-format-1-kafka-lawful", "kafka-kip101-1")(_format(1, 4, epoch=-1)),
    plant("epoch-in-format-0-sim", "sim-clean-8", Kind.INCOMPLETE)(_format(0, 5)),
    plant("epoch-in-format-0-sim-lawful", "sim-clean-8")(_format(0, 5, epoch=-1)),
]


# --- lawful twins ------------------------------------------------------------------------------------------------
def _two_batches(offset: int) -> Change:
    """Return a change in which the batch before the offset ends there, and the rest is a batch of its own."""

    def change(edit: Edit) -> None:
        for node in replicas_of(edit):
            batch = edit.batch_at(node, offset)
            records, last = batch["value"]["records"], batch["value"]["last"]
            second = edit.again(batch, base=offset, last=last, records=[r for r in records if r[0] >= offset])
            assert second["process"] == node
            edit.change(batch, last=offset - 1, records=[r for r in records if r[0] < offset])
            snapshot = edit.snapshot(node)
            edit.change(snapshot, batches=len(edit.batches(node)))

    return change


def _emptied(edit: Edit) -> None:
    """Let a client delete every record: the logs begin where they end, and no batch is left."""
    delete_before(edit, edit.snapshot(replicas_of(edit)[0])["value"]["log_end_offset"])
    for node in replicas_of(edit):
        end = edit.snapshot(node)["value"]["log_end_offset"]
        edit.drop_batch(node, 0, cut=True)
        edit.change(edit.snapshot(node), log_end_offset=end, log_start_offset=end)


def _mark_at_end(edit: Edit) -> None:
    """Let the leader's checkpoint be as high as it may be: its log's end, which its high watermark has reached."""
    leader = edit.snapshot(leader_of(edit))["value"]
    leader["high_watermark"] = leader["log_end_offset"]


TWINS = [
    plant("record-missing-in-a-batch-lawful", "kafka-kip101-1")(_two_batches(2)),
    plant("record-missing-at-a-batchs-end-lawful", "sim-unpromised", Kind.UNPROMISED)(_two_batches(7)),
    plant("record-missing-in-a-batch-local", "local-kip101-1", Kind.INCOMPLETE, Kind.LOST)(
        lambda edit: _without(edit, 1)
    ),
    plant("record-missing-in-a-batch-local-lawful", "local-kip101-1")(_two_batches(1)),
    plant("end-beyond-the-batches-lawful", "local-kip101-1")(_emptied),
    plant("end-beyond-the-batches-kafka-lawful", "kafka-kip101-2")(_emptied),
    plant("end-of-an-empty-log-lawful", "sim-clean")(_emptied),
    plant("checkpointed-mark-beyond-the-end-lawful", "local-kip101-1")(_mark_at_end),
    plant("checkpointed-mark-beyond-the-end-kafka-lawful", "kafka-kip101-1")(_mark_at_end),
    plant("checkpointed-mark-beyond-the-end-sim-lawful", "sim-clean")(_mark_at_end),
]
