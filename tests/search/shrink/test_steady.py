"""What is left of a schedule is played with passes between its steps, and steps are added until it stands that."""

from __future__ import annotations

import pytest

from harness.model import UsageError
from harness.scenario.file import Scenario, parse
from harness.scenario.steps import Await, Pass
from harness.search.shrink.candidates import acts_of
from harness.search.shrink.signature import Outcome
from harness.search.shrink.steady import RUNS, slowed, steadied, steadiness
from harness.search.shrink.trials import Trials
from tests.faults import NEMESES
from tests.kept import exhaustive
from tests.search.shrink.schedules import schedule_of, texts

SCHEDULE = schedule_of(
    "produce m1 acks=1\nelect B\nawait leader = B\npower-loss A\nproduce m2 acks=1\nproduce m3 acks=1\n"
)


def trials_of(needs: str) -> Trials:
    """Return trials in which a slowed schedule ends the same only if it has this step; at once it always does."""

    def play(text: str) -> Outcome:
        try:
            read = parse("T", text, "T", NEMESES)
        except UsageError:
            return Outcome(shows=False)
        slow = any(isinstance(act, Pass) for act in acts_of(read))
        return Outcome(shows=True, found="lost m1" if not slow or needs in texts(read) else "lost m1, hang")

    return Trials(play=play, tries_max=100_000)


def waits(scenario: Scenario) -> list[bool]:
    return [isinstance(act, Pass) for act in acts_of(scenario)]


def test_passes_stand_before_every_step_but_conditions_and_are_the_same_each_time() -> None:
    slow = slowed(SCHEDULE, 3)
    assert texts(slow) == texts(slowed(SCHEDULE, 3))
    assert texts(slow) != texts(slowed(SCHEDULE, 4))
    assert [True, False, True, False, False, True, False, True, False, True, False] == waits(slow)
    assert texts(SCHEDULE) == [text for text in texts(slow) if not text.startswith("pass")]


def test_schedule_that_ends_the_same_however_slow_is_left_as_it_is() -> None:
    trials = trials_of("elect B")
    assert RUNS == steadiness(SCHEDULE, trials)
    assert (SCHEDULE, RUNS) == steadied(SCHEDULE, RUNS, trials)


def test_condition_without_which_it_ends_otherwise_is_awaited() -> None:
    trials = trials_of("await log C = end(m1)")
    assert 0 == steadiness(SCHEDULE, trials)
    found, same = steadied(SCHEDULE, 0, trials)
    assert RUNS == same
    (added,) = [act for act in acts_of(found) if isinstance(act, Await) and "log C" in str(act)]
    assert len(found.steps) == len(SCHEDULE.steps) + 1
    assert "await log C = end(m1)" == str(added)


def test_messages_are_held_where_that_makes_it_steady() -> None:
    found, same = steadied(SCHEDULE, 0, trials_of("hold answers fetch B -> A"))
    assert RUNS == same
    assert len(found.steps) == len(SCHEDULE.steps) + 1


@pytest.mark.slow
@exhaustive
def test_schedule_that_nothing_makes_steady_stays_and_its_figure_is_told() -> None:
    assert (SCHEDULE, 0) == steadied(SCHEDULE, 0, trials_of("nothing"))


def test_schedule_that_shows_nothing_is_not_steady() -> None:
    assert 0 == steadiness(SCHEDULE, Trials(play=lambda _: Outcome(shows=False), tries_max=99))
