"""Messages that announce more than they hold: nothing is reserved for what is announced, on either side."""

from __future__ import annotations

import struct
from datetime import timedelta

import pytest

from targets.broker.core.messages import (
    ErrorCode,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
)
from targets.broker.limits import Limits
from targets.broker.log import split_produced
from targets.broker.wire import WireError, decode_request, decode_response, encode_response, versions
from targets.broker.wire.entities import fill, item_type, request_type
from targets.broker.wire.versions import COMMANDS, ROWS, client_rows, peer_rows
from tests.broker.log.batches import produced_batch
from tests.broker.wire.kio_side import ALL_VERSIONS, body_of, incoming, request_frame
from tests.broker.wire.samples import PEER
from tests.little_memory import printed_with_little_memory

LYING = """
import struct
from targets.broker.log import split_produced, split_stored
from targets.broker.wire import WireError, decode_request, decode_response, encode_response
from targets.broker.wire.handshake import read_versions
from tests.broker.wire.kio_side import ALL_VERSIONS, PEER_VERSIONS, a_frame, body_of, incoming
from tests.broker.wire.samples import PEER

def lies(frame):
    for at in range(8, len(frame) - 3):
        for count in (2**31 - 1, 2**28, 2**24, -1, -2**31):
            yield frame[:at] + struct.pack(">i", count) + frame[at + 4:]

def read(decode):
    try:
        decode()
    except WireError:
        return 1
    return 0

refused = 0
for key, version in ALL_VERSIONS:
    for frame in lies(a_frame(key, version)):
        refused += read(lambda: decode_request(frame, split_batches=split_produced))
for key, version in PEER_VERSIONS:
    request, response = PEER[key]
    for frame in lies(body_of(encode_response(incoming(key, version), response))):
        refused += read(lambda: decode_response(
            frame, request, version=version, correlation_id=77, split_batches=split_stored))
for frame in lies(struct.pack(">ihi", 77, 0, 2) + bytes(12)):
    refused += read(lambda: read_versions(frame, 77))
print(refused)
"""


@pytest.mark.slow
def test_no_announced_count_makes_a_decoder_reserve_memory() -> None:
    """Four bytes anywhere in any message of any API, in both directions, announce up to 2**31 - 1 items."""
    assert int(printed_with_little_memory(LYING)) > 5_000


