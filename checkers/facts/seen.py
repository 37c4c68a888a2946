"""
What is seen of replicas where brokers report nothing, in one order: faults, leaders, commands, fetches.

The metadata's watch may be late: a leader may lead for as long as the margin of `margin_ns` before it is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from checkers.facts.fact import fact
from checkers.facts.isr import IsrState, isr_states
from checkers.facts.moments import margin_ns
from checkers.facts.sightings import Sighting, sightings
from harness.effect import DOWN, UNFLUSHED_LOST, Effect, nature_of
from harness.events import EpochQuestion, Injection, Learned
from harness.model import Op, OpType, events_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """
    The leader of a state may lead from now on; alone, once the state was seen.

    Attributes:
        missed: the nodes that may have led in between, in a state that the watch missed.
    """

    state: IsrState
    alone: bool
    missed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """A node's process is ended by a fault."""

    node: str
    power_lost: bool
    op: Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """A process of the node may run again."""

    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The harness deletes files of the node's log, or changes a byte of one."""

    node: str
    op: Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Obeyed:
    """A node follows a leader: it answered a command, or asked the leader where an epoch ends."""

    node: str
    leader: str


Event: TypeAlias = Lead | Away | Back | Deleted | Obeyed | Sighting


class Seen(NamedTuple):
    """Something that is seen, from when on it may be so, and the index of the op that shows it."""

    time_ns: int
    place: int
    event: Event


@fact
def timeline(ops: Sequence[Op]) -> list[Seen]:
    """Return all that is seen, by the time from which on it may be so."""
    found = [*_leaders(ops), *_faults(ops), *_told(ops)]
    found += [Seen(each.op.time_ns, each.op.index, each) for each in sightings(ops)]
    return sorted(found, key=order)


def order(seen: Seen) -> tuple[int, int]:
    """Return where it stands among all that is seen."""
    return seen.time_ns, seen.place


def _leaders(ops: Sequence[Op]) -> Iterator[Seen]:
    margin = margin_ns(ops)
    before: IsrState | None = None
    for state in isr_states(ops):
        hidden = before is not None and not state.follows and state.epoch > before.epoch + 1
        missed = frozenset(before.isr) if hidden and before is not None else frozenset()
        now, index = state.op.time_ns, state.op.index
        yield Seen(now - margin, index, Lead(state=state, alone=False, missed=missed))
        yield Seen(now, index, Lead(state=state, alone=True))
        before = state


def _faults(ops: Sequence[Op]) -> Iterator[Seen]:
    for op, fault in events_of(ops, Injection):
        nature = nature_of(op)
        for node in fault.nodes:
            if nature.effect.is_down and op.type is OpType.INVOKE:
                power_lost = nature.effect in UNFLUSHED_LOST
                yield Seen(op.time_ns, op.index, Away(node=node, power_lost=power_lost, op=op))
            elif nature.effect in (Effect.LOG_CUT, Effect.DISK_LOST, Effect.BIT_ROT) and op.type is OpType.INVOKE:
                yield Seen(op.time_ns, op.index, Deleted(node=node, op=op))
            elif nature.heals & DOWN and op.type is OpType.INVOKE:
                yield Seen(op.time_ns, op.index, Back(node=node))


def _told(ops: Sequence[Op]) -> Iterator[Seen]:
    for op, command in events_of(ops, Learned):
        if command.leader is not None and not command.error:
            yield Seen(op.time_ns, op.index, Obeyed(node=command.link[1], leader=command.leader))
    for op, asked in events_of(ops, EpochQuestion):
        yield Seen(op.time_ns, op.index, Obeyed(node=asked.link[0], leader=asked.link[1]))
