"""Frames that a rule of a link or a pause makes late, so that what they say was true earlier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkers.facts.fact import fact
from checkers.facts.pauses import pauses
from checkers.facts.silences import Silence, silences
from harness.events import Close, Delay, Double, Hold
from harness.model import Op, events_of

# A hold of one kind of message holds all frames behind it; these have connections of their own.
_APART: Final = frozenset({"command", "stop-command"})
# In a simulated run, how long one frame is under way.
FRAME_NS: Final = 10_000_000
# In a simulated run, how long an answer and then the first frame of a connection are under way.
_AFTER_NS: Final = 100_000_000
# In a simulated run, how long a node is without the metadata at most, once its connection was closed: it waits
# longer before each attempt, half a second by a clock that may be slow.
_APART_NS: Final = 800_000_000
_METADATA: Final = "metadata"


@fact
def _slow(ops: Sequence[Op]) -> list[tuple[str, str]]:
    """Return the links on which followers' frames may come late, "*" standing for any node."""
    rules = [rule for kind in (Hold, Delay, Double) for _, rule in events_of(ops, kind)]
    return [rule.link for rule in rules if rule.api not in _APART]


def late(ops: Sequence[Op], link: tuple[str, str]) -> bool:
    """Return True if a follower's frames may come late on a link."""
    return any(all(mine in ("*", end) for mine, end in zip(ends, link, strict=True)) for ends in _slow(ops))


def looked_up_late(ops: Sequence[Op], node: str, since_ns: int, seen: Op) -> bool:
    """
    Return True if a frame that a node had to send at a time may be seen so late as the metadata answered late.

    Before it connects to a leader, a broker asks the metadata where that is; what it has to send waits. Who is not
    connected to the metadata asks once it is.
    """
    return any(
        each.node in (node, "*")
        and each.since < seen.index
        and each.until_ns >= max(since_ns, seen.time_ns - _AFTER_NS)
        for each in (*silences(ops), *_closed(ops))
    )


@fact
def _closed(ops: Sequence[Op]) -> list[Silence]:
    """Return when nodes may have been without a connection to the metadata, as theirs was closed."""
    return [
        Silence(closed.link[0], op.index, op.time_ns + _APART_NS)
        for op, closed in events_of(ops, Close)
        if closed.link[1] == _METADATA
    ]


def waited(ops: Sequence[Op], node: str, since: Op, until: Op) -> bool:
    """Return True if a node was paused between two ops: it answers all that it was asked then, once it goes on."""
    return any(since.index < each.op.index < until.index and node in each.nodes for each in pauses(ops))