# Lengths of the flexible encoding: up to 2**35 - 1, and longer than a number may be.
VARINTS = (b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f", b"\xff" * 9 + b"\x01")


@pytest.mark.parametrize("varint", VARINTS)
@pytest.mark.parametrize("place", range(4))
def test_varint_beyond_the_bytes_is_a_wire_error(place: int, varint: bytes) -> None:
    """In turn: how many tags the header has, the length of either text, and how many tags the body has."""
    parts = [b"\0", b"\x02a", b"\x02b", b"\0"]
    start = struct.pack(">hhih", versions.API_VERSIONS, 3, 1, -1)
    assert decode_request(start + b"".join(parts), split_batches=split_produced).answer is not None
    parts[place] = varint
    with pytest.raises(WireError, match=r"api_versions v3(:| in).*expected a whole message"):
        decode_request(start + b"".join(parts), split_batches=split_produced)


# --- items ----------------------------------------------------------------------------------------------------
def decoded(frame: bytes, **limits: int) -> object:
    return decode_request(frame, split_batches=split_produced, limits=Limits(**limits)).request


def delete(names: int) -> bytes:
    entity = request_type(versions.DELETE_TOPICS, 1)
    topics = tuple(f"t{number}" for number in range(names))
    return request_frame(versions.DELETE_TOPICS, 1, entity(topic_names=topics, timeout=timedelta(0)))


def fetch(topics: int, partitions: int, forgotten: int = 0) -> bytes:
    entity = request_type(versions.FETCH, 11)
    of_topic, of_forgotten = item_type(entity, "topics"), item_type(entity, "forgotten_topics_data")
    place = fill(
        item_type(of_topic, "partitions"),
        partition=0,
        current_leader_epoch=-1,
        fetch_offset=0,
        log_start_offset=0,
        partition_max_bytes=1,
    )
    sent = fill(
        entity,
        replica_id=-1,
        max_wait=timedelta(0),
        min_bytes=0,
        max_bytes=1,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=tuple(of_topic(topic=f"t{n}", partitions=(place,) * partitions) for n in range(topics)),
        forgotten_topics_data=tuple(of_forgotten(topic="f", partitions=(0,)) for _ in range(forgotten)),
        rack_id="",
    )
    return request_frame(versions.FETCH, 11, sent)


def produce(*partitions: int) -> bytes:
    entity = request_type(versions.PRODUCE, 7)
    of_topic = item_type(entity, "topic_data")
    of_partition = item_type(of_topic, "partition_data")
    parts = tuple(of_partition(index=index, records=produced_batch()) for index in partitions)
    sent = fill(
        entity,
        transactional_id=None,
        acks=1,
        timeout=timedelta(0),
        topic_data=(of_topic(name="t", partition_data=parts),),
    )
    return request_frame(versions.PRODUCE, 7, sent)


@pytest.mark.parametrize(
    ("fits", "over"),
    [
        (delete(10), delete(11)),
        (fetch(2, 4), fetch(2, 5)),
        (fetch(1, 1, 4), fetch(1, 1, 5)),
        (produce(*range(9)), produce(*range(10))),
    ],
    ids=["delete", "fetch", "forgotten", "produce"],
)
def test_request_may_name_so_many_topics_and_partitions_in_all(fits: bytes, over: bytes) -> None:
    assert decoded(fits, request_items_max=10) is not None
    with pytest.raises(WireError, match=r"1\d items so far; expected at most 10 \(request_items_max\)"):
        decoded(over, request_items_max=10)


def command(
    topic: str, partition: int = 0, replicas: int = 1, *, leader: int = 1, isr: int = 1, least: int = 0
) -> bytes:
    entity = request_type(versions.LEADER_AND_ISR, 0)
    of_partition = item_type(entity, "partitions")
    state = of_partition(
        topic=topic,
        partition=partition,
        leader=leader,
        leader_epoch=1,
        isr=(isr,),
        zk_version=0,
        replicas=tuple(range(least, least + replicas)),
    )
    sent = entity(ack_timeout=1, is_init=0, controller_id=1, controller_epoch=1, partitions=(state,))
    return request_frame(versions.LEADER_AND_ISR, 0, sent)


def test_refused_request_is_named_with_its_version() -> None:
    with pytest.raises(WireError, match="delete_topics v1: topic_names: 11 items so far; expected at most 10"):
        decoded(delete(11), request_items_max=10)
    with pytest.raises(WireError, match="fetch v11: partitions: 5 items in"):
        decoded(fetch(1, 5)[:-40], request_items_max=10)


def test_refused_answer_is_named_with_its_version() -> None:
    request, response = PEER[versions.LIST_OFFSETS]
    frame = bytearray(body_of(encode_response(incoming(versions.LIST_OFFSETS, 5), response)))
    frame[8:12] = struct.pack(">i", 2**31 - 1)
    with pytest.raises(WireError, match=f"list_offsets v5: topics: {2**31 - 1} items in"):
        decode_response(frame, request, version=5, correlation_id=77, split_batches=split_produced)


def test_commands_have_a_limit_of_their_own() -> None:
    assert decoded(command("t", replicas=8), request_items_max=1, command_items_max=10) is not None
    with pytest.raises(WireError, match=r"expected at most 10 \(command_items_max\)"):
        decoded(command("t", replicas=9), request_items_max=1, command_items_max=10)


# --- names and listeners --------------------------------------------------------------------------------------
@pytest.mark.parametrize("topic", ["../../evil", "", ".", "..", "a/b", "a" * 250, "a\0b", "ä"])
def test_command_for_what_is_no_topic_is_a_wire_error(topic: str) -> None:
    with pytest.raises(WireError, match="expected a topic of 1 to 249"):
        decoded(command(topic))


def test_command_for_a_negative_partition_is_a_wire_error() -> None:
    with pytest.raises(WireError, match="and a number from 0 on"):
        decoded(command("t", partition=-1))


def stop(topic: str, partition: int) -> bytes:
    entity = request_type(versions.STOP_REPLICA, 0)
    of_partition = item_type(entity, "partitions")(topic=topic, partition=partition)
    sent = entity(ack_timeout=1, controller_id=1, controller_epoch=1, partitions=(of_partition,))
    return request_frame(versions.STOP_REPLICA, 0, sent)


@pytest.mark.parametrize(("topic", "partition"), [("../../evil", 0), ("t", -1)])
def test_stop_of_what_is_no_partition_is_a_wire_error(topic: str, partition: int) -> None:
    assert decoded(stop("t", 0)) is not None
    with pytest.raises(WireError, match=r"stop_replica v0: partition '.*: expected a topic of 1 to 249"):
        decoded(stop(topic, partition))


@pytest.mark.parametrize("ids", [{"leader": -2}, {"isr": -2}, {"least": -2}])
def test_command_with_an_id_that_no_broker_has_is_a_wire_error(ids: dict[str, int]) -> None:
    """-1 is nobody, which a controller sends for a partition without a leader."""
    assert decoded(command("t", **dict.fromkeys(ids, -1))) is not None
    with pytest.raises(WireError, match="partition t-0: broker id -2; expected -1 or more"):
        decoded(command("t", **ids))


@pytest.mark.parametrize("protocol", ["hw", "kip101", "kip380"])
def test_clients_may_not_command(protocol: str) -> None:
    from targets.broker.core.rules import PROTOCOLS

    theirs, ours = client_rows(protocol, PROTOCOLS[protocol]), peer_rows(protocol, PROTOCOLS[protocol])
    assert set() == set(theirs) & set(COMMANDS)
    assert set(COMMANDS) <= set(ours)
    with pytest.raises(WireError, match="api key 4; expected one of"):
        decode_request(command("t"), split_batches=split_produced, rows=theirs)
    later = {
        versions.OFFSET_FOR_LEADER_EPOCH,
        versions.DELETE_RECORDS,
        versions.CREATE_PARTITIONS,
        versions.ELECT_LEADERS,
        versions.ALTER_PARTITION_REASSIGNMENTS,
        versions.LIST_PARTITION_REASSIGNMENTS,
        versions.DESCRIBE_CONFIGS,
        versions.ALTER_CONFIGS,
        versions.INCREMENTAL_ALTER_CONFIGS,
        versions.DESCRIBE_LOG_DIRS,
        versions.INIT_PRODUCER_ID,
    }
    assert ROWS.keys() - COMMANDS - later <= theirs.keys()


# --- twice ----------------------------------------------------------------------------------------------------
def test_partition_that_is_fetched_twice_is_answered_once_from_its_last_offset() -> None:
    """Source: Kafka, FetchRequest.fetchData: a map."""
    entity = request_type(versions.FETCH, 4)
    of_topic = item_type(entity, "topics")
    of_partition = item_type(of_topic, "partitions")
    places = tuple(of_partition(partition=0, fetch_offset=offset, partition_max_bytes=9) for offset in (1, 2, 3))
    sent = entity(
        replica_id=-1,
        max_wait=timedelta(0),
        min_bytes=0,
        max_bytes=1,
        isolation_level=0,
        topics=(of_topic(topic="t", partitions=places[:2]), of_topic(topic="t", partitions=places[2:])),
    )
    request = decoded(request_frame(versions.FETCH, 4, sent))
    assert [3] == [part.fetch_offset for part in request.partitions]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("key", "version"), [one for one in ALL_VERSIONS if one[0] == versions.LIST_OFFSETS])
