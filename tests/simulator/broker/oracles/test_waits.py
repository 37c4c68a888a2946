"""An answer is whole, and comes when it is due: too little, too late and too early are named."""

from __future__ import annotations

from typing import Any

import pytest

from targets.broker.core import fetches
from targets.broker.core.messages import (
    BrokerMetadata,
    EpochAnswer,
    EpochQuestion,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    LeaderAndIsr,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    MetadataRequest,
    MetadataResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    PartitionMetadata,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
    TopicMetadata,
    TopicPartition,
)
from targets.simulator.broker.oracles import Rule
from targets.simulator.broker.oracles.violation import Violations
from targets.simulator.broker.oracles.waits import Waits
from targets.simulator.broker.storage.records import make_batch
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS
from tests.simulator.broker.oracles.planted import patch, post, produce, replica_of, watched
from tests.simulator.worlds import TP

OTHER = TopicPartition("other", 0)
BATCH = make_batch(["a"], timestamp_ms=0)


class Room:
    """An oracle beside a world, and what it found."""

    def __init__(self) -> None:
        self.world, _ = watched()
        self._violations = Violations(self.world)
        self._waits = Waits(self.world, self._violations, TP)

    def answered(self, request: Any, response: Any, after_ms: float = 0) -> str:
        """Return what is found in an answer that comes so long after its request, "" if nothing."""
        self._violations.found.clear()
        self.world.run(after_ms / 1000 + 0.001)
        received_ns = self.world.clock.now_ns - int(after_ms * NS_PER_MS)
        self._waits.on_answered("A", request, response, received_ns)
        found = list(self._violations.found.items())
        assert len(found) <= 1
        return found[0][1].sentence if found else ""


@pytest.fixture(scope="module")
def room() -> Room:
    return Room()


def fetch(*tps: TopicPartition, wait_ms: int = 40) -> FetchRequest:
    parts = tuple(FetchPartition(tp=tp, fetch_offset=0, max_bytes=100) for tp in tps)
    return FetchRequest(replica_id=-1, max_wait_ms=wait_ms, min_bytes=1, max_bytes=100, partitions=parts)


def fetched(*tps: TopicPartition, full: bool = False, error: ErrorCode = ErrorCode.NONE) -> FetchResponse:
    batches = (BATCH,) if full else ()
    return FetchResponse(results=tuple(FetchResult(tp=tp, error=error, batches=batches) for tp in tps))


def produced(error: ErrorCode, *tps: TopicPartition) -> ProduceResponse:
    return ProduceResponse(results=tuple(ProduceResult(tp=tp, error=error) for tp in tps))


def producing(*tps: TopicPartition) -> ProduceRequest:
    parts = tuple(ProducePartition(tp=tp, batches=(BATCH,)) for tp in tps)
    return ProduceRequest(acks=-1, timeout_ms=100, partitions=parts)


@pytest.mark.parametrize(
    ("request_", "response", "after_ms", "expected"),
    [
        (fetch(TP, OTHER), fetched(TP, OTHER, full=True), 3, ""),
        (fetch(TP, OTHER), fetched(TP, full=True), 3, "the answer lacks other-0"),
        (fetch(TP), fetched(TP, full=True), 3, ""),
        (fetch(TP), fetched(TP), 40, ""),
        (fetch(TP), fetched(TP), 12, "answers a fetch that may wait 40 ms without a record after 12.0 ms"),
        (fetch(TP), fetched(TP), 60, "answers a fetch that may wait 40 ms after 60.0 ms"),
        (fetch(TP), fetched(TP, full=True), 40, "at its end, with records that were there before"),
        (fetch(TP, wait_ms=0), fetched(TP), 0, ""),
        (fetch(TP), fetched(TP, error=ErrorCode.NOT_LEADER_OR_FOLLOWER), 12, ""),
        (producing(TP), produced(ErrorCode.NONE, TP), 30, ""),
        (producing(TP), produced(ErrorCode.REQUEST_TIMED_OUT, TP), 100, ""),
        (producing(TP), produced(ErrorCode.REQUEST_TIMED_OUT, TP), 30, "as timed out after 30.0 ms"),
        (
            producing(TP),
            produced(ErrorCode.NONE, TP),
            130,
            "answers a produce that may wait 100 ms after 130.0 ms",
        ),
        (producing(TP, OTHER), produced(ErrorCode.NONE, OTHER), 30, f"the answer lacks {TP}"),
    ],
)
def test_answer_that_is_not_whole_or_not_in_time_is_named(
    room: Room, request_: Any, response: Any, after_ms: float, expected: str
) -> None:
    found = room.answered(request_, response, after_ms)
    assert expected in found
    assert bool(expected) == bool(found)


