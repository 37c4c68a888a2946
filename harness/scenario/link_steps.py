"""
Executes the link steps of a scenario, and proves that each cut, delay and doubling affected a frame.

harness/scenario/steps.py defines the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from harness.cluster.cluster import Cluster
from harness.cluster.interfaces import Held
from harness.model import PreconditionError, UsageError
from harness.scenario.offsets import RecordOffsets
from harness.scenario.recent_events import RecentEvents
from harness.scenario.step_order import ends_of
from harness.scenario.steps import Cut, Delay, Double, Drop, Heal, HealAll, Hold, LinkAct, Release, ReleaseAll
from harness.scenario.words import MessageWords

DIRECTIONS: Final = {"requests": "request", "answers": "answer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveRule:
    """
    A cut, a delay or a doubling that the scenario made and has not healed.

    Attributes:
        bites: the `f` of the op by which the fabric reports that the rule affected a frame.
        since: how many bites were recorded before the rule was made (`RecentEvents.bites`).
        handle: what the fabric returned for the rule.
    """

    step: Cut | Delay | Double
    api: str
    bites: str
    since: int
    handle: object

    @property
    def ends(self) -> tuple[tuple[str, str], ...]:
        """(src, dst) of each link that the rule affects."""
        return ends_of(self.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hold:
    """A hold that was not released."""

    step: Hold
    handle: Held

    def is_named(self, api: str, src: str, dst: str, direction: str) -> bool:
        """Return True if a scenario's step names this hold; without a direction either matches."""
        step = self.step
        return (step.api, step.src, step.dst) == (api, src, dst) and direction in ("", step.direction)

    def __str__(self) -> str:
        step = self.step
        return f"{step.direction} {step.api} {step.src} -> {step.dst}"