def test_partition_whose_offset_is_asked_for_twice_is_answered_once(key: int, version: int) -> None:
    entity = request_type(key, version)
    of_topic = item_type(entity, "topics")
    of_partition = item_type(of_topic, "partitions")
    places = tuple(
        fill(of_partition, partition_index=index, current_leader_epoch=-1, timestamp=timestamp)
        for index, timestamp in ((0, -1), (1, -1), (0, -2))
    )
    topics = (of_topic(name="t", partitions=places), of_topic(name="t", partitions=places[1:2]))
    request = decoded(request_frame(key, version, fill(entity, replica_id=-1, isolation_level=0, topics=topics)))
    assert isinstance(request, ListOffsetsRequest)
    assert [(0, -2), (1, -1)] == [(asked.tp.partition, asked.timestamp) for asked in request.partitions]


@pytest.mark.parametrize(
    ("key", "version"), [one for one in ALL_VERSIONS if one[0] == versions.OFFSET_FOR_LEADER_EPOCH]
)
def test_partition_whose_epoch_is_asked_for_twice_is_answered_once(key: int, version: int) -> None:
    entity = request_type(key, version)
    of_topic = item_type(entity, "topics")
    of_partition = item_type(of_topic, "partitions")
    places = tuple(
        fill(of_partition, partition=index, current_leader_epoch=-1, leader_epoch=epoch)
        for index, epoch in ((0, 4), (1, 5), (0, 6))
    )
    topics = (of_topic(topic="t", partitions=places), of_topic(topic="t", partitions=places[1:2]))
    request = decoded(request_frame(key, version, fill(entity, replica_id=1, topics=topics)))
    assert isinstance(request, OffsetForLeaderEpochRequest)
    assert [(0, 6), (1, 5)] == [(asked.tp.partition, asked.leader_epoch) for asked in request.questions]


def test_topic_that_is_named_twice_is_described_once() -> None:
    entity = request_type(versions.METADATA, 1)
    of_topic = item_type(entity, "topics")
    frame = request_frame(
        versions.METADATA, 1, entity(topics=tuple(of_topic(name=name) for name in ("b", "a", "b")))
    )
    assert MetadataRequest(topics=("b", "a")) == decoded(frame)


def test_partition_that_is_produced_to_twice_is_refused() -> None:
    request = decoded(produce(0, 1, 0, 0))
    results = [(part.tp.partition, part.error, len(part.batches)) for part in request.partitions]  # type: ignore[attr-defined]
    assert [(0, ErrorCode.INVALID_REQUEST, 0), (1, ErrorCode.NONE, 1)] == results


def test_count_that_is_no_count_is_a_wire_error() -> None:
    frame = bytearray(delete(1))
    at = bytes(frame).index(b"\0\0\0\1\0\2t0")
    for count in (-2, -(2**31)):
        frame[at : at + 4] = struct.pack(">i", count)
        with pytest.raises(WireError, match=f"topic_names: {count}; expected an array"):
            decoded(bytes(frame))
