"""
What the fabric and the metadata's watch recorded is possible: frames are held only under a hold, states change.

The fabric is one process, so that the order of its own ops is exact. An op of it that contradicts the ops
before says that the history lacks one, or has one that never was. Steps and the schedule are narration: no rule
reads them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, Final, TypeAlias

from checkers.definition import Definition
from checkers.facts.moments import anomaly
from checkers.facts.view import at, ever_assigned, noun, setup_of
from harness.events import (
    Cut,
    Delay,
    Delayed,
    Double,
    Doubled,
    Dropped,
    EpochAnswer,
    EpochQuestion,
    Event,
    Heal,
    Healed,
    Held,
    Hold,
    LinkRule,
    Lost,
    OfFrame,
    OfLink,
    Release,
    Setup,
)
from harness.model import Anomaly, Kind, Op, OpType, PartOps, Source, events_of

_Break: TypeAlias = tuple[str, tuple[int, ...]]

_NAMED_MAX: Final = 5
_METADATA: Final = "metadata"
_ANY: Final = "*"
# What the runner does by itself after the last step, and records as a step if it fails.
_CHECKED: Final = "every rule of a link bit"
# Steps that only some protocols have: `under kip380: await …`.
_SOME: Final = re.compile(r"(under|unless) .*?: ")
_COUNT: Final = re.compile(r"(\w+) (\d+)(?:\.\.(\d+))?")
_DOING: Final = frozenset({Source.RUNNER, Source.CLIENT, Source.NEMESIS})
# What the fabric sees of replicas; all else is about its rules.
_SEEN: Final = frozenset({"fetch", "fetched", "epoch-question", "epoch-answer", "learned", "unreadable"})
_YES: Final = {True: "yes", False: "no"}

KINDS: Final = (
    Definition(
        kind=Kind.UNCHECKED,
        formula="held(frame) without hold(rule) in force that matches; likewise lost and cut, delayed and delay, "
        "doubled and double, release and hold; or a rule in force after healed; or a fetch between nodes that are "
        "no replicas; or a state of the metadata that equals the one before",
        words="What the fabric or the metadata's watch recorded contradicts what it recorded before, so the "
        "history lacks an op, or has one that never was.",
        evidence="every op of the fabric, the states in the metadata",
        unchecked="It is the finding itself.",
        source="Jepsen: a history must be possible before it is judged",
    ),
)


def links(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find ops of the fabric and of the metadata's watch that contradict those before them.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        UNCHECKED anomalies, at most a few of each sort; [] if all of them fit.

    Source:  Jepsen: a history must be possible before it is judged.
    """
    ops = ops if isinstance(ops, PartOps) else PartOps(ops)
    setup = setup_of(ops)
    if setup is None:
        return []  # `unchecked` says so
    searches: tuple[Callable[[PartOps, Setup], Iterator[_Break]], ...]
    searches = (_links, _frames, _metadata)
    return [
        anomaly(ops, Kind.UNCHECKED, f"the history contradicts itself: {text}", proof)
        for search in searches
        for text, proof in islice(search(ops, setup), _NAMED_MAX)
    ]


