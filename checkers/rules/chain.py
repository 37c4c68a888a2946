"""
What one broker reports follows from what it reported before; if not, the history contradicts itself.

The events of one process reach the history in the order in which it sent them, so that nothing here is a race. A
kill keeps what was written; after a power loss, a log may end anywhere, and is known again once it is recovered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Final, TypeAlias

from checkers.definition import Definition
from checkers.facts.moments import anomaly
from checkers.facts.view import at, setup_of
from harness.effect import Effect, nature_of
from harness.events import (
    Append,
    Checkpoint,
    Elected,
    EpochQuestion,
    Event,
    Fetch,
    Flushed,
    Follower,
    Injection,
    Leader,
    Recovered,
    Registered,
    Started,
    Stopped,
    Truncate,
)
from harness.model import Anomaly, Kind, Op, Source, events_of

_Break: TypeAlias = tuple[str, str, tuple[int, ...]]
_Epochs: TypeAlias = tuple[tuple[int, int], ...]

_NAMED_MAX: Final = 5
# Events that say nothing of the node's log or role, and are many.
_SILENT: Final = frozenset(
    {"flush", "high-watermark", "ready", "isr", "fenced", "awaiting", "registered", "elected"}
)
# Events that a broker reports when something has changed, so never the same twice in a row.
_CHANGES: Final = frozenset(
    {"follower", "recovered", "high-watermark", "checkpoint", "controller", "elected", "isr",
     "ready", "fenced", "awaiting"}
)  # fmt: skip
_ENDING: Final = frozenset({"append", "truncate", "recovered", "leader", "follower", "checkpoint"})
# Effects after which a log may have lost bytes that were written.
_CUTS: Final = frozenset({Effect.POWER_LOST, Effect.LOG_CUT, Effect.DISK_GONE})

KINDS: Final = (
    Definition(
        kind=Kind.UNCHECKED,
        formula="for one node, end(i) = the end after its last append, truncate or recovered before i: "
        "base(append at i) /= end(i), or from(truncate at i) /= end(i), or log-end-offset(leader or follower at "
        "i) /= end(i), or log-end-offset(recovered at i) < end(i) without a power loss; "
        "likewise for its role, its leader epoch and its epoch checkpoint",
        words="What a broker reports contradicts what it reported before, so the history lacks an event of it, "
        "or has one that never was.",
        evidence="started, recovered, leader, follower, append, truncate, checkpoint, flushed, registered, "
        "elected; fabric: fetch, epoch-question",
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
    nodes: dict[str, _Node] = {}
    setup = setup_of(ops)
    stamps = setup is not None and setup.rules.get("epochs") == "yes"
    stamps &= setup is not None and setup.message_format in (None, "with_epochs")
    found = [*islice(_told(ops, nodes, stamps), _NAMED_MAX)]
    found += islice(_registrations(ops), _NAMED_MAX)
    found += islice(_twice(ops), _NAMED_MAX)
    found += islice(_seen_on_links(ops), _NAMED_MAX)
    return [
        anomaly(ops, Kind.UNCHECKED, f"the history contradicts itself: {text}", proof, [node])
        for node, text, proof in found
    ]


@dataclass(slots=True)
class _Node:
    """
    What a node has reported so far.

    Attributes:
        end: its log's end, None if it is not known.
        low: where its files may end at the earliest: a cut inside a batch removes all of the batch from them.
        epochs: its epoch checkpoint, None if it is not known.
        wrote: whether it reported a checkpoint; in older histories brokers do not.
        role, epoch: of its last leader or follower event; "" before it.
        kept: the [base, end) of the appends still in its log, in the order of offsets; None if not all are known.
        unsure: whether a fault may have cut its log since it last reported its end.
        silent: whether it was restarted with a log, and has not reported it.
        down: whether a fault took it down, so that it may start.
        last: the index of the event that set its end.
    """

    name: str
    end: int | None = None
    low: int = 0
    epochs: _Epochs | None = ()
    wrote: bool = False
    role: str = ""
    epoch: int = -1
    kept: list[tuple[int, int]] | None = field(default_factory=list)
    unsure: bool = False
    silent: bool = False
    down: bool = True
    last: int = 0


def _told(ops: Sequence[Op], nodes: dict[str, _Node], stamps: bool) -> Iterator[_Break]:
    """Follow every broker's events, and yield those that contradict the ones before."""
    for op in ops:
        if op.source is Source.BROKER:
            if op.f in _SILENT:
                continue
            node = nodes.get(op.process)
            if node is None:
                node = nodes[op.process] = _Node(op.process)
            for text in _next(node, op, op.event, stamps):
                yield node.name, f"{node.name} {text} at {at(op)}", (node.last, op.index)
        elif op.source is Source.NEMESIS:
            _suffer(op, op.event, nodes)


