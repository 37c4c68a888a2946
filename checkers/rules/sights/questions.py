"""Questions where an epoch ends, and their answers, fit the epochs of both logs and what was cut then."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final, NamedTuple, Self, TypeAlias

from checkers.facts.moments import Moment, margin_ns, moments
from checkers.facts.view import at, names_of, newest_counts, setup_of
from checkers.rules.sights.fetches import Break
from checkers.rules.sights.late import FRAME_NS, late, waited
from harness.events import Append, Checkpoint, EpochAnswer, EpochQuestion, Follower, Recovered, Truncate
from harness.model import Op, events_of

_Epochs: TypeAlias = tuple[tuple[int, int], ...]

_BY_ANSWER: Final = "epoch-answer"
# A follower has one question under way; a few more may lie on a link that was held.
_TALK_MAX: Final = 32


def questions(ops: Sequence[Op]) -> Iterator[Break]:
    """Yield truncations by an answer that no question and no answer on the link lead to."""
    names, setup = names_of(ops), setup_of(ops)
    if setup is None or not newest_counts(ops) or setup.rules.get("epochs_flushed") != "on_change":
        return  # what a follower has in memory may differ from its checkpoint
    talk: dict[tuple[str, str], _Talk] = {}
    caches: dict[str, _Epochs] = {}
    own: dict[str, _Epochs] = {}
    leaders: dict[str, str] = {}
    kinds = (EpochQuestion, EpochAnswer, Follower, Checkpoint, Recovered, Truncate)
    seen = [each for kind in kinds for each in events_of(ops, kind)]
    for op, event in sorted(seen, key=_place):
        node = op.process
        match event:
            case EpochQuestion():
                talk.setdefault(event.link, _Talk.new()).asked.append(event)
            case EpochAnswer():
                talk.setdefault(event.link, _Talk.new()).answers.append(event)
            case Checkpoint():
                caches[node] = event.content
            case Recovered():
                caches[node] = event.epochs
            case _:
                if isinstance(event, Truncate) and event.reason == _BY_ANSWER and node in own:
                    said = talk.get((node, leaders.get(node, "")), _Talk.new())
                    if text := _led_to(event, own[node], said):
                        yield (
                            node,
                            f"{node} cut its log to {event.to} by an answer at {at(op)}, and {text}",
                            (op.index,),
                        )
                own[node] = caches.get(node, ())
                if isinstance(event, Follower):
                    leaders[node] = names.get(event.leader, "")


def asked(ops: Sequence[Op]) -> Iterator[Break]:
    """Yield questions about an epoch that the asker never had."""
    had: dict[str, set[int]] = {}
    for op, written in events_of(ops, Checkpoint):
        had.setdefault(op.process, set()).update(epoch for epoch, _ in written.content)
    for op, found in events_of(ops, Recovered):
        had.setdefault(op.process, set()).update(epoch for epoch, _ in found.epochs)
    for op, asked in events_of(ops, EpochQuestion) if had else ():
        node, epoch = asked.link[0], asked.leader_epoch
        if epoch >= 0 and epoch not in had.get(node, ()):
            yield node, f"{node} asked where epoch {epoch} ends at {at(op)}, which it never had", (op.index,)


def _led_to(cut: Truncate, own: _Epochs, said: _Talk) -> str:
    """Return why no question and no answer lead to a truncation, "" if they do."""
    if not own:
        return ""  # up to 1.1.1 it asks all the same, and accepts any answer (KAFKA-6857)
    newest = own[-1][0]
    asked = [each for each in said.asked if each.leader_epoch == newest]
    if not asked:
        return f"it had not asked about epoch {newest}, its newest"
    if not any(_leads(cut, own, asked[-1], answer) for answer in said.answers):
        told = said.answers[-1] if said.answers else None
        return "it had no answer" if told is None else f"its last answer was offset {told.end_offset}"
    return ""


def _leads(cut: Truncate, own: _Epochs, asked: EpochQuestion, answer: EpochAnswer) -> bool:
    if answer.error or answer.end_offset < 0:
        return False
    ends = {answer.end_offset}
    if asked.version > 0:
        if not 0 <= answer.leader_epoch <= asked.leader_epoch:
            return False
        if answer.leader_epoch < asked.leader_epoch:
            # KIP-279: its own end of the epoch that the leader named counts as well.
            mine = next((start for epoch, start in own if epoch > answer.leader_epoch), cut.start)
            ends |= {mine, min(mine, answer.end_offset)}
    return cut.to in {min(end, cut.start) for end in ends}


class _Talk(NamedTuple):
    """The last questions and answers on one link."""

    asked: deque[EpochQuestion]
    answers: deque[EpochAnswer]

    @classmethod
    def new(cls) -> Self:
        """Return an empty one."""
        return cls(deque(maxlen=_TALK_MAX), deque(maxlen=_TALK_MAX))


class _State(NamedTuple):
    """A log's epochs and its end, since an event of its node."""

    at: int
    time_ns: int
    epochs: _Epochs
    end: int


