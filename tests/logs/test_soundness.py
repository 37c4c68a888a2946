"""The checks of a single replica find disorder, holes and checkpoints that contradict the log, and only these."""

from __future__ import annotations

import pytest

from harness.logs.replica import ReplicaLog
from harness.logs.soundness import notes
from harness.model import Kind
from tests.logs.replicas import replica, seen

BATCHES = (seen(0, "a b"), seen(2, "c d", epoch=2), seen(4, "e", epoch=5))
RIGHT = ((0, 0), (2, 2), (5, 4))


def kinds(log: ReplicaLog) -> list[Kind | None]:
    """Return the kind of every note."""
    return [note.kind for note in notes(log)]


@pytest.mark.parametrize(
    "epochs",
    [
        RIGHT,
        # Epochs whose leader has appended nothing yet, or never did.
        (*RIGHT, (6, 5)),
        ((0, 0), (1, 2), (2, 2), (5, 4)),
        ((0, 0), (2, 2), (4, 4), (5, 4), (7, 5), (8, 5)),
    ],
)
def test_notes_are_none_when_the_checkpoint_says_what_the_log_does(epochs: tuple[tuple[int, int], ...]) -> None:
    assert [] == kinds(replica(*BATCHES, epochs=epochs))


@pytest.mark.parametrize(
    ("epochs", "says"),
    [
        (((0, 0), (5, 4)), "no entry for epoch 2, which begins at 2"),
        (((0, 0), (2, 1), (5, 4)), "(2, 1): falls inside the batch 0 to 1"),
        (((0, 0), (2, 4), (5, 4)), "(2, 4): the batch at 2, before it, has epoch 2"),
        (((0, 0), (2, 2), (3, 2), (5, 4)), "(3, 2): the batch at 2, after it, has epoch 2"),
        (((0, 0), (2, 2), (5, 2)), "(5, 2): the batch at 2, after it, has epoch 2"),
        ((*RIGHT, (6, 6)), "(6, 6): lies beyond the log's end 5"),
        (((0, 0), (5, 4), (2, 2)), "(2, 2): follows epoch 5 at 4"),
        ((), "no entry for epoch 0"),
    ],
)
def test_notes_name_the_entry_when_the_checkpoint_contradicts_the_log(
    epochs: tuple[tuple[int, int], ...], says: str
) -> None:
    found = notes(replica(*BATCHES, epochs=epochs))
    assert {Kind.CHECKPOINT} == {note.kind for note in found}
    assert any(says in note.text for note in found), [note.text for note in found]


def test_notes_let_the_first_entry_begin_anywhere_when_retention_took_its_start() -> None:
    log = replica(seen(0, "a b c"), seen(3, "d", epoch=1), start=2, epochs=((0, 2), (1, 3)))
    assert [] == kinds(log)
    assert [] == kinds(replica(seen(7, "a"), start=7, epochs=((0, 7),)))
    assert [] == kinds(replica(seen(7, "a", epoch=3), start=7, epochs=((3, 2),)))


def test_notes_only_tell_when_an_entry_may_lie_in_a_torn_tail() -> None:
    log = replica(*BATCHES, epochs=(*RIGHT, (6, 9)), unread=((5, None),))
    assert [None] == kinds(log)


def test_notes_tell_that_nothing_was_checked_when_there_is_no_checkpoint() -> None:
    assert [None] == kinds(replica(*BATCHES))
    assert [] == kinds(replica(seen(0, "a", epoch=-1)))
    assert [] == kinds(replica())


def test_notes_show_disorder_when_an_epoch_falls() -> None:
    log = replica(seen(0, "a", epoch=3), seen(1, "b", epoch=2), epochs=((2, 0), (3, 0)))
    assert Kind.DISORDER == kinds(log)[0]
    assert "leader epoch is 2, after a batch of epoch 3" in notes(log)[0].text


def test_notes_let_batches_without_an_epoch_stand_anywhere() -> None:
    """Source: KIP-101, migration: logs that hold both formats."""
    log = replica(seen(0, "a", epoch=-1), seen(1, "b", epoch=1), seen(2, "c", epoch=-1), epochs=((1, 1),))
    assert [] == kinds(log)


def test_notes_show_disorder_when_a_batch_carries_the_walk_s_finding() -> None:
    log = replica(seen(0, "a b"), seen(1, "x", problem="base offset is 1"), epochs=((0, 0),))
    assert [(Kind.DISORDER, 1, 2)] == [(note.kind, note.first, note.end) for note in notes(log)]


def test_notes_show_every_hole_with_its_offsets() -> None:
    log = replica(seen(0, "a"), seen(3, "b"), epochs=((0, 0),))
    assert [(Kind.HOLE, 1, 3)] == [(note.kind, note.first, note.end) for note in notes(log)]


def test_notes_only_tell_when_the_high_watermark_lies_beyond_the_end() -> None:
    assert [None] == kinds(replica(seen(0, "a"), epochs=((0, 0),), high_watermark=2))
    assert [] == kinds(replica(seen(0, "a"), epochs=((0, 0),), high_watermark=1))
