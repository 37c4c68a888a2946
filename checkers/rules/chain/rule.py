"""
What one broker reports follows from what it reported before; if not, the history contradicts itself.

The events of one process reach the history in the order in which it sent them, so that nothing here is a race. A
kill keeps what was written; after a power loss, a log may end anywhere, and is known again once it is recovered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from checkers.definition import Definition
from checkers.facts.moments import anomaly, moments
from checkers.facts.view import at, final_logs, traits
from checkers.rules.chain.checkpoints import durable, flushed, moved, untrimmed, unused, unwritten, used, written
from checkers.rules.chain.log import appended, cut, recovered
from checkers.rules.chain.node import Given, Node
from checkers.rules.chain.roles import decided, fenced, followed, led, started
from harness.effect import LOSSY, Effect, nature_of
from harness.events import (
    Append,
    Checkpoint,
    ControllerOffice,
    Elected,
    Ended,
    Event,
    Fenced,
    Flush,
    Flushed,
    Follower,
    HighWatermark,
    Injection,
    Installed,
    Leader,
    LogStart,
    Member,
    Ready,
    Recovered,
    Started,
    Stopped,
    TookFormat,
    Truncate,
)
from harness.model import Anomaly, Kind, Op, Source, events_of

_Break: TypeAlias = tuple[str, str, tuple[int, ...]]

_NAMED_MAX: Final = 5
# Events that say nothing of what is followed here, and are many.
_SILENT: Final = frozenset({"high-watermark", "isr", "awaiting"})
# Events that a broker reports when something has changed, so never the same twice in a row.
_CHANGES: Final = frozenset(
    {"leader", "follower", "recovered", "high-watermark", "checkpoint", "controller", "elected", "isr",
     "ready", "fenced", "awaiting"}
)  # fmt: skip
# Events before a process says what it found: it opens its logs first.
_OPENING: Final = frozenset({"started", "flush", "note"})
# Events that say where the log ends.
_ENDING: Final = (Append, Truncate, Recovered, Leader, Follower)
# Effects after which a log may have lost bytes that were written.
_CUTS: Final = LOSSY

KINDS: Final = (
    Definition(
        kind=Kind.UNCHECKED,
        formula="for one node, end(i) = the end after its last append, truncate or recovered before i: "
        "base(append "
        "at i) /= end(i), or from(truncate at i) /= end(i), or log-end-offset(leader or follower at i) /= "
        "end(i), or log-end-offset(recovered at i) < end(i) without a power loss; likewise for its role, "
        "its leader epoch and its epoch checkpoint; or an epoch added to the checkpoint, and no leader or "
        "append of it next; or an append before a truncate since follower, or a truncate that nothing asked "
        "for; or flush(checkpoint, length) of another length; or leader, follower or ready before "
        "registered, elected(e) after its own process obeyed e and no other was controller since, fenced by whom "
        "it did not follow; or high-watermark(to) with to as before; or a final log whose high watermark the "
        "node never had; or the one end that differs",
        words="What a broker reports contradicts what it reported before, so the history lacks an event of it, "
        "or has one that never was.",
        evidence="started, recovered, registered, ready, leader, follower, append, truncate, checkpoint, flush, "
        "flushed, fenced, elected, high-watermark; final logs",
        unchecked="It is the finding itself. After a power loss a log is not compared until it is recovered.",
        source="Jepsen: a history must be possible before it is judged",
    ),
)


def chain(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find where a broker's events contradict each other.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        At most a few UNCHECKED anomalies; [] if every broker's story holds, or brokers report nothing.

    Source:  Jepsen: a history must be possible before it is judged.
    """
    found = [*islice(_told(ops), _NAMED_MAX), *islice(_twice(ops), _NAMED_MAX), *islice(_still(ops), _NAMED_MAX)]
    found += [*islice(_left(ops), _NAMED_MAX), *_alone(ops)]
    return [
        anomaly(ops, Kind.UNCHECKED, f"the history contradicts itself: {text}", proof, [node])
        for node, text, proof in found
    ]


def _told(ops: Sequence[Op]) -> Iterator[_Break]:
    """Follow every broker's events, and yield those that contradict the ones before."""
    nodes: dict[str, Node] = {}
    given = Given.of(ops)
    for op in ops:
        if op.source is Source.BROKER:
            if op.f in _SILENT:
                continue
            node = nodes.get(op.process)
            if node is None:
                node = nodes[op.process] = Node(op.process)
            event = op.event
            if isinstance(event, ControllerOffice):
                _presides(node, event, nodes.values())
            for text in _next(node, event, given):
                yield node.name, f"{node.name} {text} at {at(op)}", (node.last, op.index)
            if isinstance(event, _ENDING):
                node.last = op.index
            node.begun = (node.begun or op.f not in _OPENING) and op.f != "started"
        elif op.source is Source.NEMESIS:
            _suffer(op, op.event, nodes)
        elif isinstance(op.event, Installed) and (told := nodes.get(op.event.node)) is not None:
            told.epochs = None  # a protocol without epochs, or one that reads the log anew, finds others


def _presides(node: Node, office: ControllerOffice, nodes: Iterable[Node]) -> None:
    """Note who is controller by its own word: several, until a former one hears of the end of its office."""
    if office.active:
        others = [each for each in nodes if each is not node]
        node.rivalled = any(each.presides for each in others)
        for each in others:
            each.rivalled = True
    node.presides = office.active


def _suffer(op: Op, event: Event, nodes: dict[str, Node]) -> None:
    """Note what a fault may have done to its nodes."""
    if isinstance(event, Injection) and (effect := nature_of(op).effect) is not Effect.NONE:
        for name in event.nodes:
            node = nodes.setdefault(name, Node(name))
            node.down |= effect.is_down
            node.unsure |= effect in _CUTS


