"""
Who may say what to a broker: its own clients, other brokers, and those who mean another broker.

A request may name the broker that it is for: a registration can carry the address of another broker, and what is
meant for one id would be obeyed by another, which an INIT would make delete all its replicas. Whoever is asked in
place of another broker answers nothing and closes the connection, as if nobody were there.
What only brokers may say is refused at the clients' listener: a fetch that claims to be a follower's would count
as an acknowledgement.
Source:  Kafka, KafkaApis.handleFetchRequest (without ClusterAction a follower's fetch is answered with
         TOPIC_AUTHORIZATION_FAILED) and authorizeClusterOperation (CLUSTER_AUTHORIZATION_FAILED); its requests
         name no receiver, but KIP-380's broker epoch names a registration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from targets.broker.core import readable
from targets.broker.core.events import ANYBODY, Answer, HangUp, Received
from targets.broker.core.messages import (
    EpochAnswer,
    ErrorCode,
    FetchRequest,
    FetchResponse,
    FetchResult,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    Request,
    Response,
    StopReplicaRequest,
    StopReplicaResponse,
)
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import broker_path

# Consumers say -1 in place of a broker's id, tools that look at replicas -2.
_BROKER_ID_MIN: Final = 0


def admits(core: Core, event: Received) -> bool:
    """Return True if a request is to be acted on; else it is answered with a refusal, or its connection closed."""
    if event.meant_for not in (ANYBODY, core.config.broker_id):
        hang_up(core, event.caller.connection, event.meant_for)
        return False
    refusal = refused_to_clients(event.request) if event.of_client else None
    if refusal is not None:
        core.effects.append(Answer(to=event.caller, response=refusal))
    return refusal is None


def hang_up(core: Core, connection: int, meant_for: int) -> None:
    """Close a connection on which another broker is meant, and name that one's registration, which leads here."""
    path = broker_path(meant_for)
    error = (
        f"it leads to broker {core.config.broker_id}; expected the address of broker {meant_for}: "
        "delete the node, or give that broker an address of its own"
    )
    is_news = readable.name_node(core, path, _ITS_ADDRESS, error)
    reason = f"broker {meant_for} is meant; {path}: {error}" if is_news else ""
    core.effects.append(HangUp(connection=connection, reason=reason))


# In place of a node's last change, which this broker has not read.
_ITS_ADDRESS: Final = -1


def refused_to_clients(request: Request) -> Response | None:
    """Return how a client is refused that says what only brokers may, None if anyone may say it."""
    refuse = BROKERS_ONLY.get(type(request))
    return None if refuse is None else refuse(request)


def _fetch(request: FetchRequest) -> FetchResponse | None:
    if request.replica_id < _BROKER_ID_MIN:
        return None
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    results = tuple(FetchResult(tp=part.tp, error=error) for part in request.partitions)
    # One that goes on with a session names none when nothing is new.
    return FetchResponse(
        results=results, error=ErrorCode.NONE if results else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )


def _offsets(request: ListOffsetsRequest) -> ListOffsetsResponse | None:
    if request.replica_id < _BROKER_ID_MIN:
        return None
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ListOffsetsResponse(
        results=tuple(ListOffsetsResult(tp=each.tp, error=error) for each in request.partitions)
    )


def _epochs(request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse | None:
    if request.replica_id < _BROKER_ID_MIN:
        return None
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return OffsetForLeaderEpochResponse(
        answers=tuple(EpochAnswer(tp=each.tp, error=error) for each in request.questions)
    )


def _command(_request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    return LeaderAndIsrResponse(error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, errors=())


def _stop(_request: StopReplicaRequest) -> StopReplicaResponse:
    return StopReplicaResponse(error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, errors=())


# Requests that brokers send to brokers, and how they are refused to clients; clients may send all others.
BROKERS_ONLY: Final[Mapping[type[Request], Callable[[Any], Response | None]]] = {
    FetchRequest: _fetch,
    ListOffsetsRequest: _offsets,
    OffsetForLeaderEpochRequest: _epochs,
    LeaderAndIsrRequest: _command,
    StopReplicaRequest: _stop,
}
