"""Frames that a rule of a link makes late, so that what they say was true earlier."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.facts.fact import fact
from harness.events import Delay, Double, Hold
from harness.model import Op, events_of


@fact
def _slow(ops: Sequence[Op]) -> list[tuple[str, tuple[str, str]]]:
    """Return (api, link) of the rules under which frames come late."""
    rules = [rule for kind in (Hold, Delay, Double) for _, rule in events_of(ops, kind)]
    return [(rule.api, rule.link) for rule in rules]


def late(ops: Sequence[Op], api: str, link: tuple[str, str]) -> bool:
    """Return True if frames of an api may come late on a link, "*" standing for any node."""
    return any(
        api == theirs and all(mine in ("*", end) for mine, end in zip(ends, link, strict=True))
        for theirs, ends in _slow(ops)
    )
