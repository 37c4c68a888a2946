"""
What a message keeps on its way between two brokers of different protocols: the fields that both versions have.

Frames of the simulator are values, not bytes, so that nothing is lost of them by itself; here it is. A connection
uses the newest version of each API that both its ends know, and an API that one of them does not know is not sent.
Source:  Kafka's message definitions; KIP-35; targets/broker/wire/versions.py and targets/broker/peers.py, with
         which a test compares every pair of protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from targets.broker.core.messages import (
    NO_FETCH_SESSION,
    NO_SESSION_EPOCH,
    NO_TOPIC_ID,
    EpochAnswer,
    ErrorCode,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    Request,
    Response,
    StopReplicaRequest,
)
from targets.broker.core.rules import FetchSessions, Rules, TruncateTo
from targets.broker.core.sessions import is_full

NOT_KNOWN: Final = -1
# The versions that brought a field.
_SESSIONS: Final = 7
_FETCH_EPOCH: Final = 9
_FETCH_ID: Final = 12
_LIST_EPOCH: Final = 4
_LIST_ID: Final = 6
_ANSWER_EPOCH: Final = 1
_QUESTION_EPOCH: Final = 2
_QUESTION_REPLICA: Final = 3
_QUESTION_ID: Final = 4
_BROKER_EPOCH: Final = 1
_COMMAND_ID: Final = 2
_NO_EPOCH: Final = -1
_NO_REPLICA: Final = -2


class Versions(NamedTuple):
    """The newest versions of the APIs between brokers that a broker knows, by the fields that its rules need."""

    fetch: int
    list_offsets: int
    questions: int
    commands: int

    def common(self, other: Versions) -> Versions:
        """Return the newest that both know."""
        return Versions(*map(min, self, other))


def versions_of(rules: Rules) -> Versions:
    """Return the versions whose fields these rules need, as the releases had them."""
    return Versions(_fetch(rules), _list_offsets(rules), questions_version(rules), _commands(rules))


def _fenced(rules: Rules) -> bool:
    return rules.fence_fetch or rules.fence_high_watermark or rules.fence_isr_join


def _fetch(rules: Rules) -> int:
    if rules.topic_identity:
        return 12
    if _fenced(rules):
        return 10
    return 5 if rules.fetch_sessions is FetchSessions.NONE else 8


def _list_offsets(rules: Rules) -> int:
    if rules.topic_identity:
        return 6
    return 4 if _fenced(rules) else 1


def questions_version(rules: Rules) -> int:
    """Return the version of OffsetForLeaderEpoch, NOT_KNOWN before KIP-101."""
    if rules.topic_identity:
        return 4
    if rules.fence_truncation_query:
        return 3 if rules.fence_broker_epoch else 2
    if rules.truncate_to is TruncateTo.EPOCH_WALK:
        return 1
    return 0 if rules.epochs or rules.truncate_to is TruncateTo.ONE_ANSWER else NOT_KNOWN


def _commands(rules: Rules) -> int:
    if rules.topic_identity:
        return 2
    return 1 if rules.fence_broker_epoch else 0


@dataclass(slots=True)
class Carrier:
    """
    Decides what becomes of the messages of one world.

    Args:
        rules_of: returns the rules of a node as it runs now, None for an end that is no broker.

    Attributes:
        mixed: whether nodes may have different rules; until then every message stays as it is.
    """

    rules_of: Callable[[str], Rules | None]
    mixed: bool = False

    def _common(self, link: tuple[str, str]) -> Versions | None:
        """Return the versions of a connection between two brokers, None if nothing is lost on it."""
        if not self.mixed:
            return None
        one, other = map(self.rules_of, link)
        if one is None or other is None or one == other:
            return None
        return versions_of(one).common(versions_of(other))

    def epoch_version(self, link: tuple[str, str]) -> int:
        """Return the version of OffsetForLeaderEpoch on a link."""
        known = [rules for rules in map(self.rules_of, link) if rules is not None]
        return min(map(questions_version, known), default=NOT_KNOWN)

    def request(self, link: tuple[str, str], request: Request) -> Request | Answered:
        """Return a request as it arrives, or how it is answered at once because it cannot be sent."""
        common = self._common(link)
        return request if common is None else carried(common, request)

    def response(self, link: tuple[str, str], response: Response) -> Response:
        """Return an answer as it arrives."""
        common = self._common(link)
        return response if common is None else _carried_back(common, response)


class Answered(NamedTuple):
    """What a request is answered with that is not sent; None as if its connection had ended."""

    response: Response | None


def carried(common: Versions, request: Request) -> Request | Answered:
    """Return a request with the fields that its version has."""
    found = _CARRY.get(type(request))
    return request if found is None else found(common, request)


def _question(common: Versions, request: OffsetForLeaderEpochRequest) -> Request | Answered:
    if common.questions == NOT_KNOWN:
        refused = [EpochAnswer(tp=q.tp, error=ErrorCode.UNSUPPORTED_VERSION) for q in request.questions]
        return Answered(OffsetForLeaderEpochResponse(answers=tuple(refused)))
    with_epoch, with_id = common.questions >= _QUESTION_EPOCH, common.questions >= _QUESTION_ID
    questions = tuple(
        replace(
            asked,
            current_leader_epoch=asked.current_leader_epoch if with_epoch else _NO_EPOCH,
            topic_id=asked.topic_id if with_id else NO_TOPIC_ID,
        )
        for asked in request.questions
    )
    replica_id = request.replica_id if common.questions >= _QUESTION_REPLICA else _NO_REPLICA
    return replace(request, questions=questions, replica_id=replica_id)


def _fetched(common: Versions, request: FetchRequest) -> Request | Answered:
    parts = tuple(
        replace(
            part,
            current_leader_epoch=part.current_leader_epoch if common.fetch >= _FETCH_EPOCH else _NO_EPOCH,
            topic_id=part.topic_id if common.fetch >= _FETCH_ID else NO_TOPIC_ID,
        )
        for part in request.partitions
    )
    request = replace(request, partitions=parts)
    if common.fetch >= _SESSIONS:
        return request
    if not is_full(request):
        return Answered(None)  # a session that cannot go on: its follower begins anew
    return replace(request, session_id=NO_FETCH_SESSION, session_epoch=NO_SESSION_EPOCH, forgotten=())


def _listed(common: Versions, request: ListOffsetsRequest) -> Request | Answered:
    parts = tuple(
        replace(
            part,
            current_leader_epoch=part.current_leader_epoch if common.list_offsets >= _LIST_EPOCH else _NO_EPOCH,
            topic_id=part.topic_id if common.list_offsets >= _LIST_ID else NO_TOPIC_ID,
        )
        for part in request.partitions
    )
    return replace(request, partitions=parts)


def _led(common: Versions, request: LeaderAndIsrRequest) -> Request | Answered:
    if common.commands < _COMMAND_ID:
        states = tuple(replace(state, topic_id=NO_TOPIC_ID) for state in request.partitions)
        request = replace(request, partitions=states)
    return request if common.commands >= _BROKER_EPOCH else replace(request, broker_epoch=_NO_EPOCH)


def _stopped(common: Versions, request: StopReplicaRequest) -> Request | Answered:
    if common.commands < _COMMAND_ID:
        stops = tuple(replace(each, leader_epoch=_NO_EPOCH, topic_id=NO_TOPIC_ID) for each in request.partitions)
        request = replace(request, partitions=stops)
    return request if common.commands >= _BROKER_EPOCH else replace(request, broker_epoch=_NO_EPOCH)


_CARRY: Final[Mapping[type[Request], Callable[..., Request | Answered]]] = {
    OffsetForLeaderEpochRequest: _question,
    FetchRequest: _fetched,
    ListOffsetsRequest: _listed,
    LeaderAndIsrRequest: _led,
    StopReplicaRequest: _stopped,
}


def _carried_back(common: Versions, response: Response) -> Response:
    match response:
        case OffsetForLeaderEpochResponse(answers=answers) if common.questions < _ANSWER_EPOCH:
            return replace(response, answers=tuple(replace(each, leader_epoch=_NO_EPOCH) for each in answers))
        case ListOffsetsResponse(results=results) if common.list_offsets < _LIST_EPOCH:
            return replace(response, results=tuple(replace(each, leader_epoch=_NO_EPOCH) for each in results))
        case FetchResponse() if common.fetch < _SESSIONS:
            return replace(response, session_id=NO_FETCH_SESSION)
        case _:
            return response
