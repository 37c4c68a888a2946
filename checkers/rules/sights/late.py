"""Frames that a rule of a link makes late, so that what they say was true earlier."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.facts.fact import fact
from harness.events import Delay, Double, Hold
from harness.model import Op, events_of

# A hold of one API holds all frames behind it; these have connections of their own.
_APART = frozenset({"LeaderAndIsr", "StopReplica"})


@fact
def _slow(ops: Sequence[Op]) -> list[tuple[str, str]]:
    """Return the links on which followers' frames may come late, "*" standing for any node."""
    rules = [rule for kind in (Hold, Delay, Double) for _, rule in events_of(ops, kind)]
    return [rule.link for rule in rules if rule.api not in _APART]


def late(ops: Sequence[Op], link: tuple[str, str]) -> bool:
    """Return True if a follower's frames may come late on a link."""
    return any(all(mine in ("*", end) for mine, end in zip(ends, link, strict=True)) for ends in _slow(ops))
