"""The minimiser finds the smallest schedule that shows a made-up violation, always the same, in its bounds."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import combinations

import pytest

from harness.random_schedule.final_records import FINAL_RECORDS
from harness.scenario.file import Scenario
from harness.scenario.text import text_of
from harness.search.random_runs import is_written
from harness.search.shrink.candidates import acts_of, with_acts, without
from harness.search.shrink.minimal import Ended, Minimiser, Reducer
from harness.search.shrink.reducers import REDUCERS
from harness.search.shrink.signature import Outcome
from harness.search.shrink.trials import Trials
from tests.search.shrink.schedules import RANDOM, STEPS, WRITTEN, needing, schedule_of, shown_if, texts


def minimised(
    play: Callable[[str], Outcome],
    *,
    steps: str = STEPS,
    head: str = WRITTEN,
    reducers: Sequence[Reducer] = (),
    tries: int = 10_000,
) -> tuple[Minimiser, Ended]:
    start = schedule_of(steps, head)
    minimiser = Minimiser(
        best=with_acts(start, acts_of(start)), trials=Trials(play=play, tries_max=tries), reducers=reducers
    )
    return minimiser, minimiser.run()


@pytest.mark.parametrize("needed", list(combinations(("elect B", "zombie C", "power-loss A B", "kill B"), 2)))
def test_only_the_steps_that_are_needed_are_left(needed: tuple[str, str]) -> None:
    order = [step for step in STEPS.splitlines() if step in needed]
    minimiser, ended = minimised(needing(*order))
    assert (Ended.MINIMAL, order) == (ended, texts(minimiser.best))


def test_no_single_step_of_the_result_can_be_left_out_whatever_shows_the_violation() -> None:
    for seed in range(20):
        chance = random.Random(seed)
        masks = [frozenset(chance.sample(range(15), 4)) for _ in range(3)]
        lines = STEPS.splitlines()

        def shows(scenario: Scenario, masks: list[frozenset[int]] = masks, lines: list[str] = lines) -> bool:
            there = set(texts(scenario))
            return any(all(lines[at] in there for at in mask) for mask in masks)

        play = shown_if(shows)
        best = minimised(play)[0].best
        assert play(text_of(best)).shows
        assert not any(play(text_of(without(best, {at}))).shows for at in range(len(best.steps)))


def test_two_steps_that_need_each_other_go_together() -> None:
    def shows(scenario: Scenario) -> bool:
        there = texts(scenario)
        return "elect B" in there and ("kill B" in there) == ("zombie C" in there)

    minimiser, _ = minimised(shown_if(shows), reducers=REDUCERS)
    assert ["elect B"] == texts(minimiser.best)


def test_step_goes_with_the_step_that_it_is_about() -> None:
    minimiser, _ = minimised(needing("elect B"), steps="hold requests fetch B -> A\nelect B\nrelease all\n")
    assert ["elect B"] == texts(minimiser.best)
    start = schedule_of("hold requests fetch B -> A\nrelease requests Fetch B -> A\nproduce m1 acks=1\n")
    assert ["produce m1 acks=1"] == texts(without(start, {0}))


def test_reducers_make_everything_else_as_small_as_it_can_be() -> None:
    minimiser, ended = minimised(needing("elect B"), reducers=REDUCERS)
    best = minimiser.best
    assert (Ended.MINIMAL, ["elect B"]) == (ended, texts(best))
    assert (("A", "B"), {"A", "B"}) == (best.replicas, set(best.nodes))
    assert [("m1", 1)] == [(count.name, count.high) for count in best.records]
    assert (1, None, 10.0) == (
        best.settings.min_isr,
        best.settings.replica_lag_ms_max,
        best.settings.heal_within_s,
    )


def test_random_schedule_becomes_a_written_one_if_that_shows_the_violation_too() -> None:
    minimiser, _ = minimised(needing("elect B"), head=RANDOM)
    assert is_written(minimiser.best)
    minimiser, _ = minimised(shown_if(lambda each: not is_written(each)), head=RANDOM)
    assert not is_written(minimiser.best)
    assert list(FINAL_RECORDS) == [each.name for each in minimiser.best.records][-4:]


def test_step_that_fails_in_the_written_form_is_left_out_of_it() -> None:
    def play(text: str) -> Outcome:
        if "last1" in text:
            return Outcome(shows="elect B" in text and "zombie C" in text)
        failed = [line for line, step in enumerate(text.splitlines(), start=1) if step == "zombie C"]
        return Outcome(shows="elect B" in text and not failed, failed=failed[0] if failed else 0)

    minimiser, _ = minimised(play, head=RANDOM)
    assert (True, ["elect B"]) == (is_written(minimiser.best), texts(minimiser.best))


def test_skipped_steps_go_first_and_all_at_once() -> None:
    played: list[str] = []

    def play(text: str) -> Outcome:
        played.append(text)
        lines = text.splitlines()
        skipped = {at for at, step in enumerate(lines, start=1) if step in ("kill B", "restart B", "zombie C")}
        return Outcome(shows="elect B" in lines, skipped=frozenset(skipped))

    minimised(play)
    assert not {"kill B", "restart B", "zombie C"} & set(played[1].splitlines())
    assert len(played[0].splitlines()) - 3 == len(played[1].splitlines())


# --- bounds ----------------------------------------------------------------------------------------------------
def test_same_schedule_is_shrunk_to_the_same_one_with_the_same_tries() -> None:
    one, two = (minimised(needing("kill B", "produce m3 acks=all meanwhile"), reducers=REDUCERS)[0] for _ in "12")
    assert (text_of(one.best), one.trials.tries) == (text_of(two.best), two.trials.tries)


@pytest.mark.parametrize("tries", range(1, 25, 4))
def test_tries_end_it_with_the_best_so_far(tries: int) -> None:
    played: list[str] = []
    shows = needing("kill B", "zombie C")

    def play(text: str) -> Outcome:
        played.append(text)
        return shows(text)

    minimiser, ended = minimised(play, reducers=REDUCERS, tries=tries)
    assert (Ended.SPENT, tries) == (ended, len(played))
    assert shows(text_of(minimiser.best)).shows
    assert len(minimiser.best.steps) == min(text.count("\n") - 6 for text in played if shows(text).shows)


def test_interrupt_keeps_the_best_so_far() -> None:
    shows, played = needing("kill B", "zombie C"), []

    def play(text: str) -> Outcome:
        played.append(text)
        if len(played) == 9:
            raise KeyboardInterrupt
        return shows(text)

    minimiser, ended = minimised(play)
    assert Ended.INTERRUPTED is ended
    assert 2 < len(minimiser.best.steps) < len(STEPS.splitlines())
    assert shows(text_of(minimiser.best)).shows
