"""The codec is compared with kio in every API and version, and with golden bytes."""

from __future__ import annotations

import struct
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from targets.broker.core import messages as m
from targets.broker.core.messages import ErrorCode
from targets.broker.log import split_produced, split_stored
from targets.broker.wire import (
    WireError,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    versions,
)
from targets.broker.wire.entities import fill, item_type, request_type, response_type
from targets.broker.wire.versions import ROWS
from tests.broker.log.batches import produced_batch
from tests.broker.wire.kio_side import (
    PEER_VERSIONS,
    body_of,
    fields_below,
    incoming,
    kio_response,
    messages_equal,
    request_frame,
    without,
)
from tests.broker.wire.samples import A0, B7, CLIENT_RESPONSES, PEER


class TestBetweenBrokers:
    @pytest.mark.parametrize(("key", "version"), PEER_VERSIONS)
    def test_request_arrives_as_it_was_sent(self, key: int, version: int) -> None:
        request, _ = PEER[key]
        frame = encode_request(request, version=version, correlation_id=77, client_id="broker-3")
        found = decode_request(body_of(frame), split_batches=split_produced)
        assert (key, version, 77, "broker-3") == (
            found.api_key,
            found.api_version,
            found.correlation_id,
            found.client_id,
        )
        assert without(request, request_type(key, version)) == found.request
        assert found.expects_answer

    @pytest.mark.parametrize(("key", "version"), PEER_VERSIONS)
    def test_response_arrives_as_it_was_sent(self, key: int, version: int) -> None:
        request, response = PEER[key]
        frame = encode_response(incoming(key, version), response)
        found = decode_response(
            body_of(frame), request, version=version, correlation_id=77, split_batches=split_stored
        )
        assert messages_equal(without(response, response_type(key, version)), found)

    def test_every_lacking_field_is_carried_by_some_version(self) -> None:
        """Some version carries each field; otherwise the two tests above could compare only placeholders."""
        assert request_carries("current_leader_epoch", versions.FETCH) == list(range(9, 13))
        assert request_carries("log_start_offset", versions.FETCH) == list(range(5, 13))
        assert request_carries("current_leader_epoch", versions.LIST_OFFSETS) == [4, 5, 6]
        assert request_carries("current_leader_epoch", versions.OFFSET_FOR_LEADER_EPOCH) == [2, 3, 4]
        assert request_carries("replica_id", versions.OFFSET_FOR_LEADER_EPOCH) == [3, 4]
        assert request_carries("broker_epoch", versions.LEADER_AND_ISR) == [1, 2]
        assert request_carries("broker_epoch", versions.STOP_REPLICA) == [1, 2]
        assert request_carries("leader_epoch", versions.STOP_REPLICA) == [2]
        newest = {versions.FETCH: 12, versions.LIST_OFFSETS: 6, versions.OFFSET_FOR_LEADER_EPOCH: 4}
        for key, version in {**newest, versions.LEADER_AND_ISR: 2, versions.STOP_REPLICA: 2}.items():
            assert request_carries("topic_id", key) == [version]

    def test_response_to_another_request_is_a_wire_error(self) -> None:
        request, response = PEER[versions.STOP_REPLICA]
        frame = encode_response(incoming(versions.STOP_REPLICA, 0), response)
        with pytest.raises(WireError, match="response to 77; expected one to 78"):
            decode_response(body_of(frame), request, version=0, correlation_id=78, split_batches=split_stored)

    def test_follower_sees_damaged_batches_as_an_error_of_their_partition(self) -> None:
        """Source: Kafka, AbstractFetcherThread: CorruptRecordException delays only that partition."""
        request, response = PEER[versions.FETCH]
        frame = bytearray(body_of(encode_response(incoming(versions.FETCH, 5), response)))
        frame[frame.index(b"second")] ^= 1
        found = decode_response(bytes(frame), request, version=5, correlation_id=77, split_batches=split_stored)
        assert isinstance(found, m.FetchResponse)
        assert [ErrorCode.CORRUPT_MESSAGE, ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER] == [
            result.error for result in found.results
        ]
        assert () == found.results[0].batches

    def test_error_code_that_the_core_lacks_is_unknown_server_error(self) -> None:
        request, _ = PEER[versions.OFFSET_FOR_LEADER_EPOCH]
        frame = struct.pack(">iih1sihiq", 77, 1, 1, b"a", 1, 30, 0, -1)
        found = decode_response(frame, request, version=0, correlation_id=77, split_batches=split_stored)
        assert isinstance(found, m.OffsetForLeaderEpochResponse)
        assert (m.EpochAnswer(tp=A0, error=ErrorCode.UNKNOWN_SERVER_ERROR),) == found.answers