def metadata(leader: int, *partitions: int, error: ErrorCode = ErrorCode.NONE) -> MetadataResponse:
    found = tuple(
        PartitionMetadata(
            tp=TopicPartition(TP.topic, number),
            error=ErrorCode.NONE,
            leader=leader,
            leader_epoch=0,
            replicas=(),
            isr=(),
        )
        for number in partitions
    )
    topic = TopicMetadata(topic=TP.topic, error=error, partitions=found)
    live = BrokerMetadata(broker_id=1, host="A", port=1)
    return MetadataResponse(brokers=(live,), controller_id=1, topics=(topic,))


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (metadata(1, 0), ""),
        (metadata(-1, 0), ""),
        (metadata(2, 0), "names broker 2 as leader"),
        (metadata(1), "lacks partition 0"),
        (metadata(1, 0, 2), "names partitions 0, 2 of topic log; expected all from 0 on"),
        (metadata(-1, error=ErrorCode.LEADER_NOT_AVAILABLE), ""),
    ],
)
def test_metadata_that_contradicts_itself_or_zookeeper_is_named(
    room: Room, response: MetadataResponse, expected: str
) -> None:
    found = room.answered(MetadataRequest(topics=(TP.topic,)), response)
    assert expected in found
    assert bool(expected) == bool(found)


def test_topic_that_is_not_known_is_named_unless_it_is_younger_than_the_question() -> None:
    room, asked = Room(), MetadataRequest(topics=(TP.topic,))
    unknown = metadata(-1, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert room.answered(asked, unknown, after_ms=100) == ""  # seen for the first time, and asked before
    assert "does not know topic" in room.answered(asked, unknown)


def test_fetch_that_nobody_wakes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    world, oracles = watched()
    post(world, "A", fetch_from_the_end(world))
    patch(monkeypatch, fetches, "wake", lambda *_: None)
    post(world, "A", produce("late", acks=1))
    world.run(0.5)
    assert "with records that were there before" in oracles.violations[Rule.ANSWERS, TP].sentence


def fetch_from_the_end(world: World) -> FetchRequest:
    broker = world.nodes["A"].broker
    assert broker is not None
    end = broker.state.replicas[TP].log.end_offset
    part = FetchPartition(tp=TP, fetch_offset=end, max_bytes=100)
    return FetchRequest(replica_id=-1, max_wait_ms=200, min_bytes=1, max_bytes=100, partitions=(part,))


def test_offset_of_a_time_and_epoch_that_are_not_there_are_named(room: Room) -> None:
    replica = replica_of(room.world, "A")
    asked = ListOffsetsRequest(replica_id=-1, partitions=(ListOffsetsPartition(tp=TP, timestamp=1),))
    for offset, expected in ((replica.high_watermark - 1, False), (replica.high_watermark, True)):
        result = ListOffsetsResult(tp=TP, error=ErrorCode.NONE, offset=offset)
        assert expected == bool(room.answered(asked, ListOffsetsResponse(results=(result,))))
    for epoch, expected in ((replica.epochs.latest, False), (replica.epochs.latest + 1, True)):
        question = OffsetForLeaderEpochRequest(questions=(EpochQuestion(tp=TP, leader_epoch=epoch),))
        told = EpochAnswer(tp=TP, error=ErrorCode.NONE, leader_epoch=epoch, end_offset=3)
        assert expected == bool(room.answered(question, OffsetForLeaderEpochResponse(answers=(told,))))


def test_requests_whose_time_is_up_are_answered_in_order() -> None:
    world, _ = watched()
    violations = Violations(world)
    waits, answer = Waits(world, violations, TP), fetched(TP)
    waits.in_order("A", [(fetch(TP, wait_ms=10), answer, 0), (producing(TP), produced(ErrorCode.NONE, TP), 0)])
    assert {} == violations.found
    waits.in_order("A", [(producing(TP), produced(ErrorCode.NONE, TP), 0), (fetch(TP, wait_ms=10), answer, 0)])
    assert "after what was due later" in violations.found[Rule.ANSWERS, TP].sentence


def test_command_that_is_answered_in_part_is_named(room: Room) -> None:
    parts = tuple(
        LeaderAndIsr(tp=tp, leader=1, leader_epoch=1, isr=(1,), zk_version=1, replicas=(1,)) for tp in (TP, OTHER)
    )
    asked = LeaderAndIsrRequest(
        controller_id=1, controller_epoch=1, ack_timeout_ms=1, is_init=False, partitions=parts
    )
    told = LeaderAndIsrResponse(error=ErrorCode.NONE, errors=((TP, ErrorCode.NONE),))
    assert "the answer lacks other-0" in room.answered(asked, told)
