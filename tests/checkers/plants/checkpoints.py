"""Epoch checkpoints, and the log that each describes."""

from __future__ import annotations

from harness.model import Kind
from tests.checkers.plants.changes import follower_of
from tests.checkers.plants.edit import Edit
from tests.checkers.plants.plant import plant


# --- logs that begin later ---------------------------------------------------------------------------------------
def _entry(edit: Edit, epoch: int, start: int) -> None:
    snapshot = edit.snapshot(follower_of(edit))
    epochs = sorted([*snapshot["value"]["epochs"], [epoch, start]])
    edit.change(snapshot, epochs=epochs)


@plant("checkpoint-of-an-epoch-that-never-was", "local-kip101-1", Kind.CHECKPOINT)
def never_was(edit: Edit) -> None:
    _entry(edit, 7, 5)


@plant("checkpoint-beyond-the-log", "kafka-kip101-1", Kind.CHECKPOINT)
def beyond(edit: Edit) -> None:
    _entry(edit, 9, 99)


@plant("checkpoint-falls", "local-kip101-2", Kind.CHECKPOINT, Kind.PERMITTED)
def falls(edit: Edit) -> None:
    snapshot = edit.snapshot(follower_of(edit))
    edit.change(snapshot, epochs=[*reversed(snapshot["value"]["epochs"])])
