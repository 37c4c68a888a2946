"""
A history, read once: its set-up, its operations from invoke to end, and the names of its records.

An incomplete history (the harness was killed, or a step failed) is read as far as it goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from harness.events import Done, Event, Injection, Produce, Setup, Started, Step
from harness.history.abridged import AbridgedRun
from harness.model import Op, OpType, Source, events_of

_WITH_SPANS: Final = frozenset({Source.RUNNER, Source.CLIENT, Source.NEMESIS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """
    One operation, from its invoke to its completion.

    Attributes:
        first: the invoke; the completion if no invoke was recorded.
        last: the completion, None if none was recorded.
    """

    first: Op
    last: Op | None

    @property
    def outcome(self) -> str:
        """`ok`, `fail` or `info`; `open` if no completion was recorded."""
        return "open" if self.last is None else self.last.type.value

    @property
    def event(self) -> Event:
        """The event of the completion, else of the invoke."""
        return (self.last or self.first).event


@dataclass(frozen=True, kw_only=True)  # no slots: cached_property stores its value in the instance's dictionary
class Reading:
    """A history, with cached look-ups."""

    ops: Sequence[Op]

    @cached_property
    def by_index(self) -> Mapping[int, Op]:
        """The op of each index."""
        return {op.index: op for op in self.ops}

    @cached_property
    def abridged(self) -> AbridgedRun | None:
        """The ops, if they are those of a large run without its bulk."""
        return self.ops if isinstance(self.ops, AbridgedRun) else None

    @property
    def total(self) -> int:
        """The number of ops that the run has, here or not."""
        return self.abridged.total if self.abridged else len(self.ops)

    @cached_property
    def setup(self) -> Setup | None:
        """The runner's first line, None if the history does not have it."""
        return next((setup for _, setup in events_of(self.ops, Setup)), None)

    @cached_property
    def complete(self) -> bool:
        """True if the runner wrote its last line."""
        return any(True for _ in events_of(self.ops, Done))

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The names of all nodes in the set-up, then of other nodes with ops."""
        named = self.setup.nodes if self.setup else ()
        seen = {op.process for op in self.ops if op.source in (Source.BROKER, Source.LOG)}
        return tuple(dict.fromkeys([*named, *sorted(seen)]))

    @cached_property
    def services(self) -> tuple[str, ...]:
        """The processes of services that the schedule may hit, which are no nodes of `nodes`."""
        return (self.setup.services or ()) if self.setup else ()

    @cached_property
    def silent(self) -> frozenset[str]:
        """The processes that never report a start: those of services, and all nodes of some targets."""
        return frozenset((*self.services, *self.nodes)) - {op.process for op, _ in events_of(self.ops, Started)}

    @cached_property
    def partition(self) -> tuple[str, int]:
        """The run's topic and partition, ("", 0) if no line names one."""
        if self.setup:
            return self.setup.topic, self.setup.partition
        return next((place for op in self.ops if (place := op.place) is not None), ("", 0))

    @cached_property
    def record_names(self) -> Mapping[str, str]:
        """A record's value -> its name in the scenario (`m2`)."""
        names: dict[str, str] = {}
        for name, values in (self.setup.records if self.setup else {}).items():
            names.update(dict.fromkeys(values, name))
        names.update((sent.value, sent.name) for _, sent in events_of(self.ops, Produce))
        return names

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """The operations of runner, clients and nemesis, in the order of their first op."""
        return _spans(self.ops)

    def node_of(self, broker_id: int) -> str:
        """Return the node name of a broker id; the id itself if the set-up has no such node."""
        ids = self.setup.nodes if self.setup else {}
        return next((name for name, known in ids.items() if known == broker_id), str(broker_id))


def of_partition(op: Op, topic: str, partition: int) -> bool:
    """Return True if the op is about that partition."""
    return op.place == (topic, partition)


def _spans(ops: Sequence[Op]) -> tuple[Span, ...]:
    opened: dict[tuple[str, str], list[Op]] = {}
    ends: dict[int, Op] = {}
    firsts: list[Op] = []
    for op in ops:
        if op.source not in _WITH_SPANS or isinstance(op.event, Setup | Done):
            continue
        waiting = opened.setdefault((op.process, op.f), [])
        if op.type is OpType.INVOKE:
            waiting.append(op)
            firsts.append(op)
            continue
        begun = _begun(waiting, op)
        if begun is None:
            firsts.append(op)
            ends[op.index] = op
        else:
            waiting.remove(begun)
            ends[begun.index] = op
    return tuple(Span(first=first, last=ends.get(first.index)) for first in firsts)


def _begun(waiting: Sequence[Op], end: Op) -> Op | None:
    """Return the invoke that `end` completes: the oldest open one with the same key; None if there is none."""
    return next((op for op in waiting if _asked(op.event) == _asked(end.event)), None)


def _asked(event: Event) -> object:
    """Return the key that distinguishes two open operations of one process and kind."""
    match event:
        case Step(line=line):
            return line
        case Produce(value=value):
            return value
        case Injection(nodes=nodes):
            return nodes
        case _:
            return None
