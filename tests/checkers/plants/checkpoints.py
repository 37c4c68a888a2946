"""Epoch checkpoints, and the log that each describes."""

from __future__ import annotations

from harness.model import Kind
from tests.checkers.plants.changes import Change, follower_of, nothing
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


# --- an epoch that never was, and lawful twins -------------------------------------------------------------------
def _entries(*entries: tuple[int, int]) -> Change:
    """Return a change of the follower's whole checkpoint."""
    return lambda edit: edit.change(edit.snapshot(follower_of(edit)), epochs=[list(entry) for entry in entries])


CHECKPOINTS = [
    # Inside the log: the epochs of records that stand elsewhere, or an entry between two others.
    plant("checkpoint-inside-of-an-epoch-that-never-was", "kafka-kip101-1", Kind.CHECKPOINT)(
        _entries((0, 0), (9, 5))
    ),
    plant("checkpoint-inside-of-an-epoch-that-never-was-lawful", "kafka-kip101-1")(
        _entries((0, 0), (3, 5), (5, 5))
    ),
    plant("checkpoint-inside-of-an-epoch-that-never-was-2", "kafka-kip101-2", Kind.CHECKPOINT, Kind.PERMITTED)(
        _entries((0, 0), (3, 1), (8, 3))
    ),
    plant("checkpoint-inside-of-an-epoch-that-never-was-2-lawful", "kafka-kip101-2", Kind.PERMITTED)(
        _entries((0, 0), (1, 1), (3, 1))
    ),
    plant("checkpoint-inside-of-an-epoch-that-never-was-sim", "sim-clean", Kind.CHECKPOINT)(
        _entries((0, 0), (1, 2), (4, 3), (9, 3))
    ),
    plant("checkpoint-inside-of-an-epoch-that-never-was-sim-lawful", "sim-clean")(nothing),
    # At the log's end or beyond it.
    plant("checkpoint-beyond-the-log-lawful", "kafka-kip101-1")(_entries((0, 0), (5, 5))),
    plant("checkpoint-at-the-end-of-an-epoch-that-never-was", "kafka-kip101-1", Kind.CHECKPOINT)(
        _entries((0, 0), (5, 5), (9, 6))
    ),
    plant("checkpoint-at-the-end-of-an-epoch-that-never-was-lawful", "kafka-kip101-1")(
        _entries((0, 0), (2, 5), (5, 5))
    ),
    plant("checkpoint-of-an-epoch-that-never-was-lawful", "local-kip101-1")(nothing),
    plant("checkpoint-beyond-the-log-2", "kafka-kip101-2", Kind.CHECKPOINT, Kind.PERMITTED)(
        _entries((0, 0), (3, 1), (4, 9))
    ),
    plant("checkpoint-beyond-the-log-2-lawful", "kafka-kip101-2", Kind.PERMITTED)(
        _entries((0, 0), (2, 1), (3, 1))
    ),
    plant("checkpoint-falls-lawful", "local-kip101-2", Kind.PERMITTED)(nothing),
]