def _states(ops: Sequence[Op], nodes: set[str]) -> dict[str, list[_State]]:
    """Return how each node's log was, from its own reports, in index order."""
    found: dict[str, list[_State]] = {}
    changes: list[tuple[Op, Moment | Checkpoint]] = [(each.op, each) for each in moments(ops)]
    changes += events_of(ops, Checkpoint)
    for op, change in sorted((each for each in changes if each[0].process in nodes), key=_place):
        theirs = found.setdefault(op.process, [])
        epochs, end = (theirs[-1].epochs, theirs[-1].end) if theirs else ((), 0)
        if isinstance(change, Checkpoint):
            epochs = change.content
        else:
            end = end if change.after.end is None else change.after.end
            epochs = change.event.epochs if isinstance(change.event, Recovered) else epochs
        theirs.append(_State(op.index, op.time_ns, epochs, end))
    return found


def answers(ops: Sequence[Op]) -> Iterator[Break]:
    """Yield answers that no state of the leader's log gives."""
    talk: list[tuple[Op, EpochQuestion | EpochAnswer]] = [*events_of(ops, EpochAnswer)]
    if not talk or next(events_of(ops, Append), None) is None:
        return  # nobody asked, or brokers report nothing
    states = _states(ops, {said.link[1] for _, said in talk})
    questions: dict[tuple[str, str], deque[tuple[Op, EpochQuestion]]] = {}
    for op, said in sorted([*talk, *events_of(ops, EpochQuestion)], key=_place):
        if isinstance(said, EpochQuestion):
            questions.setdefault(said.link, deque(maxlen=_TALK_MAX)).append((op, said))
            continue
        leader = said.link[1]
        if said.error or said.end_offset < 0:
            if (said.leader_epoch, said.end_offset) != (-1, -1):
                text = (
                    f"{leader} answered with error {said.error} at {at(op)}, and named epoch {said.leader_epoch}"
                )
                yield leader, f"{text} and offset {said.end_offset}", (op.index,)
        elif said.link in questions and leader in states:
            *earlier, last = questions[said.link]
            # Frames that wait may be answers to earlier questions, which the asker does not wait for any more, and
            # so may those that were under way when it asked again.
            waiting = [
                each
                for each in earlier
                if late(ops, said.link)
                or waited(ops, leader, each[0], op)
                or op.time_ns - each[0].time_ns <= FRAME_NS
            ]
            if not any(
                _gives(state, question, said)
                for asked, question in [*waiting, last]
                for state in _while_under_way(ops, states[leader], asked, op, said.link)
            ):
                text = f"{leader} answered at {at(op)} that epoch {said.leader_epoch} ends at {said.end_offset}"
                yield leader, f"{text}, which its log never gave", (op.index,)


def _while_under_way(
    ops: Sequence[Op], states: Sequence[_State], asked: Op, answered: Op, link: tuple[str, str]
) -> Sequence[_State]:
    """Return how a log was while a question and its answer were under way; from its first if frames wait."""
    if margin := margin_ns(ops):
        return states[: bisect_right(states, answered.time_ns + margin, key=itemgetter(1))]
    upto = bisect_left(states, answered.index, key=itemgetter(0))
    since = 0 if late(ops, link) else max(0, bisect_left(states, asked.index, key=itemgetter(0)) - 1)
    return states[since:upto]


def _gives(state: _State, asked: EpochQuestion, said: EpochAnswer) -> bool:
    """Return True if a leader with such a log gives that answer."""
    if asked.version == 0 or said.leader_epoch < 0:
        return said.end_offset == state.end or any(start == said.end_offset for _, start in state.epochs)
    if said.leader_epoch != asked.leader_epoch and all(epoch != said.leader_epoch for epoch, _ in state.epochs):
        return False
    later = (start for epoch, start in state.epochs if epoch > said.leader_epoch)
    return said.end_offset == next(later, state.end)


def _place(seen: tuple[Op, object]) -> int:
    return seen[0].index
