"""Each text is played once; what is found, and after how many tries, is the same with other processes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from harness.scenario.text import text_of
from harness.search.shrink import trials as module
from harness.search.shrink.candidates import without
from harness.search.shrink.signature import Outcome
from harness.search.shrink.trials import SpentError, Trials
from tests.search.shrink.schedules import STEPS, needing, schedule_of

CANDIDATES = [without(schedule_of(STEPS), {at}) for at in range(10)]


class Pool(Executor):
    """Plays what it is sent at once, but the last of it only when it is asked for."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.down = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.sent.append(args[0])
        found: Future[Any] = Future()
        found.set_result(fn(*args, **kwargs))
        return found

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.down = wait and cancel_futures


def test_first_candidate_that_shows_it_is_found_and_no_later_one_is_played() -> None:
    trials = Trials(play=needing("kill B"), tries_max=99)
    assert (0, CANDIDATES[0]) == trials.first(CANDIDATES)
    assert 1 == trials.tries
    trials = Trials(play=lambda text: Outcome(shows=text == text_of(CANDIDATES[4])), tries_max=99)
    assert (4, CANDIDATES[4]) == trials.first(CANDIDATES)
    assert 5 == trials.tries
    assert None is Trials(play=lambda _: Outcome(shows=False), tries_max=99).first(CANDIDATES)


def test_text_is_played_once() -> None:
    played: list[str] = []

    def play(text: str) -> Outcome:
        played.append(text)
        return Outcome(shows=False)

    trials = Trials(play=play, tries_max=10)
    for _ in range(3):
        assert None is trials.first(CANDIDATES)
        assert False is trials.outcome(CANDIDATES[2]).shows
    assert 10 == len(played) == trials.tries


def test_tries_are_a_limit_of_what_is_played_and_not_of_what_is_known() -> None:
    trials = Trials(play=lambda _: Outcome(shows=False), tries_max=3)
    with pytest.raises(SpentError):
        trials.first(CANDIDATES)
    assert 3 == trials.tries
    assert None is trials.first(CANDIDATES[:3])


def test_time_is_a_limit_by_the_clock_that_is_given() -> None:
    now = [100.0]

    def play(_: str) -> Outcome:
        now[0] += 2.0
        return Outcome(shows=False)

    trials = Trials(play=play, tries_max=99, seconds=5.0, clock=lambda: now[0])
    with pytest.raises(SpentError):
        trials.first(CANDIDATES)
    assert (3, 6.0) == (trials.tries, trials.seconds_taken)


@pytest.mark.parametrize("shown", [0, 3, 7, None])
def test_other_processes_change_neither_what_is_found_nor_the_tries(
    monkeypatch: pytest.MonkeyPatch, shown: int | None
) -> None:
    monkeypatch.setattr(module, "ALONE_TRIES", 0)
    wanted = None if shown is None else text_of(CANDIDATES[shown])

    def play(text: str) -> Outcome:
        return Outcome(shows=text == wanted)

    pool = Pool()
    alone = Trials(play=play, tries_max=99)
    together = Trials(play=play, play_there=play, make_pool=lambda jobs: pool, jobs=2, tries_max=99)
    assert alone.first(CANDIDATES) == together.first(CANDIDATES)
    assert alone.first(CANDIDATES[::-1]) == together.first(CANDIDATES[::-1])
    assert alone.tries == together.tries
    assert len(pool.sent) == len(set(pool.sent)) > 0
    together.close()
    assert True is pool.down


def test_other_processes_are_not_started_for_a_few_tries() -> None:
    def make_pool(_jobs: int) -> Executor:
        raise AssertionError("a pool for ten tries")

    play = needing("no such step")
    trials = Trials(play=play, play_there=play, make_pool=make_pool, jobs=2, tries_max=99)
    assert None is trials.first(CANDIDATES)
    assert 10 == trials.tries
