"""What a message keeps between brokers of two protocols: the simulator's values against Kafka's bytes."""

from __future__ import annotations

from itertools import product

import pytest

from targets.broker.core.inter_broker import protocol_rules
from targets.broker.core.messages import (
    EpochAnswer,
    EpochQuestion,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    LeaderAndIsr,
    LeaderAndIsrRequest,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    Request,
    Response,
    StopReplica,
    StopReplicaRequest,
    TopicPartition,
)
from targets.broker.core.rules import PROTOCOLS
from targets.broker.log import split_stored
from targets.broker.wire.codec import (
    Incoming,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    key_of,
)
from targets.broker.wire.handshake import common_version
from targets.broker.wire.scalars import WireError
from targets.broker.wire.versions import NOT_KNOWN, OFFSET_FOR_LEADER_EPOCH, peer_rows
from targets.simulator.broker.versions import Answered, Carrier

NAMES = (*PROTOCOLS, "kip101@hw", "kip320@kip101", "kip380@hw", "kip380@kip279", "kip380@kip320")
TP = TopicPartition("log", 0)
LED = LeaderAndIsr(tp=TP, leader=2, leader_epoch=4, isr=(1, 2), zk_version=3, replicas=(1, 2), topic_id=9)
REQUESTS: tuple[Request, ...] = (
    OffsetForLeaderEpochRequest(
        questions=(EpochQuestion(tp=TP, leader_epoch=3, current_leader_epoch=4, topic_id=9),), replica_id=2
    ),
    ListOffsetsRequest(
        replica_id=2,
        partitions=(ListOffsetsPartition(tp=TP, timestamp=-1, current_leader_epoch=4, topic_id=9),),
    ),
    *(
        FetchRequest(
            replica_id=2,
            max_wait_ms=5,
            min_bytes=1,
            max_bytes=100,
            partitions=(
                FetchPartition(
                    tp=TP, fetch_offset=7, max_bytes=9, current_leader_epoch=4, log_start_offset=1, topic_id=9
                ),
            ),
            session_id=session,
            session_epoch=epoch,
        )
        for session, epoch in ((0, -1), (0, 0), (5, 3))
    ),
    LeaderAndIsrRequest(
        controller_id=1, controller_epoch=2, ack_timeout_ms=5, is_init=True, partitions=(LED,), broker_epoch=6
    ),
    StopReplicaRequest(
        controller_id=1,
        controller_epoch=2,
        ack_timeout_ms=5,
        partitions=(StopReplica(tp=TP, leader_epoch=4, topic_id=9),),
        broker_epoch=6,
    ),
)
ANSWERS: tuple[tuple[Request, Response], ...] = (
    (
        REQUESTS[0],
        OffsetForLeaderEpochResponse(
            answers=(EpochAnswer(tp=TP, error=ErrorCode.NONE, leader_epoch=3, end_offset=8),)
        ),
    ),
    (
        REQUESTS[1],
        ListOffsetsResponse(results=(ListOffsetsResult(tp=TP, error=ErrorCode.NONE, offset=8, leader_epoch=4),)),
    ),
)
PAIRS = [(one, other) for one, other in product(NAMES, NAMES) if protocol_rules(one) != protocol_rules(other)]


def _version(key: int, one: str, other: str) -> int:
    theirs = {row.key: (row.first, row.last) for row in peer_rows(other, protocol_rules(other)).values()}
    return common_version(key, peer_rows(one, protocol_rules(one)), theirs)


def _carrier(one: str, other: str) -> Carrier:
    return Carrier({"A": protocol_rules(one), "B": protocol_rules(other)}.__getitem__, mixed=True)


def _over_the_wire(request: Request, version: int) -> Request | Answered:
    """Return what Kafka's bytes keep of a request in a version, as `Outbound.ask` sends it."""
    if version == NOT_KNOWN:
        refused = EpochAnswer(tp=TP, error=ErrorCode.UNSUPPORTED_VERSION)
        return Answered(OffsetForLeaderEpochResponse(answers=(refused,)))
    try:
        frame = encode_request(request, version=version, correlation_id=1, client_id="broker-2")
    except WireError:
        return Answered(None)
    found = decode_request(memoryview(frame)[4:], split_batches=split_stored)
    assert found.request is not None
    return found.request


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_request_keeps_the_fields_that_both_protocols_know(one: str, other: str) -> None:
    """Source: KIP-101, Compatibility, Deprecation, and Migration Plan; KIP-35."""
    carrier = _carrier(one, other)
    for request in REQUESTS:
        version = _version(key_of(request), one, other)
        assert _over_the_wire(request, version) == carrier.request(("A", "B"), request), (request, version)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_an_answer_keeps_the_fields_that_both_protocols_know(one: str, other: str) -> None:
    carrier = _carrier(one, other)
    for request, response in ANSWERS:
        version = _version(key_of(request), one, other)
        if version != NOT_KNOWN:
            asked = Incoming(api_key=key_of(request), api_version=version, correlation_id=1, client_id="broker-2")
            frame = encode_response(asked, response)
            found = decode_response(
                memoryview(b"".join(frame))[4:],
                request,
                version=version,
                correlation_id=1,
                split_batches=split_stored,
            )
            assert found == carrier.response(("A", "B"), response), (response, version)


def test_the_question_where_an_epoch_ends_has_one_version_on_a_link() -> None:
    for one, other in PAIRS:
        version = _version(OFFSET_FOR_LEADER_EPOCH, one, other)
        assert (version, one, other) == (_carrier(one, other).epoch_version(("A", "B")), one, other)


def test_nothing_is_lost_until_a_node_is_installed_another_protocol() -> None:
    carrier = Carrier({"A": protocol_rules("kip380"), "B": protocol_rules("kip320")}.__getitem__)
    for request in REQUESTS:
        assert carrier.request(("A", "B"), request) is request
