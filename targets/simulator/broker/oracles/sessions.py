"""
Fetch sessions: what an answer leaves out is as it was told last, and only who is out of step is refused.

What fetches and answers leave out is put back for all other oracles, which need not know of sessions.
Source:  KIP-227; Kafka's FetchSession.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from targets.broker.core.epochs import UNDEFINED_EPOCH
from targets.broker.core.events import Answer, Caller, Effect, Event, Hungup, Received, Start
from targets.broker.core.messages import (
    NO_FETCH_SESSION,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    TopicPartition,
)
from targets.broker.core.rules import FetchSessions
from targets.broker.core.sessions import Session, epoch_after, is_full
from targets.broker.core.state import Role
from targets.simulator.broker.fetch_sessions import parts_of
from targets.simulator.broker.oracles.violation import Rule, Violations
from targets.simulator.broker.world import World


@dataclass(slots=True, kw_only=True)
class _Known:
    """
    A session as its messages show it.

    Attributes:
        epoch: that the next fetch must have.
        told: the high watermark and the log start that were told last, by partition.
        late: who was left out of the last answer, and has not been as told since that step ended.
    """

    epoch: int
    parts: dict[TopicPartition, FetchPartition]
    told: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    late: set[TopicPartition] = field(default_factory=set)


class Sessions:
    """The sessions of all nodes of one world, as leaders."""

    def __init__(self, world: World, violations: Violations) -> None:
        """Start with the sessions that there are."""
        self._world = world
        self._violations = violations
        self._known: dict[str, dict[int, _Known]] = {name: {} for name in world.nodes}
        self._asked: dict[str, dict[Caller, FetchRequest]] = {name: {} for name in world.nodes}
        for name, node in world.nodes.items():
            if node.broker is not None:
                sessions, fetches = node.broker.state.sessions, node.broker.state.fetches
                self._known[name] = {number: _seen(session) for number, session in sessions.by_id.items()}
                self._asked[name] = {each.caller: each.request for each in fetches.requests.values()}

    def whole(self, name: str, event: Event, effects: Sequence[Effect]) -> tuple[Event, Sequence[Effect]]:
        """Return a step as it would be without sessions: fetches and answers that name all partitions."""
        if type(event) is Received and type(event.request) is FetchRequest:
            event = replace(event, request=self._fetch(name, event.caller, event.request, effects))
        elif type(event) is Hungup:
            for caller in [caller for caller in self._asked[name] if caller.connection == event.connection]:
                del self._asked[name][caller]
        elif type(event) is Start:
            self._known[name].clear()
            self._asked[name].clear()
        if self._asked[name]:
            effects = [self._answered(name, effect) for effect in effects]
        return event, effects

    def _fetch(self, name: str, caller: Caller, request: FetchRequest, effects: Sequence[Effect]) -> FetchRequest:
        rule = self._world.nodes[name].config.rules.fetch_sessions
        if rule is FetchSessions.NONE:
            return request
        known = self._known[name]
        if is_full(request):
            known.pop(request.session_id, None)
            self._asked[name][caller] = request
            return request
        found = known.get(request.session_id)
        refused = any(_refuses(effect, caller) for effect in effects)
        if (found is None or found.epoch != request.session_epoch) is not refused:
            due = "none" if found is None else f"epoch {found.epoch}"
            does = "refuses" if refused else "serves"
            what = f"a fetch of session {request.session_id}, epoch {request.session_epoch}"
            self._violated(name, request.partitions, f"{name} {does} {what}: due is {due}")
        if found is None or refused:
            return replace(request, partitions=())
        found.epoch = epoch_after(found.epoch)
        parts = parts_of(found.parts, request)
        found.told = {tp: told for tp, told in found.told.items() if tp in found.parts}
        # Who is as told again, as a topic that came back, may change once more right after the next answer.
        found.late = {tp for tp in found.late if tp in found.told and self._bounds(name, tp) != found.told[tp]}
        if not parts:
            del known[request.session_id]
        if rule is FetchSessions.EPOCH_BLIND:
            parts = tuple(replace(part, current_leader_epoch=UNDEFINED_EPOCH) for part in parts)
        self._asked[name][caller] = whole = replace(request, partitions=parts)
        return whole

    def _answered(self, name: str, effect: Effect) -> Effect:
        """Return an answer to a fetch with what it leaves out."""
        if type(effect) is not Answer or effect.to not in self._asked[name]:
            return effect
        request, response = self._asked[name].pop(effect.to), effect.response
        if not isinstance(response, FetchResponse) or response.session_id == NO_FETCH_SESSION:
            return effect
        if is_full(request):
            parts = {part.tp: part for part in request.partitions}
            self._known[name][response.session_id] = _Known(epoch=epoch_after(request.session_epoch), parts=parts)
        known = self._known[name].get(response.session_id)
        if known is None:
            return effect
        named = {result.tp for result in response.results}
        left_out = [part for part in request.partitions if part.tp not in named]
        results = (*response.results, *self._put_back(name, known, left_out))
        for result in response.results:
            if result.error is ErrorCode.NONE:
                known.told[result.tp] = result.high_watermark, result.log_start_offset
            else:
                known.told.pop(result.tp, None)
        return replace(effect, response=replace(response, results=results))

    def _put_back(self, name: str, known: _Known, left_out: Sequence[FetchPartition]) -> Iterator[FetchResult]:
        """
        Yield what was told last of each partition, and check that this is how it still is.

        A step may change a partition after it has answered: then the next answer must tell it.
        """
        late, known.late = known.late, set()
        for part in left_out:
            told = known.told.get(part.tp)
            if told is None:
                self._violated(name, [part], f"{name} leaves out {part.tp}, of which it has told nothing before")
                continue
            now = self._bounds(name, part.tp)
            if now != told:
                known.late.add(part.tp)
                if part.tp in late and self._world.nodes[name].broker is not None:
                    text = (
                        f"{name} leaves out {part.tp}: high watermark and log start were told as {told}, are {now}"
                    )
                    self._violated(name, [part], text)
            yield FetchResult(tp=part.tp, error=ErrorCode.NONE, high_watermark=told[0], log_start_offset=told[1])

    def _bounds(self, name: str, tp: TopicPartition) -> tuple[int, int] | None:
        """Return the high watermark and the log start that a node would tell now; None unless it leads."""
        broker = self._world.nodes[name].broker
        replica = None if broker is None else broker.state.replicas.get(tp)
        if replica is None or replica.role is not Role.LEADER:
            return None
        return replica.high_watermark, replica.log.start_offset

    def _violated(self, name: str, parts: Sequence[FetchPartition], text: str) -> None:
        for part in parts[:1]:
            self._violations.add(Rule.ANSWERS, part.tp, (name,), -1, text)


def _seen(session: Session) -> _Known:
    """Return a session that began before it was watched."""
    return _Known(
        epoch=session.epoch,
        parts={tp: kept.part for tp, kept in session.parts.items()},
        told={tp: kept.told for tp, kept in session.parts.items() if kept.told is not None},
    )


def _refuses(effect: Effect, caller: Caller) -> bool:
    if type(effect) is not Answer or effect.to != caller or not isinstance(effect.response, FetchResponse):
        return False
    return effect.response.error is not ErrorCode.NONE
