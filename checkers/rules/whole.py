"""
A history that is not whole proves nothing: what is missing, doubled, unreadable or in the wrong place.

Whether indexes and times rise is judged for all ops of a run at once (checkers/facts/sequence.py); all else here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

from checkers.definition import Definition
from checkers.facts.moments import anomaly
from checkers.facts.unread import unread
from checkers.facts.view import at, is_churned, key_of, names_place, noun, protocol_of, setup_of, traits
from checkers.rules.lives import broken_lives
from checkers.rules.values import strange_values
from harness.events import (
    AddPartitions,
    Assigned,
    ControllerNamed,
    CreateTopic,
    DeleteTopic,
    Done,
    Event,
    Exited,
    FrameUnreadable,
    Healed,
    Injection,
    Learned,
    Members,
    MetadataState,
    OfLink,
    Poll,
    Produce,
    Read,
    RemovePartitions,
    RunnerNote,
    Setup,
    Started,
    Step,
)
from harness.model import Anomaly, Kind, Op, OpType, PartOps, Source, events_of

_Lack: TypeAlias = tuple[str, tuple[int, ...]]
_Asked: TypeAlias = tuple[object, ...]
_OfTopic: TypeAlias = CreateTopic | DeleteTopic | RemovePartitions | AddPartitions
_Ended: TypeAlias = Produce | Read | Poll | _OfTopic | Injection | Step

# The first of them say what is wrong with a history; thousands of sentences say no more.
_NAMED_MAX: Final = 5
# Whose ops may name processes of services: a fault hits them, and links lead to those that nodes call.
_ALSO_SERVICES: Final = (Source.NEMESIS, Source.FABRIC)
# Ends of links that are no nodes.
_ENDS: Final = frozenset({"*", "metadata", "clients"})
# Sources of ops that the run waits for, so that none may come after its end.
_BEFORE_END: Final = frozenset({Source.CLIENT, Source.NEMESIS, Source.LOG})
# Events in which null is no node, rather than a node that is not of the run.
_MAY_BE_NONE: Final = frozenset({"controller"})
# The target whose brokers emit events, and so must have emitted some.

_TOPIC_FS: Final = frozenset({"create-topic", "delete-topic", "remove-partitions", "add-partitions"})

# f of a broker's event -> the ids of brokers in it.
_IDS: Final[Mapping[str, Callable[[Any], Sequence[int]]]] = {
    "leader": lambda led: led.isr,
    "follower": lambda follows: (follows.leader,),
    "isr": lambda changed: changed.isr,
    "elected": lambda chosen: (*chosen.isr, *((chosen.leader,) if chosen.leader >= 0 else ())),
}

KINDS: Final = (
    Definition(
        kind=Kind.UNCHECKED,
        formula="exists i: index(op[i]) /= i or time(op[i]) < time(op[i-1]) or decode(op[i]) fails; or exists an "
        "ok, fail or info whose invoke is not exactly one earlier op with the same process and values; or an "
        "invoke without a completion before done; or an op of a node, topic or partition not in set-up; "
        "or an op of a broker before started; or an op of client, nemesis, log or a step after done; or no "
        "produce with acks /= 0 was acknowledged; or the fabric could not read a frame; or a client's process "
        "goes on after it was killed, or begins elsewhere than the one that it continues had read to",
        words="The history is not whole: an op is missing, doubled, unreadable, of an unknown node or in the "
        "wrong place. What it shows may not have happened so, and what it does not show may have happened.",
        evidence="every op of the run",
        unchecked="It is the finding itself.",
        source="Jepsen: a run without evidence is unknown",
    ),
)


def whole(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find what keeps a history from being whole.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        UNCHECKED anomalies, at most a few of each sort; [] if the history is whole.

    Source:  Jepsen: every completion has its invoke, and a run without evidence is unknown.
    """
    ops = ops if isinstance(ops, PartOps) else PartOps(ops)
    if not ops:
        return []  # `unchecked` says what is missing
    if unknown := unread(ops):
        # What an op that cannot be read would have said, the other searches would miss.
        lacks: list[_Lack] = [(why, (op.index,)) for op, why in unknown[:_NAMED_MAX]]
        if len(unknown) > _NAMED_MAX:
            lacks.append((f"{len(unknown) - _NAMED_MAX} more ops cannot be read", (unknown[-1][0].index,)))
    else:
        searches: tuple[Callable[[PartOps], Iterator[_Lack]], ...]
        searches = (
            _frame_of_run,
            _places,
            _completions,
            _clients,
            _brokers,
            _frames,
            strange_values,
            broken_lives,
        )
        lacks = [lack for search in searches for lack in islice(search(ops), _NAMED_MAX)]
    return [anomaly(ops, Kind.UNCHECKED, f"the history is not whole: {text}", proof) for text, proof in lacks]