def _next(node: Node, event: Event, given: Given) -> Iterator[str]:
    """Return what contradicts the node's story so far, and go on with the story."""
    match event:
        case Append() | Truncate() | Leader() | Follower():
            yield from untrimmed(node)
            yield from unwritten(node, given)
            yield from _of_log(node, event, given)
        case LogStart(to=to):
            yield from moved(node, to, given)
        case Checkpoint(content=content):
            yield from written(node, content, given)
        case TookFormat(to=to):
            if node.format == to:
                yield f"took up message format {to}, which it had,"
            node.format = to
        case Flush():
            flushed(node, event, given)
        case Flushed(upto=upto):
            durable(node)
            if node.end is not None and upto > node.end and not node.unsure:
                yield f"flushed up to {upto}, beyond its log's end {node.end},"
        case Started():
            yield from started(node)
        case Recovered():
            yield from recovered(node, event, given)
        case Ended():
            node.unsure = True  # what it wrote in its last step, up to the write that failed, it has not reported
        case Fenced():
            yield from fenced(node, event)
        case Elected():
            yield from decided(node, event)
        case Stopped():
            node.end, node.low, node.epochs, node.kept = 0, 0, (), []
            node.role, node.epoch, node.leader, node.held = "", -1, -1, False
        case _:
            yield from _life(node, event, given)


def _life(node: Node, event: Event, given: Given) -> Iterator[str]:
    """Yield a step of a process's life that comes before an earlier one."""
    if isinstance(event, Member):
        node.registered = True
    elif isinstance(event, Ready):
        if not node.registered:
            yield f"had read {given.noun} before it had registered"
        node.ready = True


def _of_log(node: Node, event: Append | Truncate | Leader | Follower, given: Given) -> Iterator[str]:
    match event:
        case Append():
            yield from appended(node, event, given)
            yield from used(node, event)
        case Truncate():
            yield from unused(node, "cut its log")
            yield from cut(node, event, given)
        case Leader():
            yield from led(node, event, given)
        case Follower():
            yield from followed(node, event, given)


def _twice(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield events that a broker reports only when something changes, and that it reported just before."""
    last: dict[str, Op] = {}
    for op in ops:
        if op.source is not Source.BROKER:
            continue
        before = last.get(op.process)
        last[op.process] = op
        if before is not None and before.f == op.f and op.f in _CHANGES and before.event == op.event:
            yield (
                op.process,
                f"{op.process} reported {op.f!r} twice in a row, at {at(op)}",
                (before.index, op.index),
            )


def _still(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield high watermarks that are reported to move, and do not."""
    for op, event, before, _ in moments(ops):
        if isinstance(event, HighWatermark) and event.to == before.high_watermark:
            text = f"{op.process} reported that its high watermark moved to {event.to} at {at(op)}, where it was"
            yield op.process, text, (op.index,)


def _left(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield checkpoints of a high watermark that the node never had, and that it wrote and that are gone."""
    had: dict[str, set[int | None]] = {}
    for op, _, _, after in moments(ops):
        had.setdefault(op.process, {0}).add(after.high_watermark)
    wrote, idle = set(_wrote_marks(ops)), _without_role(ops)
    for node, log in final_logs(ops).items():
        mark = log.snapshot.high_watermark
        if node in had and mark is None and node in wrote and (log.end or node not in idle):
            yield node, f"{node} left no checkpoint of its high watermark, which it wrote", (log.index,)
        elif node in had and mark is not None and mark not in had[node]:
            text = f"{node} left a checkpoint of its high watermark of {mark}, and never had that"
            yield node, text, (log.index,)


def _wrote_marks(ops: Sequence[Op]) -> Iterator[str]:
    """Yield the nodes that wrote a checkpoint with this replica, and have lost neither it nor their disk since."""
    emptied = {
        node: op.index
        for op, fault in events_of(ops, Injection)
        if nature_of(op).effect is Effect.DISK_LOST
        for node in fault.nodes
    }
    gone: set[str] = set()
    for op in ops:  # a replica that was stopped is in the file again once another has a role in its place
        if isinstance(op.event, Stopped):
            gone.add(op.process)
        elif isinstance(op.event, Leader | Follower):
            if op.process in gone:
                emptied[op.process] = op.index
            gone.discard(op.process)
    for op, flush in events_of(ops, Flush):
        if (
            flush.path == traits(ops).marks_file
            and op.index > emptied.get(op.process, -1)
            and op.process not in gone
        ):
            yield op.process


def _without_role(ops: Sequence[Op]) -> set[str]:
    """Return the nodes that neither led nor followed since they last started: an empty log has no mark then."""
    idle: set[str] = set()
    for op in ops:
        if isinstance(op.event, Started):
            idle.add(op.process)
        elif isinstance(op.event, Leader | Follower):
            idle.discard(op.process)
    return idle


def _alone(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield a node that reported another end than its log has, where all logs, and all other reports, agree."""
    logs = final_logs(ops)
    last = {op.process: (op, after.end) for op, _, _, after in moments(ops) if after.end is not None}
    wrong = [node for node, log in logs.items() if node in last and last[node][1] != log.end]
    # A cut inside a batch removes all of it from the files, and some releases go on from the offset of the cut.
    inside = any(cut.end < cut.to for op, cut in events_of(ops, Truncate) if op.process in wrong)
    if len(wrong) == 1 and len(logs) > 1 and len({log.end for log in logs.values()}) == 1 and not inside:
        op, end = last[wrong[0]]
        text = (
            f"{wrong[0]} reported at {at(op)} that its log ends at {end}, and all logs end at {logs[wrong[0]].end}"
        )
        yield wrong[0], text, (op.index, logs[wrong[0]].index)
