"""What a log says of its producers is the same however it came about, and a truncation costs what it removes."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from targets.broker.core import sequences
from targets.broker.core.messages import NO_PRODUCER_ID
from targets.broker.core.sequences import Sequences

_EVERY: Final = 4


@pytest.fixture(autouse=True)
def _states_lie_close_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "STATE_BATCHES", _EVERY)


def note(known: Sequences, at: int) -> None:
    """Note the log's batch of that number: one record each, of two producers and of one without an id."""
    producer = at % 3 if at % 3 else NO_PRODUCER_ID
    known.note(producer, 0, at // 3, at, at + 1)


def upto(end: int) -> Sequences:
    """Return what a log of so many batches says."""
    known = Sequences(producers_max=10)
    for at in range(end):
        note(known, at)
    return known


@pytest.mark.parametrize("seed", range(5))
def test_log_that_was_cut_and_read_on_says_what_one_says_that_was_never_longer(seed: int) -> None:
    chance = Random(seed)
    known, end = Sequences(producers_max=10), 0
    for _ in range(60):
        for _ in range(chance.randrange(20)):
            note(known, end)
            end += 1
        to = chance.randint(max(0, end - chance.choice((3, 30))), end)
        again = known.cut(to)
        for at in range(again or 0, to):
            note(known, at)
        end = to
        assert upto(end).known == known.known
        assert end == known.batches


def test_truncation_reads_no_more_than_it_removes_or_than_lies_between_two_states() -> None:
    for end in range(1, 64):
        for to in range(end):
            again = upto(end).cut(to) or 0
            assert to - again <= max(_EVERY, end - to), f"cut of {end} to {to} reads on from {again}"


def test_states_that_are_kept_grow_with_the_logarithm_of_the_log() -> None:
    assert len(upto(10_000).earlier) <= 2 * (10_000 // _EVERY).bit_length()


def test_state_to_go_back_to_does_not_change_with_what_is_noted_after_it() -> None:
    known = upto(_EVERY + 1)
    before = dict(known.earlier[0].known)
    for at in range(_EVERY + 1, 50):
        note(known, at)
    assert before == known.earlier[0].known