def _frame_of_run(ops: PartOps) -> Iterator[_Lack]:
    """Yield what is wrong with the ops that begin and end a run."""
    for kind, name in ((Setup, "set-up"), (Done, "done"), (Healed, "healed")):
        found = [op for op, _ in events_of(ops, kind)]
        if len(found) > 1:
            yield f"it has {len(found)} ops of {name}; expected one", tuple(op.index for op in found)
    setups = [op for op, _ in events_of(ops, Setup)]
    if setups and ops[0] is not setups[0]:
        yield f"op {ops[0].index} comes before the set-up; expected the set-up first", (ops[0].index,)
    ends = [op.index for op, _ in events_of(ops, Done)]
    if ends:
        for op in reversed(ops):
            if op.index <= ends[0]:
                break
            if op.source in _BEFORE_END or (op.source is Source.RUNNER and op.f in ("step", "healed")):
                yield f"{op.source} {op.f!r} at {at(op)} comes after the end of the run", (ends[0], op.index)
    healed = next((op for op, _ in events_of(ops, Healed)), None)
    for op in ops.by_key.get((Source.LOG, "snapshot"), ()):
        if healed is not None and op.index < healed.index:
            yield f"{op.process}'s log was read at {at(op)}, before the faults were healed", (op.index,)


def _places(ops: PartOps) -> Iterator[_Lack]:
    """Yield ops of a node, topic or partition that the set-up does not name."""
    setup = setup_of(ops)
    if setup is None:
        return
    topic, partition = key_of(ops)
    if not names_place(setup, topic, partition):
        first = next(op for op in ops if op.source not in (Source.RUNNER, Source.NEMESIS) and op.place)
        text = f"op {first.index} is about {topic}-{partition}; expected {setup.topic}-{setup.partition}"
        yield text, (first.index,)
    for (source, f), group in ops.by_key.items():
        if (source is Source.CLIENT and f != "poll") or f == "step":
            continue
        expected = {*(setup.replicas if source is Source.LOG else setup.nodes)}
        expected |= {*(setup.services or ())} if source in _ALSO_SERVICES else set()
        if _all_names(source, f, group) <= (expected | {None} if f in _MAY_BE_NONE else expected):
            continue
        for op in group:
            if strange := sorted(
                {str(name) for name in _names(op) if name is not None or f not in _MAY_BE_NONE} - expected
            ):
                text = f"{source} {f!r} at {at(op)} names {', '.join(strange)}; the set-up names "
                yield text + ", ".join(sorted(expected)), (op.index,)


def _all_names(source: Source, f: str, group: Sequence[Op]) -> set[str | None]:
    """Return the names of nodes in the ops of one source and f; there are many of brokers and of links."""
    if source is Source.BROKER or source is Source.LOG:
        return {op.process for op in group}
    if source is Source.FABRIC and f != "learned":
        events: Iterator[Any] = (op.event for op in group)
        return {end for event in events for end in event.link} - _ENDS
    return {name for op in group for name in _names(op)}