def request_carries(name: str, key: int) -> list[int]:
    return [
        version
        for version in range(ROWS[key].first, ROWS[key].last + 1)
        if name in {field.name for field in fields_below(request_type(key, version))}
    ]


class TestGoldenBytes:
    """Bytes written by hand from the tables of the documents, not by code of this project."""

    def test_epoch_question_v0_and_v1(self) -> None:
        """Source: KIP-101: topics[name, partitions[partition i32, leader_epoch i32]]."""
        asked = m.OffsetForLeaderEpochRequest(questions=(m.EpochQuestion(tp=B7, leader_epoch=5),))
        for version in (0, 1):
            golden = struct.pack(">hhih1s", 23, version, 9, 1, b"x")
            golden += struct.pack(">ih1siii", 1, 1, b"b", 1, 7, 5)
            frame = encode_request(asked, version=version, correlation_id=9, client_id="x")
            assert golden == body_of(frame)
            assert asked == decode_request(golden, split_batches=split_produced).request

    @pytest.mark.parametrize(("version", "replica"), [(2, b""), (3, struct.pack(">i", 6))])
    def test_epoch_question_v2_and_v3(self, version: int, replica: bytes) -> None:
        """Source: KIP-320: current_leader_epoch i32 before leader_epoch; v3: replica_id i32 first."""
        asked = m.OffsetForLeaderEpochRequest(
            questions=(m.EpochQuestion(tp=B7, leader_epoch=5, current_leader_epoch=8),),
            replica_id=6 if replica else -2,
        )
        golden = struct.pack(">hhih1s", 23, version, 9, 1, b"x") + replica
        golden += struct.pack(">ih1siiii", 1, 1, b"b", 1, 7, 8, 5)
        assert golden == body_of(encode_request(asked, version=version, correlation_id=9, client_id="x"))
        assert asked == decode_request(golden, split_batches=split_produced).request

    @pytest.mark.parametrize(
        ("version", "golden"),
        [
            (0, struct.pack(">iih1sihiq", 77, 1, 1, b"b", 1, 74, 7, 21)),
            (1, struct.pack(">iih1sihiiq", 77, 1, 1, b"b", 1, 74, 7, 4, 21)),
            (2, struct.pack(">iiih1sihiiq", 77, 0, 1, 1, b"b", 1, 74, 7, 4, 21)),
            (3, struct.pack(">iiih1sihiiq", 77, 0, 1, 1, b"b", 1, 74, 7, 4, 21)),
        ],
    )
    def test_epoch_answer(self, version: int, golden: bytes) -> None:
        """
        Every field has a value other than its default.

        Source:  KIP-101: error i16, partition i32, end_offset i64; KIP-279: leader_epoch i32 before the end;
                 KIP-320: throttle_time_ms i32 before all.
        """
        answer = m.EpochAnswer(tp=B7, error=ErrorCode.FENCED_LEADER_EPOCH, leader_epoch=4, end_offset=21)
        response = m.OffsetForLeaderEpochResponse(answers=(answer,))
        frame = encode_response(incoming(versions.OFFSET_FOR_LEADER_EPOCH, version), response)
        assert golden == body_of(frame)

    @pytest.mark.parametrize("version", [9, 10, 11])
    def test_fetch_request_with_the_current_leader_epoch(self, version: int) -> None:
        """Source: Kafka's FetchRequest.json: the epoch (v9) precedes the offset; the rack (v11) is last."""
        part = m.FetchPartition(tp=B7, fetch_offset=21, max_bytes=99, current_leader_epoch=4, log_start_offset=2)
        request = m.FetchRequest(replica_id=3, max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, partitions=(part,))
        golden = struct.pack(">hhih1s", 1, version, 9, 1, b"x")
        golden += struct.pack(">iiiibii", 3, 500, 1, 1 << 20, 0, 0, -1)
        golden += struct.pack(">ih1siiiqqi", 1, 1, b"b", 1, 7, 4, 21, 2, 99)
        golden += struct.pack(">i", 0) + (struct.pack(">h", 0) if version >= 11 else b"")
        assert golden == body_of(encode_request(request, version=version, correlation_id=9, client_id="x"))
        assert request == decode_request(golden, split_batches=split_produced).request

    def test_leader_and_isr(self) -> None:
        """Source: Kafka Replication Design V3, LeaderAndISRRequest and LeaderAndISRResponse; KIP-380 (v1)."""
        partition = m.LeaderAndIsr(tp=B7, leader=1, leader_epoch=3, isr=(1, 2), zk_version=8, replicas=(2, 1))
        request = m.LeaderAndIsrRequest(
            controller_id=2,
            controller_epoch=5,
            ack_timeout_ms=1500,
            is_init=True,
            broker_epoch=2**40,
            partitions=(partition,),
        )
        registration = struct.pack(">q", 2**40)
        for version, broker_epoch in ((0, b""), (1, registration)):
            golden = struct.pack(">hhih1s", 4, version, 9, 1, b"x")
            golden += struct.pack(">ibii", 1500, 1, 2, 5) + broker_epoch
            golden += struct.pack(">ih1siii", 1, 1, b"b", 7, 1, 3)
            golden += struct.pack(">iiiqiii", 2, 1, 2, 8, 2, 2, 1)
            assert golden == body_of(encode_request(request, version=version, correlation_id=9, client_id="x"))

    def test_leader_and_isr_response(self) -> None:
        response = m.LeaderAndIsrResponse(
            error=ErrorCode.STALE_CONTROLLER_EPOCH, errors=((B7, ErrorCode.KAFKA_STORAGE_ERROR),)
        )
        golden = struct.pack(">ihih1sih", 77, 11, 1, 1, b"b", 7, 56)
        assert golden == body_of(encode_response(incoming(4, 0), response))

    def test_stop_replica_and_its_response(self) -> None:
        """Source: Kafka Replication Design V3, StopReplicaRequest and StopReplicaResponse."""
        request = m.StopReplicaRequest(
            controller_id=2,
            controller_epoch=5,
            ack_timeout_ms=1500,
            broker_epoch=2**40,
            partitions=(m.StopReplica(tp=B7, leader_epoch=3, topic_id=6),),
        )
        registration = struct.pack(">q", 2**40)
        for version, broker_epoch, more in (
            (0, b"", b""),
            (1, registration, b""),
            (2, registration, struct.pack(">iq", 3, 6)),
        ):
            golden = struct.pack(">hhih1s", 5, version, 9, 1, b"x") + struct.pack(">iii", 1500, 2, 5)
            golden += broker_epoch + struct.pack(">ih1si", 1, 1, b"b", 7) + more
            assert golden == body_of(encode_request(request, version=version, correlation_id=9, client_id="x"))
        response = m.StopReplicaResponse(error=ErrorCode.NONE, errors=((B7, ErrorCode.NONE),))
        assert struct.pack(">ihih1sih", 77, 0, 1, 1, b"b", 7, 0) == body_of(
            encode_response(incoming(5, 0), response)
        )


