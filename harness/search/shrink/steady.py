"""
Make a written schedule hold on slower machines: conditions are awaited where it depends on how soon a step comes.

In the simulator a written schedule's steps come at once, one after the other. A real runner takes its time for
each, and brokers go on meanwhile. So a schedule is played with passes of random length between its steps. As long
as some of these runs end otherwise, one step is added, the one that mends most: a condition that is awaited, or
messages that are held.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import permutations
from random import Random
from typing import Final

from harness.scenario.file import Scenario
from harness.scenario.offsets import Mark
from harness.scenario.steps import Act, Await, Hold, Pass, Require
from harness.search.shrink.candidates import acts_of, groups_of, with_acts
from harness.search.shrink.times import conditions
from harness.search.shrink.trials import Trials
from harness.target.wire import Word

FETCH: Final = Word.FETCH.value
COMMAND: Final = Word.COMMAND.value
DIRECTIONS: Final = ("requests", "answers")
# How many slowed runs a schedule is played in.
RUNS: Final = 10
# So many steps are added at most: a schedule that needs more is no clear one.
ADDED_MAX: Final = 4
# A pass is drawn evenly from the exponents of ten of these bounds, in milliseconds.
EXPONENT_MIN: Final = -1.0
EXPONENT_MAX: Final = 2.0


def slowed(scenario: Scenario, run: int) -> Scenario:
    """
    Return the schedule with passes; the same number of a run always gives the same ones.

    None is before a condition: some look only at what happened since the step before.
    """
    random, acts = Random(run), list[Act]()
    for act in acts_of(scenario):
        ms = Decimal(str(round(10 ** random.uniform(EXPONENT_MIN, EXPONENT_MAX), 1)))
        acts += [act] if isinstance(act, Await | Require) else [Pass(ms), act]
    return with_acts(scenario, acts)


def steadiness(scenario: Scenario, trials: Trials, *, above: int = 0) -> int:
    """
    Return in how many of RUNS slowed runs a schedule ends exactly as it does at once.

    Args:
        above: fewer than this may be returned as soon as it is certain that there are no more.

    Raises:
        SpentError: the tries or the time are spent.
    """
    at_once = trials.outcome(scenario)
    if not at_once.shows:
        return 0
    same = 0
    for run in range(RUNS):
        if same + RUNS - run <= above:
            return same
        late = trials.outcome(slowed(scenario, run))
        same += late.shows and late.found == at_once.found
    return same


def steadied(scenario: Scenario, same: int, trials: Trials) -> tuple[Scenario, int]:
    """
    Return the steadiest form of a written schedule with a few more steps, and its steadiness.

    Args:
        same: the schedule's own steadiness.

    Raises:
        SpentError: the tries or the time are spent.
    """
    for _ in range(ADDED_MAX):
        found = None
        for candidate in _with_one_more(scenario) if same < RUNS else ():
            now = steadiness(candidate, trials, above=same)
            if now > same:
                found, same = candidate, now
        if found is None:
            break
        scenario = found
    return scenario, same


def _with_one_more(scenario: Scenario) -> Iterator[Scenario]:
    """Yield each schedule with a condition or a hold before one of its steps; the last step first."""
    acts = acts_of(scenario)
    for at in reversed(range(len(acts))):
        if isinstance(acts[at], Await | Require):
            continue
        awaited: list[Act] = [Await(condition) for condition in dict.fromkeys(conditions(scenario, acts[:at]))]
        for added in (*awaited, *_holds(scenario)):
            yield with_acts(scenario, [*acts[:at], added, *acts[at:]])


def _holds(scenario: Scenario) -> Iterator[Hold]:
    """Yield what keeps a replica from learning: records, the high watermark, an epoch's end, a command."""
    for src, dst in permutations(scenario.replicas, 2):
        yield from (Hold(direction, FETCH, src, dst) for direction in DIRECTIONS)
        for group in sorted(groups_of(acts_of(scenario))):
            yield Hold(DIRECTIONS[0], FETCH, src, dst, Mark("end", group))
    yield from (Hold(DIRECTIONS[0], COMMAND, "*", dst) for dst in scenario.replicas)
