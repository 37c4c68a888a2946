"""How a history ends in which m2 is lost: who leads without it, and what rule `lost` then finds."""

from __future__ import annotations

from checkers.rules.lost import lost
from harness.model import Anomaly, Kind
from tests.checkers.golden import M1
from tests.checkers.story import Story


def kinds(found: list[Anomaly]) -> list[tuple[Kind, tuple[tuple[int, int], ...], tuple[str, ...]]]:
    """Return what was found, without its sentences."""
    return [(anomaly.kind, anomaly.ranges, anomaly.nodes) for anomaly in found]


def ends_without_m2(story: Story, leader: str = "A") -> list[Anomaly]:
    """Return what rule `lost` finds where a final log and a reader have m1 alone."""
    return lost(story.healed().log(leader, [(0, M1)]).read(*M1).done().ops)


def fails_over(story: Story, *, isr: str = "A", **leads: bool) -> Story:
    """Add ops in which B dies and A leads epoch 1 with a log that ends before m2."""
    story.fault("kill", "B").elected("A", 1, isr=isr)
    return story.leads("A", 1, 3, isr=isr, **leads)