def _names(op: Op) -> Sequence[str | None]:
    """Return the names of nodes in an op."""
    return (op.process,) if op.source is Source.BROKER or op.source is Source.LOG else _told(op.event)


def _told(event: Event) -> Sequence[str | None]:
    """Return the names of nodes in an event."""
    match event:
        case Learned(link=link, leader=leader, isr=isr):
            return (*link, *isr) if leader is None else (*link, leader, *isr)
        case OfLink(link=link):
            return [end for end in link if end not in _ENDS]
        case Injection(nodes=nodes) | Members(nodes=nodes):
            return nodes
        case Assigned(replicas=replicas):
            return replicas
        case MetadataState(leader=leader, isr=isr):
            return isr if leader is None else (leader, *isr)
        case Poll(node=""):  # a client that does not tell whom it asked
            return ()
        case ControllerNamed(node=node) | Exited(node=node) | RunnerNote(node=node) | Poll(node=node):
            return (node,)
        case _:
            return ()


def _completions(ops: PartOps) -> Iterator[_Lack]:
    """Yield completions without their invoke, and invokes without their completion."""
    over = bool(ops.by_key.get((Source.RUNNER, "done")))
    setup = setup_of(ops)
    untold = frozenset((setup.untold or ()) if setup else ())
    asked: Callable[[Op, Any], _Asked]
    for (source, f), group in ops.by_key.items():
        if f == "produce":
            asked = _produced
        elif f == "read":
            asked = _read
        elif f == "poll":
            asked = _polled
        elif f in _TOPIC_FS:
            asked = _of_topic
        elif f == "step":
            asked = _stepped
        elif source is Source.NEMESIS:
            asked = _injected
        else:
            continue
        waiting: dict[_Asked, Op] = {}
        for op in group:
            event: Any = op.event
            key = asked(op, event)
            if op.type is OpType.INVOKE:
                if key in waiting:
                    yield f"{_named(op)} was invoked before", (waiting[key].index, op.index)
                waiting[key] = op
            elif waiting.pop(key, None) is None and not (f == "step" and event.skipped):
                yield f"{_named(op)} ended as {op.type.value}, and has no such invoke", (op.index,)
            if odd := _odd(op.type, event, untold):
                yield f"{_named(op)} is {op.type.value}, and {odd}", (op.index,)
        if over:
            for op in waiting.values():
                yield f"{_named(op)} never ended", (op.index,)


# What an invoke and its completion share.
def _produced(op: Op, sent: Produce) -> _Asked:
    return op.process, *sent.asked


def _read(op: Op, read: Read) -> _Asked:
    return op.process, read.topic, read.partition


def _polled(op: Op, poll: Poll) -> _Asked:
    return op.process, poll.topic, poll.partition, poll.node, poll.position, poll.sought


def _of_topic(op: Op, asked: _OfTopic) -> _Asked:
    return op.process, op.f, asked.topic, getattr(asked, "first", 0), getattr(asked, "partitions", ())


def _injected(op: Op, fault: Injection) -> _Asked:
    return op.process, fault.name, fault.nodes, fault.effect, fault.band, fault.heals


def _stepped(op: Op, step: Step) -> _Asked:
    return op.process, step.line, step.text, step.narrative


def _named(op: Op) -> str:
    """Return an op in words: what was asked, by whom and when."""
    match op.event:
        case Produce(value=value):
            what = f"{op.process}'s produce of {value}"
        case Injection(name=name, nodes=nodes):
            what = f"fault {name} of {' '.join(nodes)}"
        case Step(text=text):
            what = f"step {text!r}"
        case _:
            what = f"{op.process}'s {op.f}"
    return f"{what} at {at(op)}"


