"""The hand-written codecs of Produce and Fetch agree with kio on drawn messages in every version."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

from targets.broker.core import messages as m
from targets.broker.core.messages import ErrorCode, TopicPartition
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
from targets.broker.wire.scalars import by_topic, read_nullable_text, read_text, take
from targets.broker.wire.versions import ROWS
from tests.broker.log.batches import batch, drawn, produced_batch
from tests.broker.wire.kio_side import body_of, incoming, messages_equal, request_frame, without

FETCHES = st.integers(ROWS[versions.FETCH].first, ROWS[versions.FETCH].last)
PRODUCES = st.integers(ROWS[versions.PRODUCE].first, ROWS[versions.PRODUCE].last)
INTS = st.integers(0, 2**31 - 1)
LONGS = st.integers(-1, 2**63 - 1)
EPOCHS = st.integers(-1, 2**31 - 1)
ERRORS = st.sampled_from(ErrorCode)
PLACES = st.builds(TopicPartition, st.text(min_size=1, max_size=9), INTS)
BATCHES = st.lists(st.integers(1, 3), max_size=2).map(
    lambda counts: tuple(batch(base=10 * number, count=count) for number, count in enumerate(counts))
)


def several(items: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Draw some items in the order of a message: all items of a topic are adjacent."""
    found = st.lists(items, max_size=4, unique_by=lambda item: item.tp)
    return found.map(lambda some: tuple(item for group in by_topic(some).values() for item in group))


ASKED = several(
    st.builds(
        m.FetchPartition,
        tp=PLACES,
        fetch_offset=LONGS,
        max_bytes=INTS,
        current_leader_epoch=EPOCHS,
        log_start_offset=LONGS,
        topic_id=st.integers(0, 2**63 - 1),
    )
)
FETCH_REQUESTS = st.builds(
    m.FetchRequest,
    replica_id=EPOCHS,
    max_wait_ms=INTS,
    min_bytes=INTS,
    max_bytes=INTS,
    partitions=ASKED,
)
FETCH_RESPONSES = several(
    st.builds(
        m.FetchResult, tp=PLACES, error=ERRORS, high_watermark=LONGS, log_start_offset=LONGS, batches=BATCHES
    )
).map(lambda results: m.FetchResponse(results=results))
PRODUCE_RESPONSES = several(
    st.builds(m.ProduceResult, tp=PLACES, error=ERRORS, base_offset=LONGS, error_text=st.text(max_size=9))
).map(lambda results: m.ProduceResponse(results=results))


def again(entity: type[Any], body: bytes, at: int) -> bytes:
    """Return the bytes with the part from `at` read and rewritten by kio."""
    read, size = entity_reader(entity)(body, at)
    assert len(body) == at + size
    out = io.BytesIO()
    entity_writer(entity)(out, read)
    return body[:at] + out.getvalue()


@drawn
@given(FETCH_REQUESTS, FETCHES)
def test_fetch_request_is_what_kio_reads_and_writes(request: m.FetchRequest, version: int) -> None:
    body = body_of(encode_request(request, version=version, correlation_id=77, client_id="x"))
    entity = request_type(versions.FETCH, version)
    _, at = entity_reader(entity.__header_schema__)(body, 0)
    assert again(entity, body, at) == body
    assert without(request, entity) == decode_request(body, split_batches=split_produced).request


@drawn
@given(FETCH_RESPONSES, FETCHES)
def test_fetch_response_is_what_kio_reads_and_writes(response: m.FetchResponse, version: int) -> None:
    body = body_of(encode_response(incoming(versions.FETCH, version), response))
    entity = response_type(versions.FETCH, version)
    _, at = entity_reader(entity.__header_schema__)(body, 0)
    assert again(entity, body, at) == body
    asked = m.FetchRequest(replica_id=1, max_wait_ms=1, min_bytes=1, max_bytes=1, partitions=())
    found = decode_response(body, asked, version=version, correlation_id=77, split_batches=split_stored)
    assert messages_equal(without(response, entity), found)


@drawn
@given(PRODUCE_RESPONSES, PRODUCES)
def test_produce_response_is_what_kio_reads_and_writes(response: m.ProduceResponse, version: int) -> None:
    body = body_of(encode_response(incoming(versions.PRODUCE, version), response))
    assert again(response_type(versions.PRODUCE, version), body, 4) == body


@drawn
@given(st.lists(PLACES, max_size=4, unique=True), st.sampled_from([-1, 0, 1]), INTS, PRODUCES)
def test_produce_request_is_what_kio_wrote(
    places: list[TopicPartition], acks: int, timeout_ms: int, version: int
) -> None:
    entity = request_type(versions.PRODUCE, version)
    topic_type = item_type(entity, "topic_data")
    partition_type = item_type(topic_type, "partition_data")
    sent = [(tp, produced_batch(count=1 + number)) for number, tp in enumerate(places)]
    topics = tuple(
        topic_type(name=tp.topic, partition_data=(partition_type(index=tp.partition, records=records),))
        for tp, records in sent
    )
    timeout = timedelta(milliseconds=timeout_ms)
    written = fill(entity, transactional_id=None, acks=acks, timeout=timeout, topic_data=topics)
    frame = request_frame(versions.PRODUCE, version, written)
    found = decode_request(frame, split_batches=split_produced).request
    assert isinstance(found, m.ProduceRequest)
    assert (acks, timeout_ms) == (found.acks, found.timeout_ms)
    assert sent == [
        (asked.tp, b"".join(bytes(one.payload) for one in asked.batches)) for asked in found.partitions
    ]


def test_records_stay_where_they_were_received() -> None:
    """Received records are views into their frame; sent records are the batch's own bytes."""
    entity = request_type(versions.PRODUCE, 3)
    topic_type = item_type(entity, "topic_data")
    partition = item_type(topic_type, "partition_data")(index=0, records=produced_batch())
    topics = (topic_type(name="t", partition_data=(partition,)),)
    written = fill(entity, transactional_id=None, acks=1, timeout=timedelta(0), topic_data=topics)
    frame = request_frame(versions.PRODUCE, 3, written)
    request = decode_request(memoryview(frame), split_batches=split_produced).request
    assert isinstance(request, m.ProduceRequest)
    (one,) = request.partitions[0].batches
    assert isinstance(one.payload, memoryview) and one.payload.obj is frame
    result = m.FetchResult(tp=TopicPartition("t", 0), error=ErrorCode.NONE, batches=(one,))
    pieces = encode_response(incoming(versions.FETCH, 11), m.FetchResponse(results=(result,)))
    assert pieces[-1] is one.payload


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff\xff", "string at 0: null; expected a text"),
        (b"\xff\xfe", "-2 bytes at 2 of 2"),
        (b"\x00\x03ab", "3 bytes at 2 of 4"),
        (b"\x00\x01\xff", "string at 2: .*expected UTF-8"),
    ],
)
def test_text_that_is_none_is_a_wire_error(data: bytes, words: str) -> None:
    with pytest.raises(WireError, match=words):
        read_text(data, 0)


def test_null_text_is_none_and_what_is_taken_is_not_copied() -> None:
    assert (None, 2) == read_nullable_text(b"\xff\xff", 0)
    whole = b"abcd"
    taken, end = take(memoryview(whole), 1, 2)
    assert isinstance(taken, memoryview)
    assert (b"bc", 3, whole) == (bytes(taken), end, taken.obj)