class LinkSteps:
    """
    The link steps of one run.

    Args:
        words: what the words for messages mean on this wire.

    Raises:
        PreconditionError: a rule affected no frame before it was healed or the scenario ended, or the target has
            no such message.
        UsageError: a step is about a hold or a rule that no longer exists.
    """

    def __init__(
        self, cluster: Cluster, record_offsets: RecordOffsets, recent: RecentEvents, words: MessageWords
    ) -> None:
        self._cluster = cluster
        self._record_offsets = record_offsets
        self._recent = recent
        self.words = words
        self._holds: list[_Hold] = []
        self.rules: list[ActiveRule] = []

    def act(self, step: LinkAct) -> None:
        """Execute a link step."""
        fabric = self._cluster.fabric
        match step:
            case Hold():
                self._hold(step)
            case ReleaseAll():
                fabric.release_all()
                self._holds.clear()
            case Release(api, src, dst, direction):
                for held in self._take(api, src, dst, direction):
                    fabric.release(held)
            case Drop(api, src, dst):
                self._drop(api, src, dst)
            case Cut(src, both_ways, dst, close):
                cut = partial(fabric.cut, src, dst, both_ways=both_ways, close=close)
                self._add_rule(step, cut, bites="lost")
            case Delay(direction, word, src, dst, seconds):
                api = self.words.api_of(word)
                delay = partial(fabric.delay, api, src, dst, DIRECTIONS[direction], float(seconds))
                self._add_rule(step, delay, bites="delayed", api=api)
            case Double(word, src, dst):
                api = self.words.api_of(word)
                self._add_rule(step, partial(fabric.double, api, src, dst), bites="doubled", api=api)
            case HealAll():
                active, self.rules = self.rules, []
                self._holds.clear()
                fabric.heal_all()
                for rule in active:
                    self._prove(rule)
            case Heal(src, dst):
                self._heal(src, dst)

    def forget(self) -> None:
        """Undo all rules and holds; whether each rule affected a frame is not asked."""
        self.rules, self._holds = [], []
        self._cluster.fabric.heal_all()

    def hold_of(self, api: str, src: str, dst: str, direction: str = "") -> Held:
        """Return the last hold of that API, link and direction ("" for any); raise UsageError if there is none."""
        for hold in reversed(self._holds):
            if hold.is_named(api, src, dst, direction):
                return hold.handle
        raise UsageError(f"held {api} {src} -> {dst}: no such hold; expected one of {self._hold_names()}")

    def holds_back(self, src: str, dst: str) -> bool:
        """Return True if a hold of that link, which names both its ends, was not released."""
        return any((hold.step.src, hold.step.dst) == (src, dst) for hold in self._holds)

    def seen(self) -> dict[str, bool]:
        """Return hold -> True if it has held a frame, for each hold that was not released."""
        return {str(hold): bool(hold.handle.held) for hold in self._holds}

    def prove(self) -> None:
        """Raise PreconditionError if a rule that was not healed has affected no frame."""
        for rule in self.rules:
            self._prove(rule)

    def _hold(self, step: Hold) -> None:
        api, offset = (
            self.words.api_of(step.api),
            None if step.offset is None else self._record_offsets.number(step.offset),
        )
        held = self._cluster.fabric.hold(api, step.src, step.dst, DIRECTIONS[step.direction], offset)
        self._holds.append(_Hold(step=step, handle=held))

    def has_bitten(self, bites: str, src: str, dst: str, api: str = "") -> bool:
        """
        Return True if a rule of that kind on that link has affected a frame.

        Raises:
            UsageError: the link has no such rule.
        """
        named = self.words.api_of(api)
        mine = [r for r in self.rules if r.bites == bites and (src, dst) in r.ends and named in ("", r.api)]
        if not mine:
            raise UsageError(f"{bites} {src} -> {dst}: no such rule; expected one of {self._rule_names()}")
        return any(map(self._bit, mine))

    def _bit(self, rule: ActiveRule) -> bool:
        return any(
            self._recent.bit(rule.bites, src, dst, api=rule.api, since=rule.since) for src, dst in rule.ends
        )

    def _prove(self, rule: ActiveRule) -> None:
        if not self._bit(rule):
            raise PreconditionError(f"{rule.step}: no frame was {rule.bites}; expected one at least")

    def _add_rule(
        self, step: Cut | Delay | Double, make: Callable[[], object], *, bites: str, api: str = ""
    ) -> None:
        since = self._recent.bites  # before it is made: it may bite at once
        self.rules.append(ActiveRule(step=step, api=api, bites=bites, since=since, handle=make()))

    def _take(self, api: str, src: str, dst: str, direction: str = "") -> list[Held]:
        """Remove the named holds from the list; return them, oldest first."""
        self.hold_of(api, src, dst, direction)
        mine = [hold for hold in self._holds if hold.is_named(api, src, dst, direction)]
        self._holds = [hold for hold in self._holds if hold not in mine]
        return [hold.handle for hold in mine]

    def _drop(self, api: str, src: str, dst: str) -> None:
        """Drop held frames: release them into a cut with a reset, which is healed at once."""
        if not self.hold_of(api, src, dst).held:
            raise PreconditionError(f"drop {api} {src} -> {dst}: nothing is held; expected a frame to throw away")
        fabric = self._cluster.fabric
        cut = fabric.cut(src, dst, close=True)
        for held in self._take(api, src, dst):
            fabric.release(held)
        fabric.heal(cut)

    def _heal(self, src: str, dst: str) -> None:
        mine = [rule for rule in self.rules if (src, dst) in rule.ends]
        if not mine:
            raise UsageError(f"heal {src} -> {dst}: nothing to heal; expected one of {self._rule_names()}")
        for rule in mine:
            self._cluster.fabric.heal(rule.handle)
            self.rules.remove(rule)
        for rule in mine:
            self._prove(rule)

    def _rule_names(self) -> list[str]:
        return [str(rule.step) for rule in self.rules]

    def _hold_names(self) -> list[str]:
        return list(map(str, self._holds))
