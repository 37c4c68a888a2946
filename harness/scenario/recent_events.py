"""
What was seen since the scenario last did something: for conditions about what happens, not about what stands.

Source:  the run's own history; ops that a condition looks for are kept, all others pass.
"""

from __future__ import annotations

from typing import Final

from harness.events import (
    Delayed,
    Doubled,
    EpochAnswer,
    EpochQuestion,
    Event,
    Fenced,
    Fetch,
    Fetched,
    Lost,
    OfFrame,
    OfLink,
    Printed,
    Truncate,
)
from harness.events.codec import key_of_kind
from harness.fabric.core.rules import Link, link_matches
from harness.model import Op

_BITES: Final = (Lost, Delayed, Doubled)
_KEPT: Final = frozenset(
    map(key_of_kind, (*_BITES, EpochQuestion, EpochAnswer, Fetch, Fetched, Truncate, Fenced, Printed))
)


class RecentEvents:
    """A listener of a history."""

    def __init__(self) -> None:
        self._ops: list[Op] = []
        self._bitten: list[Op] = []

    def turn(self) -> None:
        """Forget: the scenario is about to do something."""
        self._ops.clear()

    def listen(self, op: Op) -> None:
        """Take note of an op as it is recorded, in whatever thread."""
        if (op.source, op.f) in _KEPT:
            self._ops.append(op)
            if isinstance(op.event, _BITES):
                self._bitten.append(op)

    def on_link(self, f: str, src: str, dst: str) -> list[Op]:
        """What the fabric saw of that kind on a link."""
        return [op for op in list(self._ops) if op.f == f and _is_on(op, (src, dst))]

    def of_node(self, f: str, name: str) -> list[Op]:
        """What a node told of that kind, or printed."""
        return [op for op in list(self._ops) if op.process == name and (op.f == f or _prints(op, f))]

    @property
    def bites(self) -> int:
        """How often a cut, a delay or a doubling was seen to bite so far."""
        return len(self._bitten)

    def bit(self, f: str, src: str, dst: str, *, api: str = "", since: int = 0) -> bool:
        """Whether one bit on a link after the first `since` bites; `api` where it is about one."""
        return any(op.f == f and _takes((src, dst), api, op.event) for op in self._bitten[since:])


def _is_on(op: Op, link: Link) -> bool:
    return isinstance(op.event, OfLink) and op.event.link == link


def _prints(op: Op, what: str) -> bool:
    return isinstance(op.event, Printed) and op.event.what == what


def _takes(link: Link, api: str, bite: Event) -> bool:
    """Whether what bit is on a link that may name any node, and about an API where one is named."""
    named = api in ("", "*") or (isinstance(bite, OfFrame) and bite.api == api)
    return named and isinstance(bite, OfLink) and link_matches(link, bite.link)
