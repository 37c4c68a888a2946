"""
Which generations of a topic may be there at the end of a run, by what the client that churns it was answered.

A topic that is deleted and created again has the name of its predecessor. An answer says what happened; without
one, a create or a delete may have happened, may happen later, or never. So every state that the answers allow is
followed, and only what holds in all of them is certain.

A partition that an operator removes, and adds again, has its predecessor's number. It is there from the set-up on;
else all that is said here of a topic holds of it.

Where deletes take effect later, an acknowledged one has marked its topic, which is gone at some time after that.
Brokers refuse by what they were told last, so that of all answers only an acknowledged create proves something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from checkers.facts.fact import fact
from checkers.facts.view import is_removed, key_of, run_setup_of, traits
from harness.events import AddPartitions, CreateTopic, DeleteTopic, Event, RemovePartitions
from harness.model import HistoryError, Op, OpType, Source

# The index of the end of a run: what has no answer may happen until then.
END: Final = 2**62
# With more creates and deletes of unknown outcome nothing is certain.
UNANSWERED_MAX: Final = 8
# Above every index, so that of two times at which a topic may have been marked the earlier is the least.
NOT_MARKED: Final = END
# Refusals that say whether the topic was there.
THERE: Final = "TOPIC_ALREADY_EXISTS"
ABSENT: Final = "UNKNOWN_TOPIC_OR_PARTITION"
_ASKED: Final = (CreateTopic, DeleteTopic, AddPartitions, RemovePartitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """
    A create or a delete of the topic, or that its partition is added or removed, and the outcome.

    Attributes:
        invoked: the index of its invoke.
        done: the index of its completion, END if it has none.
        error: the first word of it, "" for none.
    """

    creates: bool
    invoked: int
    done: int
    outcome: OpType
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """
    One state that the answers allow.

    Attributes:
        pending: the numbers of the asks without an answer that may still happen.
        deleted: between which indexes the last delete happened, (-1, -1) for none.
        marked: the index after which the topic was marked to be deleted, NOT_MARKED if it was not.
    """

    there: bool
    pending: frozenset[int]
    deleted: tuple[int, int] = (-1, -1)
    marked: int = NOT_MARKED

    def gone(self, until: int) -> _State:
        """Return the state after the deletion of a marked topic, which has happened before an index."""
        return replace(self, there=False, deleted=(self.marked, until), marked=NOT_MARKED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """
    What is certain of the newest generation.

    Attributes:
        may_be_there: whether the topic may be there at the end.
        is_there: whether it certainly is.
        old_before: what was acknowledged before this index is of an earlier generation.
        new_after: what was sent after this index is not for an earlier generation.
        proof: the indexes of the asks that ended.
        contradicted: the ask whose answer cannot be true after those before it, None if all can.
    """

    may_be_there: bool = True
    is_there: bool = False
    old_before: int = -1
    new_after: int = END
    proof: tuple[int, ...] = ()
    contradicted: Ask | None = None


@fact
def newest_generation(ops: Sequence[Op]) -> Newest:
    """Return what is certain of the newest generation of the topic or partition that the ops are about."""
    topic, partition = key_of(ops)
    asks = list(_asks(ops, topic, partition))
    setup = run_setup_of(ops)
    began = setup is not None and is_removed(setup, topic, partition)
    later = traits(ops).deletes_later
    proof = tuple(ask.done for ask in asks if ask.done < END)
    states, since = frozenset({_State(there=began, pending=frozenset())}), -1
    for number, ask in enumerate(asks):
        before = _closure(states, asks, since, ask.done)
        states, since = frozenset((_after_later if later else _after)(before, number, ask)), ask.invoked
        if not states:
            return Newest(proof=proof, contradicted=ask)
        if any(len(state.pending) > UNANSWERED_MAX for state in states):
            return Newest(proof=proof)
    states = _closure(states, asks, since, END)
    there = [state for state in states if state.there]
    return Newest(
        may_be_there=bool(there),
        is_there=len(there) == len(states),
        old_before=min((state.deleted[0] for state in there), default=END),
        new_after=max(state.deleted[1] for state in states),
        proof=proof,
    )


def _creates(event: Event, topic: str, partition: int) -> bool | None:
    """Return whether what is asked for creates or deletes the partition; None if it has nothing to do with it."""
    match event:
        case CreateTopic():
            return True if event.topic == topic else None
        case DeleteTopic():
            return False if event.topic == topic else None
        case AddPartitions(first=first):
            is_new = event.topic == topic and first <= partition < first + len(event.assignments)
            return True if is_new else None
        case RemovePartitions(partitions=gone):
            return False if event.topic == topic and partition in gone else None
    return None


def _asks(ops: Sequence[Op], topic: str, partition: int) -> Iterator[Ask]:
    """Yield the creates and deletes of the partition, in the order in which they were asked for: one at a time."""
    open_: Op | None = None
    for op in ops:
        if op.source is not Source.CLIENT:
            continue
        event = op.event
        if not isinstance(event, _ASKED) or (creates := _creates(event, topic, partition)) is None:
            continue
        if op.type is OpType.INVOKE:
            if open_ is not None:
                raise HistoryError(f"op {op.index}: {op.f} of {topic} before the outcome of op {open_.index}")
            open_ = op
        elif open_ is None or open_.f != op.f:
            raise HistoryError(f"op {op.index}: the outcome of {op.f} of {topic}; expected its invoke before it")
        else:
            error = event.error.partition(" ")[0]
            yield Ask(
                creates=creates,
                invoked=open_.index,
                done=op.index,
                outcome=op.type,
                error=error,
            )
            open_ = None
    if open_ is not None:
        creates = _creates(open_.event, topic, partition) is True
        yield Ask(creates=creates, invoked=open_.index, done=END, outcome=OpType.INFO)


def _after(states: Iterable[_State], number: int, ask: Ask) -> Iterator[_State]:
    """Yield the states after an ask, of those before it that allow its answer."""
    for state in states:
        match ask.outcome:
            case OpType.OK if state.there is not ask.creates:
                deleted = state.deleted if ask.creates else (ask.invoked, ask.done)
                yield replace(state, there=ask.creates, deleted=deleted)
            case OpType.INFO:
                yield replace(state, pending=state.pending | {number})
            case OpType.FAIL if state.there is {THERE: True, ABSENT: False}.get(ask.error, state.there):
                yield state


def _after_later(states: Iterable[_State], number: int, ask: Ask) -> Iterator[_State]:
    """Yield the same where deletes take effect later; what was refused may have been so by what is old."""
    for state in states:
        if ask.outcome is OpType.FAIL:
            yield state
        elif ask.outcome is OpType.OK and ask.creates:
            if not state.there:
                yield replace(state, there=True)
        elif ask.outcome is OpType.OK and state.there:
            yield replace(state, marked=min(state.marked, ask.invoked))
        else:
            yield replace(state, pending=state.pending | {number})


def _closure(states: Iterable[_State], asks: Sequence[Ask], since: int, until: int) -> frozenset[_State]:
    """Return the states that these may become, as what is due happens between two indexes."""
    found: dict[tuple[bool, bool, frozenset[int]], _State] = {}
    waiting = list(states)
    while waiting:
        state = waiting.pop()
        if not _widen(found, state):
            continue
        if state.marked != NOT_MARKED:
            waiting.append(state.gone(until))
        for number in state.pending:
            ask, pending = asks[number], state.pending - {number}
            if (
                ask.creates or not state.there
            ):  # a create of what is there, and a delete of what is not, do nothing
                waiting.append(replace(state, there=state.there or ask.creates, pending=pending))
            else:
                marked = min(state.marked, max(since, ask.invoked))
                waiting.append(replace(state, pending=pending, marked=marked).gone(until))
    return frozenset(found.values())


def _widen(found: dict[tuple[bool, bool, frozenset[int]], _State], state: _State) -> bool:
    """Add a state; of two that differ in when deletes happened, keep all these times as one. False: known."""
    key = state.there, state.marked != NOT_MARKED, state.pending
    known = found.get(key, state)
    deleted = min(known.deleted[0], state.deleted[0]), max(known.deleted[1], state.deleted[1])
    wider = replace(state, deleted=deleted, marked=min(known.marked, state.marked))
    if found.get(key) == wider:
        return False
    found[key] = wider
    return True