def _suffer(op: Op, event: Event, nodes: dict[str, _Node]) -> None:
    """Note what a fault may have done to its nodes."""
    if isinstance(event, Injection) and (effect := nature_of(op).effect) is not Effect.NONE:
        for name in event.nodes:
            node = nodes.setdefault(name, _Node(name))
            node.down |= effect.is_down
            node.unsure |= effect in _CUTS


def _next(node: _Node, op: Op, event: Event, stamps: bool) -> Iterator[str]:
    """Yield what contradicts the node's story so far, and go on with the story."""
    match event:
        case Started():
            if not node.down:
                yield "started again, and nothing had taken it down"
            node.down, node.role = False, ""
            if node.unsure:
                # A log of which nothing was flushed may be gone, and is then not reported.
                node.end, node.low, node.epochs, node.kept = None, 0, None, None
            node.silent = bool(node.end)
            return
        case Recovered() as log:
            yield from _recovered(node, log)
        case Leader() | Follower() as word:
            yield from _follows(node, word.log_end_offset, "reported a log end of")
            node.role, node.epoch = ("leader" if isinstance(word, Leader) else "follower"), word.epoch
            node.end, node.low = word.log_end_offset, min(node.low, word.log_end_offset)
        case Append() as added:
            yield from _appended(node, added, stamps)
        case Truncate() as cut:
            yield from _cut(node, cut)
        case Checkpoint(content=content):
            yield from _written(node, content)
            return
        case Flushed(upto=upto):
            if node.end is not None and upto > node.end and not node.unsure:
                yield f"flushed up to {upto}, beyond its log's end {node.end},"
            return
        case Stopped():
            node.end, node.low, node.epochs, node.kept = None, 0, None, None
        case _:
            return
    node.last = op.index


def _follows(node: _Node, start: int, words: str) -> Iterator[str]:
    if node.silent:
        yield "did not say what it found of its log when it was restarted, before it went on"
        node.silent = False
    elif node.end is not None and not node.low <= start <= node.end:
        yield f"{words} {start}, where its log ended at {node.end},"


def _recovered(node: _Node, log: Recovered) -> Iterator[str]:
    found = log.log_end_offset
    if not node.unsure and node.end is not None and found < node.low:
        yield f"found {found} as its log's end, where it had {node.end}, and no power was lost,"
    if (
        not node.unsure
        and node.wrote
        and node.epochs is not None
        and _below(log.epochs, found) != _below(node.epochs, found)
    ):
        yield f"found the epochs {_text(log.epochs)}, where it had {_text(node.epochs)}, and no power was lost,"
    if node.unsure or node.end is None or found != node.end:
        node.kept = None
    node.end, node.low, node.epochs = found, found, log.epochs
    node.unsure = node.silent = False


def _appended(node: _Node, added: Append, stamps: bool) -> Iterator[str]:
    yield from _follows(node, added.base, "appended from")
    if added.end <= added.base:
        yield f"appended from {added.base} to {added.end}"
    if added.role != node.role and "leader" not in (added.role, node.role):  # `leaders` judges who leads
        yield f"appended as {added.role or 'nobody'} when it was {node.role or 'neither leader nor follower'}"
    if stamps and added.role == node.role == "follower" and node.epochs and node.epochs[-1][0] != added.epoch:
        yield f"appended in epoch {added.epoch} when its newest epoch was {node.epochs[-1][0]}"
    node.end, node.low = added.end, added.end
    if node.kept is not None:
        node.kept.append((added.base, added.end))


def _cut(node: _Node, cut: Truncate) -> Iterator[str]:
    yield from _follows(node, cut.start, "cut its log from")
    if node.role != "follower":
        yield f"cut its log when it was {node.role or 'neither leader nor follower'}"
    elif cut.epoch != node.epoch:
        yield f"cut its log in epoch {cut.epoch} when it followed epoch {node.epoch}"
    if cut.reason != "full" and not cut.end <= cut.to <= cut.start:
        yield f"cut its log from {cut.start} to {cut.to}, and it ends at {cut.end},"
    left = 0 if cut.reason == "full" else min(cut.to, cut.end)
    if cut.to < cut.start:
        inside = None if node.kept is None else [base for base, end in node.kept if base < left < end]
        node.low = min(0 if inside is None else left, *(inside or (left,)))
    node.end = cut.to
    if node.kept is not None:
        node.kept = [(base, min(end, left)) for base, end in node.kept if base < left]