def _links(ops: PartOps, _setup: Setup) -> Iterator[_Break]:
    """Yield frames that a rule changed when none was in force, and rules that ended without a beginning."""
    standing: list[tuple[type[Event], LinkRule | Cut]] = []
    needs: dict[type[Event], type[Event]] = {Held: Hold, Lost: Cut, Delayed: Delay, Doubled: Double}
    held: list[OfFrame] = []
    for op in ops:
        if op.source is not Source.FABRIC or op.f in _SEEN:
            continue
        match op.event:
            case Hold() | Cut() | Delay() | Double() as rule:
                standing.append((type(rule), rule))
            case Release() | Heal() as end:
                found = next((each for each in standing if _ends(end, each[1])), None)
                if found is None:
                    yield f"the fabric ended a rule at {at(op)} that was not in force: {_of(end)}", (op.index,)
                else:
                    standing.remove(found)
            case Held() | Lost() | Delayed() | Doubled() as seen:
                kind = needs[type(seen)]
                if not any(kind is each and _takes(rule, seen) for each, rule in standing):
                    text = f"{_of(seen)} was {op.f} at {at(op)}, and no rule was in force for it"
                    yield text, (op.index,)
                if isinstance(seen, Held):
                    held.append(seen)
            case Dropped() as dropped:
                same = next((each for each in held if _same(each, dropped)), None)
                if same is None:
                    yield f"{_of(dropped)} was dropped at {at(op)}, and it was not held", (op.index,)
                else:
                    held.remove(same)
    healed = next((op for op, _ in events_of(ops, Healed) if op.type is OpType.OK), None)
    if healed is not None:
        for _, left in standing:
            yield f"all was healed at {at(healed)}, and a rule was still in force: {_of(left)}", (healed.index,)


def _ends(end: Release | Heal, rule: LinkRule | Cut) -> bool:
    if end.link != rule.link or isinstance(end, Release) is not isinstance(rule, Hold):
        return False
    if isinstance(rule, Cut):
        return isinstance(end, Heal) and end.api is None
    mine = (rule.api, rule.direction, rule.from_offset, rule.topic)
    return mine == (end.api, end.direction, end.from_offset, end.topic)


def _takes(rule: LinkRule | Cut, seen: OfLink) -> bool:
    if any(mine not in (_ANY, theirs) for mine, theirs in zip(rule.link, seen.link, strict=True)):
        return False
    if isinstance(rule, Cut) or not isinstance(seen, OfFrame):
        return True
    return (
        rule.api in (_ANY, seen.api)
        and rule.direction == seen.direction
        and (rule.from_offset is None or (seen.offset is not None and seen.offset >= rule.from_offset))
    )


def _same(held: OfFrame, dropped: OfFrame) -> bool:
    return (held.link, held.direction) == (dropped.link, dropped.direction)


def _of(event: OfLink) -> str:
    what = f"{event.api} {event.direction} " if isinstance(event, OfFrame | LinkRule) else ""
    return f"{what}{' -> '.join(event.link)}"


def _frames(ops: PartOps, _setup: Setup) -> Iterator[_Break]:
    """Yield what replicas asked of each other that they cannot have asked."""
    replicas = ever_assigned(ops)
    for f in ("fetch", "fetched", "epoch-question", "epoch-answer"):
        for op in ops.by_key.get((Source.FABRIC, f), ()):
            event: Any = op.event
            follower, leader = event.link
            if follower == leader or follower not in replicas or leader not in replicas:
                yield f"{follower} cannot fetch from {leader}, as the fabric saw at {at(op)}", (op.index,)
            elif f in ("fetch", "fetched") and event.offset < 0:
                yield f"{follower} fetched from offset {event.offset} at {at(op)}", (op.index,)
    asked: dict[tuple[str, str], int] = {}
    talk = [*events_of(ops, EpochQuestion), *events_of(ops, EpochAnswer)]
    for op, said in sorted(talk, key=lambda each: each[0].index):
        waiting = asked.get(said.link, 0)
        if isinstance(said, EpochAnswer) and not waiting:
            yield f"{said.link[1]} answered {said.link[0]} at {at(op)}, which had asked nothing", (op.index,)
        asked[said.link] = max(0, waiting + (1 if isinstance(said, EpochQuestion) else -1))


def _metadata(ops: PartOps, _setup: Setup) -> Iterator[_Break]:
    """Yield states of the metadata that are no change."""
    for f in ("state", "controller", "members"):
        for before, op in pairwise(ops.by_key.get((Source.METADATA, f), ())):
            if op.event == before.event:
                text = f"{noun(ops)}'s {f} at {at(op)} is as it was before, and only changes are recorded"
                yield text, (before.index, op.index)
