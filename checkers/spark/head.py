"""
What a check must know of a partition before it looks at records: its logs, its leader, and where doubt begins.

It is derived from the partition's events by the facts that the rules use. This module imports nothing of Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from checkers.facts.isr import isr_states
from checkers.facts.moments import margin_ns
from checkers.facts.quorum import is_quorum
from checkers.facts.view import final_leader, final_logs, is_churned, setup_of, traits
from checkers.spark.rows import Span
from harness.events import Append, Fetch, Poll, Read
from harness.model import HistoryError, Op, OpType, events_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """
    A partition without its records.

    Attributes:
        why: why all of its ops must be judged, "" if those on which all evidence agrees may be left out.
        logs: each replica's final log: the node, the index of its snapshot, its start and its end.
        leader: the node whose log is compared with what was acknowledged and read.
        reads: the index of each read that succeeded, and its high watermark.
        doubts: [first, end) ranges of offsets that the rules must look at, whatever else agrees.
    """

    why: str = ""
    logs: tuple[tuple[str, int, int, int], ...] = ()
    leader: str = ""
    reads: tuple[tuple[int, int], ...] = ()
    doubts: tuple[Span, ...] = ()

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Head:
        """Return the head in that text."""
        raw = json.loads(text)
        rows = {name: tuple(map(tuple, raw[name])) for name in ("logs", "reads", "doubts")}
        return Head(why=raw["why"], leader=raw["leader"], **rows)


@dataclass(frozen=True, kw_only=True)  # no slots: cached_property stores its value in the instance's dictionary
class Part:
    """
    One partition of one run.

    Attributes:
        run: the number of the run.
        part: the partition's place in the run's manifest.
        logs: each log's replica and the index of its snapshot, by its place in the manifest.
    """

    run: int
    part: int
    topic: str
    partition: int
    head: Head
    logs: Mapping[int, tuple[str, int]]

    @property
    def key(self) -> tuple[int, int]:
        """What its rows are grouped by."""
        return self.run, self.part

    @property
    def place(self) -> tuple[str, int]:
        """Its topic and partition."""
        return self.topic, self.partition

    def replicas(self, logs: Iterable[int]) -> dict[int, str]:
        """Return the replica of each of these logs."""
        return {log: self.logs[log][0] for log in logs}

    @cached_property
    def starts(self) -> dict[int, int]:
        """The start of each final log."""
        of_snapshot = {index: log for log, (_, index) in self.logs.items()}
        return {of_snapshot[index]: start for _, index, start, _ in self.head.logs}

    @cached_property
    def leads(self) -> int:
        """The log that is compared with what was acknowledged and read."""
        return next(log for log in self.starts if self.logs[log][0] == self.head.leader)


def head_of(ops: Sequence[Op], floors: Mapping[int, int]) -> Head:
    """
    Return the head of a partition.

    Args:
        ops: the events of one partition and the global ones, without produces, batches and records.
        floors: the index of each fetch and read -> the highest offset acknowledged with acks=all before it.
    """
    try:
        why = _whole(ops)
        if why:
            return Head(why=why)
        logs, leader = final_logs(ops), final_leader(ops)
        assert leader is not None and leader.node in logs, "else all of it is judged"
        reads = [(op, read) for op, read in events_of(ops, Read) if op.type is OpType.OK]
        doubts = [*_edges(ops), *_fetches(ops, floors), *_short(ops, floors)]
    except HistoryError as error:
        return Head(why=str(error))
    return Head(
        logs=tuple((node, log.index, log.start, log.end) for node, log in logs.items()),
        leader=leader.node,
        reads=tuple((op.index, read.high_watermark or 0) for op, read in reads),
        doubts=tuple(sorted({(max(first, 0), end) for first, end in doubts if end > max(first, 0)})),
    )


def _whole(ops: Sequence[Op]) -> str:
    """Return why nothing of the partition may be left out, "" if something may."""
    if setup_of(ops) is None:
        return "the history has no set-up"
    if is_churned(ops):
        return "the topic was deleted and created again"
    if is_quorum(ops) or not traits(ops).dense:
        # Logs need not agree offset by offset, and hold other stores.
        return "a quorum has what is committed, or offsets need not follow each other"
    if any(True for _ in events_of(ops, Append)):
        # Rules follow each record from append to append, and compare each acknowledgement with them.
        return "brokers report their appends"
    if any(True for _ in events_of(ops, Poll)):
        # What consumers were shown is compared with what was sent, and with all that others were shown.
        return "consumers polled"
    leader = final_leader(ops)
    if leader is None or leader.node not in final_logs(ops):
        return "the last leader's log is not known"
    return ""


def _edges(ops: Sequence[Op]) -> Iterator[Span]:
    """Yield the ends of logs, the entries of checkpoints, and where reads ended."""
    for log in final_logs(ops).values():
        marks = [log.start, log.end - 1, log.end, log.snapshot.high_watermark or 0]
        for offset in (*marks, *(start for _, start in log.snapshot.epochs or ())):
            yield offset - 1, offset + 1
    for op, read in events_of(ops, Read):
        if op.type is not OpType.INVOKE:
            for end in (read.position, read.high_watermark):
                if end is not None:
                    yield end - 1, end + 1


def _fetches(ops: Sequence[Op], floors: Mapping[int, int]) -> Iterator[Span]:
    """Yield what was acknowledged with acks=all before a member of the ISR fetched from below it."""
    margin, states = margin_ns(ops), isr_states(ops)
    last: dict[str, tuple[Op, Fetch]] = {}
    place, current = 0, frozenset[str]()
    for op, fetch in events_of(ops, Fetch):
        while place < len(states) and states[place].op.index < op.index:
            yield from _joined(states[place].joined, last, floors)
            current = frozenset(states[place].isr)
            place += 1
        node = fetch.link[0]
        last[node] = (op, fetch)
        floor = floors.get(op.index, -1)
        if fetch.offset > floor:
            continue
        around = (state.isr for state in states if abs(state.op.time_ns - op.time_ns) <= margin)
        if node in current or any(node in isr for isr in around):
            yield fetch.offset, floor + 1
    for state in states[place:]:
        yield from _joined(state.joined, last, floors)


def _joined(
    nodes: Sequence[str], last: Mapping[str, tuple[Op, Fetch]], floors: Mapping[int, int]
) -> Iterator[Span]:
    for node in nodes:
        if node in last:
            op, fetch = last[node]
            yield fetch.offset, floors.get(op.index, -1) + 1


def _short(ops: Sequence[Op], floors: Mapping[int, int]) -> Iterator[Span]:
    """Yield what was acknowledged with acks=all before a read, and is not below its high watermark."""
    begun: dict[str, int] = {}
    for op, read in events_of(ops, Read):
        if op.type is OpType.INVOKE:
            begun[op.process] = op.index
        elif op.type is OpType.OK:
            yield read.high_watermark or 0, floors.get(begun.get(op.process, op.index), -1) + 1