def _odd(type_: OpType, event: _Ended, untold: Collection[str]) -> str:
    """
    Return how an op contradicts its own type, "" if it does not.

    Args:
        untold: The producers that are not told at which offset a record was acknowledged.
    """
    ok = type_ is OpType.OK
    error = event.error
    if isinstance(event, Produce):
        if ok and event.acks != 0 and event.name not in untold and (event.offset is None or event.offset < 0):
            return "has no offset"
        if not ok and event.offset is not None:
            return "has an offset"
    elif isinstance(event, Read):
        if ok is (event.records is None) or (ok and (event.high_watermark is None or event.position is not None)):
            return "has the wrong keys for that"
    elif isinstance(event, Poll):
        # A client that does not tell whom it asked may not know the answer's high watermark either.
        told = event.high_watermark is not None or (ok and not event.node)
        if ok is (event.records is None) or ok is not told:
            return "has the wrong keys for that"
    elif isinstance(event, Injection):
        if ok is (event.probe is None):
            return "has no probe" if ok else "has a probe"
    elif isinstance(event, Step) and event.skipped:
        if type_ is not OpType.INFO:
            return f"was skipped: {event.skipped}"
        error = event.skipped
    if ok or type_ is OpType.INVOKE:
        return f"has an error: {error}" if error else ""
    return "" if error else "has no error"


def _clients(ops: PartOps) -> Iterator[_Lack]:
    """Yield it if no acknowledgement promises anything; of what comes and goes none needs to."""
    if is_churned(ops):
        return
    acked = [(op, sent) for op, sent in events_of(ops, Produce) if op.type is OpType.OK]
    if acked and all(sent.acks == 0 for _, sent in acked):
        yield (
            "every record that was acknowledged had acks=0, which promises nothing",
            tuple(op.index for op, _ in acked)[:_NAMED_MAX],
        )


def _brokers(ops: PartOps) -> Iterator[_Lack]:
    """Yield what the sources lack that this run must have had."""
    setup = setup_of(ops)
    if setup is None:
        return
    # A churned topic may go before it has a state.
    if not ops.by_key.get((Source.METADATA, "state")) and not is_churned(ops):
        yield f"{noun(ops)}'s state of the partition was never seen", ()
    if not traits(ops).emits_events or not ops.by_key.get((Source.BROKER, "started")):
        return  # a comparison with Apache Kafka leaves out the events of both
    told: set[str] = set()
    ids = setup.nodes
    for op, started in events_of(ops, Started):
        if started.id != ids.get(op.process, started.id):
            text = f"{op.process} started as {started.id} at {at(op)}; the set-up has {ids[op.process]}"
            yield text, (op.index,)
        due = protocol_of(ops, op.process, op.index)
        if started.protocol != due:
            text = f"{op.process} started with {started.protocol} at {at(op)}; due was {due}, as it was set up"
            yield text, (op.index,)
    for op in ops:
        if op.source is Source.BROKER and op.process not in told:
            told.add(op.process)
            if op.f != "started":
                yield f"{op.process} reported {op.f!r} at {at(op)} before it started", (op.index,)
            if len(told) == len(ids):
                break
    known = {*ids.values()}
    for f, of in _IDS.items():
        for op in ops.by_key.get((Source.BROKER, f), ()):
            if not known.issuperset(of(op.event)):
                text = f"{op.process}'s {f!r} at {at(op)} names broker {max({*of(op.event)} - known)}"
                yield f"{text}; the set-up names {', '.join(map(str, sorted(known)))}", (op.index,)
    for node in sorted(ids.keys() - told):
        yield f"nothing of {node} was recorded, though its process reports what it does", ()


def _frames(ops: PartOps) -> Iterator[_Lack]:
    """Yield frames that the fabric could not read: what they said is not in the history."""
    for op, frame in events_of(ops, FrameUnreadable):
        link = " -> ".join(frame.link)
        text = f"a {frame.direction} of {frame.api} on {link} could not be read at {at(op)}: {frame.error}"
        yield text, (op.index,)
