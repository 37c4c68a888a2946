"""How far each replica's log has reached, as its own process reported it, up to some time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from checkers.facts.fact import fact
from checkers.facts.moments import margin_ns, moments
from checkers.facts.view import setup_of
from harness.events import Follower, HighWatermark, IsrChanged, Leader, Ready
from harness.model import Op


class Rise(NamedTuple):
    """The times at which a log reached a higher end than ever before, and those ends."""

    times: list[int]
    ends: list[int]
    ops: list[int]


class Reach:
    """
    The highest ends of the replicas' logs over time.

    Args:
        ops: the ops of one partition and the global ones.
    """

    def __init__(self, ops: Sequence[Op]) -> None:
        self._ever: dict[str, Rise] = {}
        self._in_epoch: dict[tuple[str, int], Rise] = {}
        self._margin = margin_ns(ops)
        setup = setup_of(ops)
        self._rules = setup.rules if setup is not None else {}
        for op, event, _, after in moments(ops):
            if after.end is None or isinstance(event, HighWatermark | IsrChanged | Ready):
                continue
            _note(self._ever.setdefault(op.process, Rise([], [], [])), op, after.end)
            if after.role:
                rise = self._in_epoch.setdefault((op.process, after.epoch), Rise([], [], []))
                # A follower fetches in a new epoch only after it has truncated.
                if not isinstance(event, Follower) or event.kept or not self.fenced("fence_fetch"):
                    _note(rise, op, after.end)

    def fenced(self, rule: str) -> bool:
        """Return True if the run's rules say so: only fetches of the leader's own epoch count."""
        return fences_fetches(self._rules) and self._rules.get(rule) == "yes"

    def by(self, node: str, op: Op, epoch: int, rule: str) -> tuple[int, list[int]] | None:
        """
        Return the highest end that the leader of the epoch may know of the node at that op, and who shows it.

        Where the rule fences, only what the node's log has reached in that epoch counts. The margin allows for
        the race of two processes' events. None if the node reported nothing at all.
        """
        if node not in self._ever:
            return None
        rise = self._in_epoch.get((node, epoch)) if self.fenced(rule) else self._ever[node]
        place = 0 if rise is None else bisect_right(rise.times, op.time_ns + self._margin)
        if rise is None or not place:
            return -1, []
        return rise.ends[place - 1], [rise.ops[place - 1]]


def fences_fetches(rules: Mapping[str, str]) -> bool:
    """Return True if a leader of these rules serves only its own epoch: in a session that is blind it does not."""
    return rules.get("fence_fetch") == "yes" and rules.get("fetch_sessions") != "epoch_blind"


@fact
def reach(ops: Sequence[Op]) -> Reach:
    """Return how far the replicas' logs have reached."""
    return Reach(ops)


@fact
def epoch_starts(ops: Sequence[Op]) -> dict[tuple[str, int], int]:
    """Return where each leader's log ended when it began to lead, by node and epoch."""
    led = [(op, event) for op, event, _, _ in moments(ops) if isinstance(event, Leader)]
    return {(op.process, event.epoch): event.log_end_offset for op, event in reversed(led)}


def _note(rise: Rise, op: Op, end: int) -> None:
    if not rise.ends or end > rise.ends[-1]:
        rise.times.append(op.time_ns)
        rise.ends.append(end)
        rise.ops.append(op.index)
