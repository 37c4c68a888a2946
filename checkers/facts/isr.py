"""The ISR in the metadata over time: who was in it when, who joined it, and whether a state may be missing."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from checkers.facts.fact import fact
from checkers.facts.moments import follows
from checkers.facts.view import setup_of
from harness.events import Follower, Leader, MetadataState
from harness.model import Op, events_of


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrState:
    """
    One state of the partition in the metadata.

    Attributes:
        isr: the names of its members.
        joined: the members that the state before it did not have.
        follows: True if no state can have been missed between the state before it and this one.
    """

    op: Op
    leader: str | None
    epoch: int
    isr: tuple[str, ...]
    joined: tuple[str, ...]
    follows: bool


_index_of: Final = attrgetter("op.index")


@fact
def isr_states(ops: Sequence[Op]) -> list[IsrState]:
    """Return every state that was seen in the metadata, in index order."""
    return list(_states(ops))


def _states(ops: Sequence[Op]) -> Iterator[IsrState]:
    setup = setup_of(ops)
    before: Sequence[str] = setup.replicas if setup else ()
    version: int | None = None
    for op, state in events_of(ops, MetadataState):
        isr = tuple(map(str, state.isr))
        yield IsrState(
            op=op,
            leader=state.leader,
            epoch=state.epoch,
            isr=isr,
            joined=tuple(member for member in isr if member not in before),
            follows=version is not None and follows(ops, version, state.version),
        )
        before, version = isr, state.version


def isr_at(ops: Sequence[Op], index: int) -> tuple[str, ...]:
    """Return the ISR that was last seen in the metadata before that op; the replicas if none was seen."""
    states, setup = isr_states(ops), setup_of(ops)
    before = bisect_left(states, index, key=_index_of)
    return states[before - 1].isr if before else (setup.replicas if setup else ())


def isr_of_command(ops: Sequence[Op], op: Op) -> tuple[str, ...]:
    """
    Return the ISR in the metadata when a broker obeyed a command: its leader or follower event.

    The watch that records the metadata's state may be later than the broker. So a state of the command's epoch
    counts, even if it was recorded after the broker's event.
    """
    event = op.event
    epoch = event.epoch if isinstance(event, Leader | Follower) else -1
    known = [state for state in isr_states(ops) if state.op.index < op.index]
    if known and known[-1].epoch >= epoch:
        return known[-1].isr
    return next((state.isr for state in isr_states(ops) if state.epoch == epoch), isr_at(ops, op.index))