class TestClientsRequests:
    @pytest.mark.parametrize("version", range(3, 9))
    def test_produce_splits_its_records(self, version: int) -> None:
        entity = request_type(versions.PRODUCE, version)
        topic = item_type(entity, "topic_data")
        partition = item_type(topic, "partition_data")
        good, torn = produced_batch(count=3), produced_batch()[:-1]
        sent = fill(
            entity,
            transactional_id=None,
            acks=-1,
            timeout=timedelta(milliseconds=1500),
            topic_data=(
                topic(name="a", partition_data=(partition(index=0, records=good),)),
                topic(
                    name="b",
                    partition_data=(partition(index=7, records=torn), partition(index=8, records=None)),
                ),
            ),
        )
        found = decode_request(
            request_frame(versions.PRODUCE, version, sent), split_batches=split_produced
        ).request
        assert isinstance(found, m.ProduceRequest)
        assert (-1, 1500) == (found.acks, found.timeout_ms)
        assert [A0, B7, m.TopicPartition("b", 8)] == [asked.tp for asked in found.partitions]
        assert good == bytes(found.partitions[0].batches[0].payload)
        assert [ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD] == [
            asked.error for asked in found.partitions
        ]
        assert "torn" in found.partitions[1].error_text

    @pytest.mark.parametrize(("acks", "expects"), [(0, False), (1, True), (-1, True)])
    def test_produce_with_acks_0_expects_no_answer(self, acks: int, expects: bool) -> None:
        entity = request_type(versions.PRODUCE, 3)
        sent = fill(entity, transactional_id=None, acks=acks, timeout=timedelta(0), topic_data=())
        frame = request_frame(versions.PRODUCE, 3, sent)
        assert expects == decode_request(frame, split_batches=split_produced).expects_answer

    @pytest.mark.parametrize("version", range(9))
    def test_metadata_asks_for_all_or_for_some(self, version: int) -> None:
        entity = request_type(versions.METADATA, version)
        topic = item_type(entity, "topics")
        flags = {
            "allow_auto_topic_creation": True,
            "include_cluster_authorized_operations": False,
            "include_topic_authorized_operations": False,
        }

        def asked(topics: Any) -> Any:
            frame = request_frame(versions.METADATA, version, fill(entity, topics=topics, **flags))
            return decode_request(frame, split_batches=split_produced).request

        assert m.MetadataRequest(topics=("a", "b")) == asked((topic(name="a"), topic(name="b")))
        assert m.MetadataRequest(topics=() if version else None) == asked(())
        if version:
            assert m.MetadataRequest(topics=None) == asked(None)

    @pytest.mark.parametrize("version", range(2, 5))
    def test_create_topics(self, version: int) -> None:
        entity = request_type(versions.CREATE_TOPICS, version)
        topic = item_type(entity, "topics")
        assignment = item_type(topic, "assignments")
        sent = entity(
            topics=(
                topic(name="a", num_partitions=2, replication_factor=3, assignments=(), configs=()),
                topic(
                    name="b",
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=(assignment(partition_index=0, broker_ids=(4, 5)),),
                    configs=(),
                ),
            ),
            timeout=timedelta(seconds=2),
            validate_only=True,
        )
        found = decode_request(request_frame(versions.CREATE_TOPICS, version, sent), split_batches=split_produced)
        assert (
            m.CreateTopicsRequest(
                topics=(
                    m.NewTopic(topic="a", partitions=2, replication_factor=3),
                    m.NewTopic(topic="b", partitions=-1, replication_factor=-1, assignments=((0, (4, 5)),)),
                ),
                timeout_ms=2000,
                validate_only=True,
            )
            == found.request
        )

    @pytest.mark.parametrize("version", range(1, 4))
    def test_delete_topics(self, version: int) -> None:
        sent = request_type(versions.DELETE_TOPICS, version)(topic_names=("a", "b"), timeout=timedelta(seconds=2))
        found = decode_request(request_frame(versions.DELETE_TOPICS, version, sent), split_batches=split_produced)
        assert m.DeleteTopicsRequest(topics=("a", "b"), timeout_ms=2000) == found.request

    def test_client_id_may_be_null(self) -> None:
        sent = request_type(versions.DELETE_TOPICS, 1)(topic_names=(), timeout=timedelta(0))
        frame = request_frame(versions.DELETE_TOPICS, 1, sent, client_id=None)
        assert decode_request(frame, split_batches=split_produced).client_id is None


