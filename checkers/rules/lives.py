"""
Clients in processes of their own, life after life: what must be so in a history, whatever brokers do.

Our own code starts and kills them. A life that does not fit proves that an op was lost or invented on the way into
the history, so that nothing can be concluded from it; no broker can be the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from checkers.facts.view import at, key_of
from harness.events import ClientKilled, ClientStarted, Done, Poll, Produce
from harness.model import Op, OpType, PartOps, Source, events_of

_Lack: TypeAlias = tuple[str, tuple[int, ...]]


@dataclass(slots=True, kw_only=True)
class _Life:
    """
    One process of a client.

    Attributes:
        asked: the invoke of its kill.
        killed: the end of its kill, if it took effect.
        position: up to where it has recorded what it read of this partition.
        polled: its first poll of this partition, if any.
    """

    op: Op
    started: ClientStarted
    position: int
    asked: Op | None = None
    killed: Op | None = None
    polled: bool = field(default=False)


def broken_lives(ops: PartOps) -> Iterator[_Lack]:
    """Yield lives of clients that do not fit their kills, or the life before; none without `client-started`."""
    if not any(True for _ in events_of(ops, ClientStarted)):
        return
    topic, partition = key_of(ops)
    place = f"{topic}-{partition}"
    lives: dict[str, _Life] = {}
    senders: dict[str, Op] = {}
    for op in ops.select(Source.CLIENT):
        event, life = op.event, lives.get(op.process)
        if isinstance(event, ClientStarted):
            yield from _started(op, event, lives, place)
            begins = (event.positions or {}).get(place, 0)
            lives[op.process] = _Life(op=op, started=event, position=begins)
        elif life is None:
            if isinstance(event, ClientKilled):
                yield f"{op.process} was killed at {at(op)}, and had not started as a process", (op.index,)
        elif life.killed is not None:
            text = f"{op.process}'s {op.f} at {at(op)} comes after it was killed"
            yield text, (life.killed.index, op.index)
        elif isinstance(event, ClientKilled):
            yield from _killed(op, event, life)
        elif isinstance(event, Poll):
            yield from _polled(op, event, life)
        elif isinstance(event, Produce) and op.type is OpType.INVOKE:
            before = senders.setdefault(event.value, op)
            if before.process != op.process:
                text = f"{op.process} sent {event.value} at {at(op)}, which {before.process} had sent"
                yield text, (before.index, op.index)
    if any(True for _ in events_of(ops, Done)):
        for life in lives.values():
            if life.asked is not None and life.killed is None:
                yield f"the kill of {life.asked.process} at {at(life.asked)} took no effect", (life.asked.index,)


def _started(op: Op, event: ClientStarted, lives: Mapping[str, _Life], place: str) -> Iterator[_Lack]:
    if op.process in lives:
        yield f"{op.process} started twice, at {at(op)}", (lives[op.process].op.index, op.index)
    if event.after is None:
        return
    before = lives.get(event.after)
    if before is None or before.killed is None or before.started.name != event.name:
        yield f"{op.process} started at {at(op)} after {event.after}, which was not killed before", (op.index,)
        return
    begins = (event.positions or {}).get(place, 0)
    if begins != before.position:
        text = f"{op.process} began at offset {begins} of {place} at {at(op)}; {event.after}, which it continues, "
        yield f"{text}had read up to {before.position}", (before.op.index, op.index)
    others = [life for life in lives.values() if life.started.after == event.after]
    if others:
        yield (
            f"{op.process} and {others[0].op.process} both continue {event.after}",
            (others[0].op.index, op.index),
        )


def _killed(op: Op, event: ClientKilled, life: _Life) -> Iterator[_Lack]:
    if (event.name, event.pid) != (life.started.name, life.started.pid):
        text = f"{op.process} was killed at {at(op)} as {event.name}, pid {event.pid}; it started as "
        yield f"{text}{life.started.name}, pid {life.started.pid}", (life.op.index, op.index)
    if op.type is OpType.INVOKE:
        life.asked = op
    elif op.type is OpType.OK:
        if life.asked is None or not event.probe:
            what = "no probe" if life.asked else "no such invoke"
            yield f"the kill of {op.process} is ok at {at(op)}, and has {what}", (op.index,)
        life.killed = op


def _polled(op: Op, event: Poll, life: _Life) -> Iterator[_Lack]:
    """Note how far it has read; its first poll must begin where it was assigned, or go back from there."""
    if not life.polled and (not event.sought or event.position > life.position):
        text = f"{op.process}'s first poll, at {at(op)}, is of offset {event.position}"
        yield f"{text}; expected an assignment, of {life.position} or before", (life.op.index, op.index)
    life.polled = True
    life.position = event.records[-1][0] + 1 if event.records else event.position
