"""Logs that begin later, since retention or DeleteRecords removed their first records."""

from __future__ import annotations

from harness.model import Kind, Source
from tests.checkers.plants.changes import (
    Change,
    delete_before,
    each_of,
    follower_of,
    last_read,
    leader_of,
    replicas_of,
)
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant


# --- logs that begin later ---------------------------------------------------------------------------------------
def retained(edit: Edit) -> None:
    """Let a client delete offsets 0-2 of both replicas, with their epoch's start."""
    delete_before(edit, 3)
    for node in edit.lines[0]["value"]["replicas"]:
        snapshot = edit.snapshot(node)
        epochs = [[epoch, max(start, 3)] for epoch, start in snapshot["value"]["epochs"]]
        end = snapshot["value"]["log_end_offset"]
        edit.drop(edit.batch_at(node, 0))
        edit.change(snapshot, log_start_offset=3, epochs=epochs, batches=len(edit.batches(node)))
        edit.change(snapshot, log_end_offset=end)


@plant("retention-removed-records-lawful", "local-kip101-1")
def removed(edit: Edit) -> None:
    """The last read still asks for all records: it began before the retention."""
    retained(edit)


@plant("deleted-records-differ-lawful", "kafka-kip101-1")
def deleted_differ(edit: Edit) -> None:
    """DeleteRecords moved the logs' start; one replica still holds other bytes below it."""
    delete_before(edit, 1)
    for node in edit.lines[0]["value"]["replicas"]:
        snapshot = edit.snapshot(node)
        epochs = [[epoch, max(start, 1)] for epoch, start in snapshot["value"]["epochs"]]
        edit.change(snapshot, log_start_offset=1, epochs=epochs)
    records = last_read(edit)["value"]["records"]
    edit.change(last_read(edit), records=records[1:])
    batch = edit.batch_at(follower_of(edit), 0)
    batch["value"]["records"][0][1] = "0" * 16


@plant("records-at-the-start-differ", "kafka-kip101-1", Kind.DIVERGED, Kind.ALTERED)
def start_differs(edit: Edit) -> None:
    batch = edit.batch_at(follower_of(edit), 0)
    batch["value"]["records"][0][1] = "0" * 16


@plant("read-of-a-log-that-begins-later-lawful", "local-kip101-1")
def read_later(edit: Edit) -> None:
    """Retention removed the first batch everywhere, and the read begins behind it."""
    retained(edit)
    records = last_read(edit)["value"]["records"]
    edit.change(last_read(edit), records=[each for each in records if each[0] >= 3])


def _begins_at(start: int) -> Change:
    """Return a change in which DeleteRecords moved the start of every log; the segments keep what is below."""

    def change(edit: Edit) -> None:
        delete_before(edit, start)
        for node in replicas_of(edit):
            snapshot = edit.snapshot(node)
            epochs = [[epoch, max(first, start)] for epoch, first in snapshot["value"]["epochs"]]
            edit.change(snapshot, log_start_offset=start, epochs=epochs)

    return change


def _differs(edit: Edit) -> None:
    """Let one replica hold another record at the first offset."""
    edit.batch_at(follower_of(edit), 0)["value"]["records"][0][1] = "0" * 16


def _first_gone(edit: Edit) -> None:
    """Let the first batch of every log be gone, although no start has moved."""
    for node in replicas_of(edit):
        end = edit.snapshot(node)["value"]["log_end_offset"]
        edit.drop_batch(node, 0)
        edit.change(edit.snapshot(node), log_end_offset=end)


def _moved(edit: Edit, to: int, reason: str) -> None:
    """Let every replica report that the start of its log moved; its checkpoint of epochs follows."""
    read = edit.find(Source.CLIENT, "read", type="invoke", nth=-1)
    for node in replicas_of(edit):
        snapshot = edit.snapshot(node)
        epochs = [[epoch, max(first, to)] for epoch, first in snapshot["value"]["epochs"]]
        moved = edit.event(read, node, "log-start", **{"from": 0}, to=to, reason=reason)
        edit.move(read, after=moved)
        edit.event(moved, node, "checkpoint", what="epochs", content=epochs)
        edit.change(snapshot, log_start_offset=to, epochs=epochs)


