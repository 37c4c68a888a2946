"""
Checks the steps of a scenario against each other: no step may heal a link that no step before it has broken,
release a hold that no step has made, add what no step has removed, or await records that no step has sent; and no
step or expectation may be about records that no step sends at all.

Earlier steps count for every variant and even if they were undone since: only an order that can never work is an
error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import NoReturn

from harness.cluster.names import OWN, SPEAKS_AS
from harness.model import UsageError
from harness.registry import nearest
from harness.scenario.condition_types import Acked, Delayed, Doubled, Held, Lost, OneBatch
from harness.scenario.expectation import parse_expectation
from harness.scenario.offsets import Mark
from harness.scenario.steps import (
    MEANWHILE,
    REFUSED,
    Act,
    Add,
    Await,
    Cut,
    Delay,
    Double,
    Drop,
    Heal,
    Hold,
    Install,
    Produce,
    Release,
    Remove,
    Require,
)
from harness.scenario.variant import Variants


def check_order(steps: Iterable[tuple[str, Act]]) -> None:
    """
    Check the order of steps.

    Args:
        steps: each step with its place, for errors.

    Raises:
        UsageError: a step needs something that no step before it has made.
    """
    made = _Made()
    for where, act in steps:
        made.check(where, act)
        made.note(act)


def check_records(steps: Collection[tuple[str, Act]], expectations: Mapping[str, tuple[str, str]]) -> None:
    """
    Check that the records which steps and expectations are about are sent.

    A step may name the end of records that a later step sends: their number is known from the start.

    Args:
        steps: each step with its place, for errors.
        expectations: variant's text -> its place, and what is expected.

    Raises:
        UsageError: no step sends the records, or none that may have them acknowledged.
    """
    sends = [act for _, act in steps if isinstance(act, Produce)]
    sent = {act.group for act in sends}
    for where, act in steps:
        about = act.condition if isinstance(act, Await | Require) else act
        for value in (getattr(about, each.name) for each in fields(about)):
            if isinstance(value, Mark) and value.name not in sent:
                raise UsageError(f"{where}: no step produces {value.name}; expected one that does")
    acknowledged = {act.group for act in sends if act.acks != 0 and act.outcome != REFUSED}
    for where, outcome in expectations.values():
        for name in (name for term in parse_expectation(outcome) for name in term.names):
            if name not in acknowledged:
                raise UsageError(
                    f"{where}: expectation {outcome!r}: no step has {name} acknowledged; expected a step "
                    f"'produce {name} acks=1' or 'acks=all'"
                )


def check_installed(steps: Sequence[tuple[str, Act]], known: Variants | None) -> None:
    """Check that every protocol which is installed exists, but for those that depend on the run's own."""
    for where, act in steps:
        if isinstance(act, Install) and known is not None and act.protocol[0] != SPEAKS_AS and act.protocol != OWN:
            try:
                known.change(act.protocol, ())
            except UsageError as error:
                raise UsageError(f"{where}: {error}") from error


@dataclass(slots=True)
class _Made:
    """What the steps so far have made."""

    holds: list[Hold] = field(default_factory=list)
    rules: list[Cut | Delay | Double] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    under_way: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def note(self, act: Act) -> None:
        match act:
            case Hold():
                self.holds.append(act)
            case Cut() | Delay() | Double():
                self.rules.append(act)
            case Produce(group=group, outcome=outcome):
                self.sent.append(group)
                if outcome == MEANWHILE:
                    self.under_way.append(group)
            case Remove(place):
                self.removed.append(place.topic)

    def check(self, where: str, act: Act) -> None:
        about = act.condition if isinstance(act, Await | Require) else act
        match about:
            case Release(api, src, dst, direction) | Held(api, src, dst, direction):
                self._need_hold(where, (api, src, dst), direction)
            case Drop(api, src, dst):
                self._need_hold(where, (api, src, dst), "")
            case Heal(src, dst):
                self._need_rule(where, (src, dst), lambda _: True)
            case Lost(src, dst):
                self._need_rule(where, (src, dst), lambda rule: isinstance(rule, Cut))
            case Delayed(api, src, dst):
                self._need_rule(where, (src, dst), lambda rule: isinstance(rule, Delay) and rule.api == api)
            case Doubled(api, src, dst):
                self._need_rule(where, (src, dst), lambda rule: isinstance(rule, Double) and rule.api == api)
            case Acked(group) if group not in self.under_way:
                _never(where, f"produces {group} meanwhile", self.under_way, group)
            case Add(place) if place.topic not in self.removed:
                _never(where, f"removes partitions of {place.topic}", self.removed, place.topic)
            case OneBatch(group) if group not in self.sent:
                _never(where, f"produces {group}", self.sent, group)

    def _need_hold(self, where: str, name: tuple[str, str, str], direction: str) -> None:
        if not any(
            (hold.api, hold.src, hold.dst) == name and direction in ("", hold.direction) for hold in self.holds
        ):
            wanted = f"{direction} {name[0]} {name[1]} -> {name[2]}".strip()
            _never(where, "makes such a hold", [str(hold).removeprefix("hold ") for hold in self.holds], wanted)

    def _need_rule(self, where: str, link: tuple[str, str], fits: Callable[[Cut | Delay | Double], bool]) -> None:
        if not any(link in ends_of(rule) and fits(rule) for rule in self.rules):
            _never(where, "makes such a rule of the link", list(map(str, self.rules)), " -> ".join(link))


def ends_of(rule: Cut | Delay | Double) -> tuple[tuple[str, str], ...]:
    """Return (src, dst) of each link that a rule affects."""
    there, back = (rule.src, rule.dst), (rule.dst, rule.src)
    return (there, back) if isinstance(rule, Cut) and rule.both_ways else (there,)


def _never(where: str, what: str, made: Collection[str], wanted: str) -> NoReturn:
    known = f"one of {', '.join(made)}" if made else "a step that does so before it"
    raise UsageError(f"{where}: no step above {what}; expected {known}{nearest(wanted, made)}")