class TestAnswersToClients:
    """Responses are read with kio's own classes and compared field by field."""

    @pytest.mark.parametrize("version", range(3, 9))
    def test_produce(self, version: int) -> None:
        frame = encode_response(incoming(versions.PRODUCE, version), CLIENT_RESPONSES[versions.PRODUCE])
        a, b = kio_response(frame, versions.PRODUCE, version).responses
        ok, bad = a.partition_responses[0], b.partition_responses[0]
        assert ("a", 0, 0, 40, None) == (
            a.name,
            ok.index,
            ok.error_code,
            ok.base_offset,
            ok.log_append_time,
        )
        assert ("b", 7, 2, -1) == (b.name, bad.index, bad.error_code, bad.base_offset)
        if version >= 8:
            assert (None, "crc") == (ok.error_message, bad.error_message)

    @pytest.mark.parametrize("version", range(4, 12))
    def test_fetch(self, version: int) -> None:
        _, response = PEER[versions.FETCH]
        assert isinstance(response, m.FetchResponse)
        found = kio_response(encode_response(incoming(versions.FETCH, version), response), versions.FETCH, version)
        full, empty = found.responses[0].partitions
        assert b"".join(bytes(b.payload) for b in response.results[0].batches) == full.records
        assert (11, 11, ()) == (full.high_watermark, full.last_stable_offset, full.aborted_transactions)
        assert (b"", 0) == (empty.records, empty.high_watermark)
        if version >= 7:
            assert (6, KioErrorCode.none) == (found.session_id, found.error_code)
        if version >= 11:
            assert -1 == full.preferred_read_replica

    @pytest.mark.parametrize("version", range(9))
    def test_metadata(self, version: int) -> None:
        frame = encode_response(incoming(versions.METADATA, version), CLIENT_RESPONSES[versions.METADATA])
        found = kio_response(frame, versions.METADATA, version)
        assert [(1, "h", 9), (2, "i", 8)] == [(b.node_id, b.host, b.port) for b in found.brokers]
        assert [("a", 0), ("gone", 3)] == [(t.name, t.error_code) for t in found.topics]
        led, orphan = found.topics[0].partitions
        assert (0, 0, 1, (1, 2), (1,)) == (
            led.error_code,
            led.partition_index,
            led.leader_id,
            led.replica_nodes,
            led.isr_nodes,
        )
        assert (5, 1, -1) == (orphan.error_code, orphan.partition_index, orphan.leader_id)
        if version >= 1:
            assert 2 == found.controller_id
        if version >= 7:
            assert 6 == led.leader_epoch

    @pytest.mark.parametrize("version", range(2, 5))
    def test_create_topics(self, version: int) -> None:
        response = CLIENT_RESPONSES[versions.CREATE_TOPICS]
        frame = encode_response(incoming(versions.CREATE_TOPICS, version), response)
        found = kio_response(frame, versions.CREATE_TOPICS, version).topics
        assert [("a", 0, None), ("b", 36, "there")] == [
            (topic.name, topic.error_code, topic.error_message) for topic in found
        ]

    @pytest.mark.parametrize("version", range(1, 4))
    def test_delete_topics(self, version: int) -> None:
        response = CLIENT_RESPONSES[versions.DELETE_TOPICS]
        frame = encode_response(incoming(versions.DELETE_TOPICS, version), response)
        found = kio_response(frame, versions.DELETE_TOPICS, version).responses
        assert [("a", 3)] == [(topic.name, topic.error_code) for topic in found]

    @pytest.mark.parametrize("error", list(ErrorCode))
    def test_every_error_code_of_the_core_is_kafkas(self, error: ErrorCode) -> None:
        response = m.StopReplicaResponse(error=error, errors=())
        body = body_of(encode_response(incoming(5, 0), response))
        assert error == int.from_bytes(body[4:6], signed=True)
