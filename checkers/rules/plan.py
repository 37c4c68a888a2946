"""
What the harness did follows its schedule, and what the fabric and ZooKeeper's watch saw follows what was done.

Runner, nemesis and fabric are one process each, so that the order of their own ops is exact. An op of theirs that
contradicts the schedule, or the ops before it, says that the history lacks one, or has one that never was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

from checkers.definition import Definition
from checkers.facts.view import at, key_of, setup_of
from harness.events import (
    ControllerNode,
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
    Injection,
    LeaderAndIsr,
    LinkRule,
    Lost,
    OfFrame,
    OfLink,
    Produce,
    Registrations,
    Release,
    Setup,
    Step,
)
from harness.model import Anomaly, Kind, Op, OpType, PartOps, Source, events_of

_Break: TypeAlias = tuple[str, tuple[int, ...]]

_NAMED_MAX: Final = 5
_ZOOKEEPER: Final = "zookeeper"
_ANY: Final = "*"
# What the runner does by itself after the last step, and records as a step if it fails.
_CHECKED: Final = "every rule of a link bit"
# Steps that only some protocols have: `under kip380: await …`.
_SOME: Final = re.compile(r"(under|unless) .*?: ")
_COUNT: Final = re.compile(r"(\w+) (\d+)(?:\.\.(\d+))?")
_DOING: Final = frozenset({Source.RUNNER, Source.CLIENT, Source.NEMESIS})
# What the fabric sees of replicas; all else is about its rules.
_SEEN: Final = frozenset({"fetch", "fetched", "epoch-question", "epoch-answer", "commanded", "unreadable"})
_YES: Final = {True: "yes", False: "no"}

KINDS: Final = (
    Definition(
        kind=Kind.UNCHECKED,
        formula="texts(step invokes and skips) /= texts(schedule) less the steps of other protocols; or "
        "fault(f, N) invoked while step(t) is open and t does not say f and N; or set-up differs from schedule; "
        "or held(frame) without hold(rule) in force that matches; likewise lost and cut, delayed and delay, "
        "doubled and double, release and hold; or an answer without its question; or a state of ZooKeeper that "
        "equals the one before",
        words="What runner, nemesis, fabric or ZooKeeper's watch recorded contradicts the schedule or what they "
        "recorded before, so the history lacks an op, or has one that never was.",
        evidence="setup, step, faults, produce, every op of the fabric, the states in ZooKeeper",
        unchecked="It is the finding itself. A set-up without a schedule, of an older run, is not compared.",
        source="Jepsen: a history must be possible before it is judged",
    ),
)


def plan(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find ops of the harness that contradict the schedule or each other.

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
    topic, partition = key_of(ops)
    searches: tuple[Callable[[PartOps, Setup], Iterator[_Break]], ...]
    searches = (_header, _steps, _within_steps, _links, _frames, _zookeeper)
    return [
        Anomaly(
            kind=Kind.UNCHECKED,
            topic=topic,
            partition=partition,
            sentence=f"The history contradicts itself: {text}.",
            proof=proof,
        )
        for search in searches
        for text, proof in islice(search(ops, setup), _NAMED_MAX)
    ]


def _header(ops: PartOps, setup: Setup) -> Iterator[_Break]:
    """Yield where the set-up is not what the head of its own schedule asked for."""
    head, _, _ = (setup.schedule or "").partition("\n\n")
    words = {line.split()[0]: line.split(maxsplit=1)[1] for line in head.splitlines() if len(line.split()) > 1}
    index = next(op.index for op, _ in events_of(ops, Setup))
    if "nodes" in words:
        parts = [part.split() for part in words["nodes"].split(",")]
        replicas = next((part[:-1] for part in parts if part[-1] == "replicas"), [])
        named = {name for part in parts for name in part[:-1]}
        if replicas != [*setup.replicas] or named != setup.nodes.keys():
            text = f"the set-up has nodes {' '.join(setup.nodes)} and replicas {' '.join(setup.replicas)}"
            yield f"{text}, and its schedule asks for {words['nodes']}", (index,)
    if len({*setup.nodes.values()}) < len(setup.nodes):
        yield "two nodes of the set-up have one broker id", (index,)
    asked = dict(each.split("=", 1) for each in words.get("settings", "").split() if "=" in each)
    have = {"unclean_election": _YES[setup.unclean], "min_isr": str(setup.min_isr)}
    if setup.message_format is not None:
        have["message_format"] = setup.message_format
    for name, value in have.items():
        if asked.get(name, value) != value:
            yield f"the set-up has {name}={value}, and its schedule asks for {asked[name]}", (index,)
    for each in words.get("records", "").split(", "):
        match = _COUNT.fullmatch(each)
        if match is None:
            continue
        name, least, most = match[1], int(match[2]), int(match[3] or match[2])
        values = setup.records.get(name, ())
        if not least <= len(values) <= most or len({*values}) < len(values):
            yield f"the set-up has {len(values)} records {name}, and its schedule asks for {each}", (index,)


def _steps(ops: PartOps, setup: Setup) -> Iterator[_Break]:
    """Yield steps that the schedule does not have in that order, and steps of it that were not taken."""
    if setup.schedule is None:
        return
    body = [line.strip() for line in setup.schedule.partition("\n\n")[2].splitlines()]
    asked = [line for line in body if line and not line.startswith("#")]
    place, line, broke = 0, -1, False
    for op, step in events_of(ops, Step):
        if op.type is OpType.FAIL or (op.type is OpType.INFO and not step.skipped):
            broke = True
        if not (op.type is OpType.INVOKE or step.skipped):
            continue
        if step.text == _CHECKED:
            continue
        if step.line <= line:
            yield f"step {step.text!r} at {at(op)} is of line {step.line}, after line {line}", (op.index,)
        line = step.line
        if step.line == 0:
            continue
        passed = place
        while place < len(asked) and asked[place] != step.text:
            place += 1
        missed = [text for text in asked[passed:place] if not _SOME.match(text)]
        if place == len(asked):
            yield f"the schedule has no step {step.text!r} where it was taken, at {at(op)}", (op.index,)
            return
        if missed:
            yield f"step {missed[0]!r} of the schedule was not taken before {at(op)}", (op.index,)
        place += 1
    left = [text for text in asked[place:] if not _SOME.match(text)]
    if left and not broke:
        yield f"step {left[0]!r} of the schedule was not taken", ()


def _within_steps(ops: PartOps, setup: Setup) -> Iterator[_Break]:
    """Yield faults, records and link rules that are not of the step in which they were recorded."""
    step: tuple[Op, Step] | None = None
    sent: list[tuple[str, str, int]] = []
    for op in ops:
        if op.source not in _DOING and op.f != "hold":
            continue
        event = op.event
        if isinstance(event, Step):
            if op.type is OpType.INVOKE:
                if step is not None:
                    text = f"step {event.text!r} began at {at(op)}, before step {step[1].text!r} ended"
                    yield text, (step[0].index, op.index)
                step, sent = (op, event), []
            elif step is not None:
                if op.type is OpType.OK:
                    yield from _unsent(step, sent, setup)
                step = None
        elif isinstance(event, Produce) and op.type is OpType.INVOKE:
            sent.append((event.name, event.value, event.acks))
        elif step is not None and (why := _unlike(event, step[1].text)):
            text = f"{op.source} {op.f!r} at {at(op)} {why} in step {step[1].text!r}"
            yield text, (step[0].index, op.index)


def _unsent(step: tuple[Op, Step], sent: Sequence[tuple[str, str, int]], setup: Setup) -> Iterator[_Break]:
    """Yield it if a step to produce sent other records than it says."""
    words = _SOME.sub("", step[1].text).split()
    # A step that produces meanwhile may end before it has sent everything.
    if words[:1] != ["produce"] or len(words) < 3 or "meanwhile" in words:
        return
    acks = {"acks=all": -1, "acks=1": 1, "acks=0": 0}
    wanted = acks.get(next((word for word in words if word.startswith("acks=")), ""))
    if tuple(value for name, value, _ in sent if name == words[1]) != setup.records.get(words[1], ()):
        yield f"step {step[1].text!r} did not send the records {words[1]} of the set-up in order", (step[0].index,)
    elif any(name != words[1] or (wanted is not None and acks != wanted) for name, _, acks in sent):
        yield f"step {step[1].text!r} sent other records, or with other acks", (step[0].index,)


def _unlike(event: Event, text: str) -> str:
    """Return why an op does not belong to a step of that text, "" if it does or nothing is known of it."""
    words = _SOME.sub("", text).split()
    match event:
        case Injection(name=name, nodes=nodes) if [name, *sorted(nodes)] != [words[0], *sorted(words[1:])]:
            return f"of {' '.join(nodes)} is no fault"
        case Hold(link=link, direction=direction) if _ZOOKEEPER not in link:
            between = f"{link[0]} -> {link[1]}" in text
            return "" if between and words[1].startswith(direction) else "is no hold"
    return ""


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
    return (rule.api, rule.direction) == (seen.api, seen.direction) and (
        rule.from_offset is None or (seen.offset is not None and seen.offset >= rule.from_offset)
    )


def _same(held: OfFrame, dropped: OfFrame) -> bool:
    return (held.link, held.direction) == (dropped.link, dropped.direction)


def _of(event: OfLink) -> str:
    what = f"{event.api} {event.direction} " if isinstance(event, OfFrame | LinkRule) else ""
    return f"{what}{' -> '.join(event.link)}"


def _frames(ops: PartOps, setup: Setup) -> Iterator[_Break]:
    """Yield what replicas asked of each other that they cannot have asked."""
    replicas = setup.replicas
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


def _zookeeper(ops: PartOps, setup: Setup) -> Iterator[_Break]:
    """Yield states of ZooKeeper that are no change, and registrations that do not fit the end of the run."""
    last: dict[str, tuple[Op, Event]] = {}
    for f in ("leaderAndISR", "controller", "registered"):
        for op in ops.by_key.get((Source.ZOOKEEPER, f), ()):
            event, before = op.event, last.get(f)
            if before is not None and event == before[1]:
                text = f"ZooKeeper's {f} at {at(op)} is as it was before, and only changes are recorded"
                yield text, (before[0].index, op.index)
            last[f] = op, event
            if isinstance(event, Registrations | LeaderAndIsr):
                names = event.nodes if isinstance(event, Registrations) else event.isr
                if len({*names}) < len(names):
                    yield f"ZooKeeper's {f} names a node twice at {at(op)}", (op.index,)
    if not any(op.type is OpType.OK for op, _ in events_of(ops, Healed)):
        return
    for kind, f in ((Registrations, "registered"), (ControllerNode, "controller")):
        # A set-up without a schedule is of an older run, whose watch may have recorded less.
        if setup.schedule is not None and not [*events_of(ops, kind)]:
            yield f"ZooKeeper's {f} was never seen", ()
    if "registered" in last:
        op, event = last["registered"]
        assert isinstance(event, Registrations)
        if {*event.nodes} != setup.nodes.keys():
            missing = ", ".join(sorted(setup.nodes.keys() - {*event.nodes}))
            yield f"all faults were healed, and ZooKeeper still lacks {missing} since {at(op)}", (op.index,)
