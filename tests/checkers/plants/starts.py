"""Logs that begin later, since retention or DeleteRecords removed their first records."""

from __future__ import annotations

from harness.model import Kind
from tests.checkers.plants.changes import follower_of, last_read
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant


# --- logs that begin later ---------------------------------------------------------------------------------------
def retained(edit: Edit) -> None:
    """Let retention remove offsets 0-2 of both replicas, with their epoch's start."""
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