@plant("deleted-by-nobody", "sim-clean-8", Kind.DELETED_EARLY)
def by_nobody(edit: Edit) -> None:
    _moved(edit, 1, "delete-records")


@plant("deleted-by-nobody-lawful", "sim-clean-8")
def by_somebody(edit: Edit) -> None:
    delete_before(edit, 1)
    _moved(edit, 1, "delete-records")


@plant("deleted-before-the-leader", "sim-clean-8", Kind.DELETED_EARLY)
def before_the_leader(edit: Edit) -> None:
    _moved(edit, 1, "leader")


@plant("deleted-past-the-high-watermark", "sim-clean-8", Kind.DELETED_EARLY)
def past_the_high_watermark(edit: Edit) -> None:
    leader = leader_of(edit)
    first = edit.find(Source.BROKER, "high-watermark", process=leader)
    moved = delete_before(edit, 1, first)
    moved = edit.event(moved, leader, "log-start", **{"from": 0}, to=1, reason="delete-records")
    edit.event(moved, leader, "checkpoint", what="epochs", content=[[0, 1]])
    for line in edit.all(Source.BROKER, "checkpoint", process=leader, what="epochs"):
        edit.change(line, content=[[epoch, max(start, 1)] for epoch, start in line["value"]["content"]])
    _moved(edit, 1, "leader")
    edit.drop(*edit.all(Source.BROKER, "log-start", process=leader)[1:])


@plant("start-forgotten", "sim-clean-8", Kind.UNDELETED)
def forgotten(edit: Edit) -> None:
    """What a replica had deleted, and what its checkpoint was without, is there again."""
    delete_before(edit, 1)
    before = {node: dict(edit.snapshot(node)["value"]) for node in replicas_of(edit)}
    _moved(edit, 1, "delete-records")
    for node, value in before.items():
        edit.change(edit.snapshot(node), log_start_offset=0, epochs=value["epochs"])


@plant("start-moved-on-kafka", "kafka-kip101-1", Kind.DELETED_EARLY)
def moved_on_kafka(edit: Edit) -> None:
    """Apache Kafka reports no moves: the final logs tell."""
    for node in replicas_of(edit):
        snapshot = edit.snapshot(node)
        epochs = [[epoch, max(first, 1)] for epoch, first in snapshot["value"]["epochs"]]
        edit.change(snapshot, log_start_offset=1, epochs=epochs)


STARTS = [
    plant("records-at-the-start-differ-lawful", "kafka-kip101-1")(each_of(_begins_at(1), _differs)),
    plant("records-at-the-start-differ-2", "kafka-kip101-2", Kind.ALTERED, Kind.DIVERGED, Kind.PERMITTED)(
        _differs
    ),
    plant("records-at-the-start-differ-2-lawful", "kafka-kip101-2", Kind.PERMITTED)(
        each_of(_begins_at(1), _differs)
    ),
    plant("records-at-the-start-differ-sim", "sim-clean-8", Kind.DIVERGED)(_differs),
    plant("records-at-the-start-differ-sim-lawful", "sim-clean-8")(each_of(_begins_at(1), _differs)),
    plant("records-gone-without-retention", "local-kip101-1", Kind.CHECKPOINT, Kind.HOLE, Kind.LOST)(_first_gone),
    plant("records-gone-without-retention-lawful", "local-kip101-1")(retained),
    plant("records-gone-without-retention-kafka", "kafka-kip101-2", Kind.HOLE, Kind.LOST, Kind.PERMITTED)(
        _first_gone
    ),
    plant("records-gone-without-retention-kafka-lawful", "kafka-kip101-2", Kind.PERMITTED)(
        each_of(_first_gone, _begins_at(1))
    ),
    plant("records-gone-without-retention-sim", "sim-clean-8", Kind.HOLE, Kind.LOST)(_first_gone),
    plant("records-gone-without-retention-sim-lawful", "sim-clean-8")(each_of(_first_gone, _begins_at(2))),
]
