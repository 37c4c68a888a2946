"""
The events since the last step that was not an `await` or a `require`, for conditions about what has happened.

They come from the run's own history. Only ops that a condition looks for are kept.
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
from harness.fabric.core.rules import link_matches
from harness.model import Op
from harness.target.wire import Link

_BITES: Final = (Lost, Delayed, Doubled)
_KEPT: Final = frozenset(
    map(key_of_kind, (*_BITES, EpochQuestion, EpochAnswer, Fetch, Fetched, Truncate, Fenced, Printed))
)


class RecentEvents:
    """A listener of a history that keeps recent events."""

    def __init__(self) -> None:
        self._ops: list[Op] = []
        self._bitten: list[Op] = []

    def turn(self) -> None:
        """Forget the recent events, before the next step that is not an `await` or `require`."""
        self._ops.clear()

    def listen(self, op: Op) -> None:
        """Keep an op if a condition may look for it; called in the thread that records it."""
        if (op.source, op.f) in _KEPT:
            self._ops.append(op)
            if isinstance(op.event, _BITES):
                self._bitten.append(op)

    def on_link(self, f: str, src: str, dst: str) -> list[Op]:
        """Return the recent ops of that `f` on a link."""
        return [op for op in list(self._ops) if op.f == f and _is_on(op, (src, dst))]

    def of_node(self, f: str, name: str) -> list[Op]:
        """Return the recent ops of that `f` that a node reported, or printed in its log."""
        return [op for op in list(self._ops) if op.process == name and (op.f == f or _prints(op, f))]

    @property
    def bites(self) -> int:
        """How often a cut, a delay or a doubling has affected a frame in the whole run."""
        return len(self._bitten)

    def bit(self, f: str, src: str, dst: str, *, api: str = "", since: int = 0) -> bool:
        """
        Return True if a rule of that kind affected a frame on a link.

        Args:
            f: "lost", "delayed" or "doubled".
            api: the API of a delay or a doubling; "" or "*" for any.
            since: how many of the first bites to ignore.
        """
        return any(op.f == f and _takes((src, dst), api, op.event) for op in self._bitten[since:])


def _is_on(op: Op, link: Link) -> bool:
    return isinstance(op.event, OfLink) and op.event.link == link


def _prints(op: Op, what: str) -> bool:
    return isinstance(op.event, Printed) and op.event.what == what


def _takes(link: Link, api: str, bite: Event) -> bool:
    """Return True if a bite is on the link, whose ends may be `*`, and about the API if one is named."""
    named = api in ("", "*") or (isinstance(bite, OfFrame) and bite.api == api)
    return named and isinstance(bite, OfLink) and link_matches(link, bite.link)
