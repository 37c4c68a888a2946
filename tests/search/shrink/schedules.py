"""Schedules for tests of shrinking, and runs that show a violation by a rule that the test makes up."""

from __future__ import annotations

from collections.abc import Callable

from harness.model import UsageError
from harness.scenario.file import Scenario, parse
from harness.search.shrink.signature import Outcome
from tests.faults import NEMESES

WRITTEN = """title T
source chance
nodes A B C replicas, D controller
records m1 3, m2 2, m3 1
settings min_isr=2 replica_lag_ms_max=150 heal_within_s=10

"""
LAST = ", last1 1, last2 1, last3 1, last4 1"
RANDOM = WRITTEN.replace("m3 1", f"m3 1{LAST}")
STEPS = """produce m1 acks=all meanwhile
pass 17.3ms
hold requests fetch B -> A
kill B
restart B
release requests fetch B -> A
elect B
produce m2 acks=1 singly meanwhile
power-loss A B
zombie C
pass 100.5ms
delay answers fetch B -> A 0.037
heal B -> A
return C
produce m3 acks=all meanwhile
"""


def schedule_of(steps: str, head: str = WRITTEN) -> Scenario:
    """Return the scenario with this head and these steps."""
    return parse("T", head + steps, "T", NEMESES)


def texts(scenario: Scenario) -> list[str]:
    """Return the text of each step."""
    return [step.text for step in scenario.steps]


def shown_if(shows: Callable[[Scenario], bool]) -> Callable[[str], Outcome]:
    """Return a play that shows the violation for the schedules of which this is true, and can be read back."""

    def play(text: str) -> Outcome:
        try:
            return Outcome(shows=shows(parse("T", text, "T", NEMESES)))
        except UsageError:
            return Outcome(shows=False)

    return play


def needing(*steps: str) -> Callable[[str], Outcome]:
    """Return a play that shows the violation if all of these steps are there, in this order."""

    def shows(scenario: Scenario) -> bool:
        there = iter(texts(scenario))
        return all(step in there for step in steps)

    return shown_if(shows)