def _written(node: _Node, content: _Epochs) -> Iterator[str]:
    """Yield it if a checkpoint is not the one before, cut, with at most one more epoch."""
    before, same = node.epochs, 0
    node.epochs, node.wrote = content, True
    if before is None:
        return
    for old, new in zip(before, content, strict=False):
        if old != new:
            break
        same += 1
    if len(content) - same > 1:
        yield f"wrote the epochs {_text(content)} after {_text(before)}"
    elif len(content) > same and node.end is not None and content[-1][1] < node.end and node.role == "leader":
        yield f"gave epoch {content[-1][0]} the start {content[-1][1]}, where its log ended at {node.end},"
    elif any(new[0] <= old[0] or new[1] < old[1] for old, new in pairwise(content)):
        yield f"wrote the epochs {_text(content)}, which do not rise,"


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


def _seen_on_links(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield fetches from where no log of that node ever ended, and questions about epochs that it never had."""
    ends: dict[str, set[int]] = {}
    epochs: dict[str, set[int]] = {}
    for op in ops:
        if op.source is not Source.BROKER or op.f not in _ENDING:
            continue
        match op.event:
            case Append(base=base, end=end):
                ends.setdefault(op.process, set()).update((base, end))
            case Truncate(start=start, to=to, end=end):
                ends.setdefault(op.process, set()).update((start, to, end))
            case Recovered() | Leader() | Follower() as word:
                ends.setdefault(op.process, set()).add(word.log_end_offset)
                if isinstance(word, Recovered):
                    epochs.setdefault(op.process, set()).update(epoch for epoch, _ in word.epochs)
            case Checkpoint(content=content):
                epochs.setdefault(op.process, set()).update(epoch for epoch, _ in content)
    if not ends:
        return
    for op, fetch in events_of(ops, Fetch):
        node = fetch.link[0]
        if node in ends and fetch.offset not in ends[node]:
            yield node, f"{node} fetched from {fetch.offset} at {at(op)}, where its log never ended", (op.index,)
    for op, asked in events_of(ops, EpochQuestion):
        node = asked.link[0]
        if asked.leader_epoch >= 0 and asked.leader_epoch not in epochs.get(node, ()):
            text = f"{node} asked where epoch {asked.leader_epoch} ends at {at(op)}, which it never had"
            yield node, text, (op.index,)


def _registrations(ops: Sequence[Op]) -> Iterator[_Break]:
    """Yield registrations that are not newer than the one before, and ones that a controller saw too early."""
    told: dict[str, tuple[int, Op]] = {}
    owners: dict[int, str] = {}
    for op, registered in events_of(ops, Registered):
        if registered.czxid is None:
            return  # an older history
        before = told.get(op.process)
        if before is not None and registered.czxid <= before[0]:
            text = f"{op.process} registered as {registered.czxid} at {at(op)}, after {before[0]}"
            yield op.process, text, (before[1].index, op.index)
        told[op.process] = registered.czxid, op
        owners[registered.czxid] = op.process
    setup = setup_of(ops)
    names = {broker: name for name, broker in setup.nodes.items()} if setup else {}
    for op, elected in events_of(ops, Elected):
        # A broker whose registration was never answered does not report it, and may be seen all the same.
        for broker, czxid in elected.saw or ():
            name = names.get(broker, "")
            if owners.get(czxid, name) != name:
                text = f"{op.process} saw {name or broker} registered as {czxid} at {at(op)}, which"
                yield op.process, f"{text} was {owners[czxid]}", (told[owners[czxid]][1].index, op.index)


def _below(epochs: _Epochs, end: int) -> _Epochs:
    """Return the epochs that have records in a log of that end; recovery may drop the others."""
    ends = (*(start for _, start in epochs[1:]), end)
    return tuple(entry for entry, until in zip(epochs, ends, strict=False) if entry[1] < min(until, end))


def _text(epochs: _Epochs) -> str:
    return ", ".join(f"{epoch} from {start}" for epoch, start in epochs) or "none"
