"""Answers are read as unmodified Apache Kafka writes them: whole, cut at every byte, and with a tail."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from kio.serial import entity_reader

from harness.workload.plan import Place
from targets.kafka_family.logs.message_set import records_of, walk
from targets.kafka_family.wire import answers
from targets.kafka_family.wire.answers import Changed, Deleted, Fetched, Listed, Produced, ProducerId
from targets.kafka_family.wire.cursor import Cursor
from targets.kafka_family.wire.errors import ErrorCode
from targets.kafka_family.wire.frames import Unreadable
from tests.targets.kafka_family.wire.recorded import BETWEEN_BROKERS, EXCHANGES, Exchange, exchange

READERS: Mapping[str, Callable[[Cursor, int], Any]] = {
    "Produce": answers.produced,
    "Fetch": answers.fetched,
    "ListOffsets": answers.listed,
    "Metadata": answers.metadata,
    "CreateTopics": answers.created,
    "CreatePartitions": answers.created,
    "DeleteTopics": answers.deleted_topics,
    "DeleteRecords": answers.deleted_records,
    "AlterConfigs": answers.altered,
    "InitProducerId": answers.producer_id,
}
TO_CLIENTS = [each for each in EXCHANGES if each.api in READERS and each.what != BETWEEN_BROKERS]
LOG, SETS = Place("log", 0), Place("sets", 0)
# What is known of an answer because of what was done before it, on 1.1.1 and on 3.9.1.
KNOWN: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("Produce", "acknowledged, none"): {"both": {LOG: Produced(error=ErrorCode.NONE, base_offset=0)}},
    ("Produce", "acknowledged, acks=1"): {
        "1.1.1": {LOG: Produced(error=ErrorCode.NONE, base_offset=2)},
        "3.9.1": {LOG: Produced(error=ErrorCode.NONE, base_offset=4)},
    },
    ("Produce", "of a follower"): {
        "both": {LOG: Produced(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, base_offset=-1)}
    },
    # It was appended: the error does not say that it was not.
    ("Produce", "timed out"): {
        "1.1.1": {LOG: Produced(error=ErrorCode.REQUEST_TIMED_OUT, base_offset=3)},
        "3.9.1": {LOG: Produced(error=ErrorCode.REQUEST_TIMED_OUT, base_offset=5)},
    },
    ("Produce", "not enough replicas"): {
        "both": {LOG: Produced(error=ErrorCode.NOT_ENOUGH_REPLICAS, base_offset=-1)}
    },
    ("Fetch", "out of range"): {
        "both": {LOG: Fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE, high_watermark=-1, log_start=-1, records=b"")}
    },
    ("ListOffsets", "the first offset"): {"both": {LOG: Listed(error=ErrorCode.NONE, offset=0)}},
    ("ListOffsets", "of a follower"): {"both": {LOG: Listed(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, offset=-1)}},
    ("ListOffsets", "the first offset, after a deletion"): {"both": {LOG: Listed(error=ErrorCode.NONE, offset=1)}},
    ("DeleteRecords", "before 1"): {"both": {LOG: Deleted(error=ErrorCode.NONE, low_watermark=1)}},
    ("CreateTopics", "created"): {"both": {"sets": Changed(error=ErrorCode.NONE)}},
    ("CreateTopics", "again"): {
        "both": {"sets": Changed(error=ErrorCode.TOPIC_ALREADY_EXISTS, text="Topic 'sets' already exists.")}
    },
    ("CreateTopics", "of a broker that is no controller"): {
        "both": {"other": Changed(error=ErrorCode.NOT_CONTROLLER)}
    },
    ("CreatePartitions", "added"): {"both": {"sets": Changed(error=ErrorCode.NONE)}},
    ("DeleteTopics", "deleted"): {"both": {"sets": Changed(error=ErrorCode.NONE)}},
    ("DeleteTopics", "a topic that is not there"): {
        "both": {"missing": Changed(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
    },
    ("AlterConfigs", "refused"): {
        "both": {
            "sets": Changed(error=ErrorCode.INVALID_CONFIG, text="Unknown topic config name: no.such.setting")
        }
    },
    ("InitProducerId", "an id"): {
        "1.1.1": ProducerId(error=ErrorCode.NONE, number=1001, epoch=0),
        "3.9.1": ProducerId(error=ErrorCode.NONE, number=1, epoch=0),
    },
}


def read(asked: Exchange, data: bytes | None = None) -> Any:
    """Read an answer to its last byte."""
    cursor = Cursor(asked.answer if data is None else data, 4, flexible=False)
    value = READERS[asked.api](cursor, asked.version)
    cursor.end()
    return value


@pytest.mark.parametrize("release", ["1.1.1", "3.9.1"])
@pytest.mark.parametrize(("api", "what"), KNOWN)
def test_answer_says_what_is_known_of_it(release: str, api: str, what: str) -> None:
    known = KNOWN[api, what]
    assert known.get("both", known.get(release)) == read(exchange(release, api, what))


@pytest.mark.parametrize(
    ("release", "version", "values"),
    [
        ("1.1.1", 5, ["m1.0", "m1.1", "m2.0"]),
        ("3.9.1", 5, ["m1.0", "m1.1", "m1.0", "m1.1", "m2.0"]),
        ("3.9.1", 10, ["m1.0", "m1.1", "m1.0", "m1.1", "m2.0"]),
    ],
)
def test_fetched_bytes_are_the_batches_that_were_sent(release: str, version: int, values: list[str]) -> None:
    """Version 5 of Fetch knows no zstd (KIP-110), and gets it all the same: only a topic's own codec is heeded."""
    (found,) = read(exchange(release, "Fetch", "from 0", version)).values()
    assert ErrorCode.NONE is found.error
    batches = walk(found.records).headers
    records = [record for batch in batches for record in records_of(batch)]
    assert list(enumerate(values)) == [(record.offset, record.value_text) for record in records]


def test_fetched_bytes_are_the_message_set_that_was_written() -> None:
    found = read(exchange("1.1.1", "Fetch", "message sets"))[SETS]
    sets = walk(found.records).headers
    assert [1, 1] == [each.magic for each in sets]
    records = [record for each in sets for record in records_of(each)]
    assert [(2, "s.0"), (3, "s.1")] == [(record.offset, record.value_text) for record in records]
    assert (4, 0) == (found.high_watermark, found.log_start)


@pytest.mark.parametrize("release", ["0.10.2.2", "1.1.1", "3.9.1"])
def test_metadata_name_the_brokers_the_controller_and_the_leader(release: str) -> None:
    found = read(exchange(release, "Metadata", "the topic"))
    assert ({1, 2, 3}, 1) == (set(found.addresses), found.controller)
    assert all(address.startswith("127.0.0.1:") for address in found.addresses.values())
    assert {"log": {0: 2}} == {
        name: {number: each.leader for number, each in topic.partitions.items()}
        for name, topic in found.topics.items()
    }
    missing = read(exchange(release, "Metadata", "a topic that is not there")).topics["missing"]
    assert (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, {}) == (missing.error, missing.partitions)


def by_place(topics: Any, make: Callable[[Any], Any]) -> Any:
    """Return what kio read, by partition; Produce and Fetch name some fields in their own way."""
    return {
        Place(
            getattr(topic, "name", "") or topic.topic,
            getattr(part, "partition_index", None) or getattr(part, "index", 0),
        ): make(part)
        for topic in topics
        for part in getattr(topic, "partitions", None) or topic.partition_responses
    }


def of(part: Any) -> ErrorCode:
    """Return an error that kio read."""
    return ErrorCode(part.error_code.value)


def changed(items: Any, name: str) -> Any:
    """Return what kio read of topics."""
    return {
        getattr(each, name): Changed(error=of(each), text=getattr(each, "error_message", None) or "")
        for each in items
    }


KIO: Mapping[str, Callable[[Any], Any]] = {
    "Produce": lambda whole: by_place(
        whole.responses,
        lambda part: Produced(error=of(part), base_offset=part.base_offset),
    ),
    "Fetch": lambda whole: by_place(
        whole.responses,
        lambda part: Fetched(
            error=of(part),
            high_watermark=part.high_watermark,
            log_start=part.log_start_offset,
            records=bytes(part.records or b""),
        ),
    ),
    "ListOffsets": lambda whole: by_place(
        whole.topics,
        lambda part: Listed(error=of(part), offset=part.offset),
    ),
    "DeleteRecords": lambda whole: by_place(
        whole.topics,
        lambda part: Deleted(error=of(part), low_watermark=part.low_watermark),
    ),
    "CreateTopics": lambda whole: changed(whole.topics, "name"),
    "CreatePartitions": lambda whole: changed(whole.results, "name"),
    "DeleteTopics": lambda whole: changed(whole.responses, "name"),
    "AlterConfigs": lambda whole: changed(whole.responses, "resource_name"),
    "InitProducerId": lambda whole: ProducerId(
        error=of(whole), number=whole.producer_id, epoch=whole.producer_epoch
    ),
    "Metadata": lambda whole: answers.Metadata(
        addresses={each.node_id: f"{each.host}:{each.port}" for each in whole.brokers},
        controller=whole.controller_id,
        topics={
            topic.name: answers.TopicMetadata(
                error=of(topic),
                partitions={
                    part.partition_index: answers.PartitionMetadata(error=of(part), leader=part.leader_id)
                    for part in topic.partitions
                },
            )
            for topic in whole.topics
        },
    ),
}


@pytest.mark.parametrize("asked", TO_CLIENTS, ids=str)
def test_answer_is_read_as_kio_reads_it(asked: Exchange) -> None:
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in asked.api)[1:]
    module = importlib.import_module(f"kio.schema.{snake}.v{asked.version}.response")
    theirs, _ = entity_reader(getattr(module, f"{asked.api}Response"))(asked.answer, 4)
    assert KIO[asked.api](theirs) == read(asked)


@pytest.mark.parametrize("asked", TO_CLIENTS, ids=str)
def test_answer_that_is_cut_short_or_has_a_tail_is_unreadable(asked: Exchange) -> None:
    for end in range(4, len(asked.answer)):
        with pytest.raises(Unreadable):
            read(asked, asked.answer[:end])
    with pytest.raises(Unreadable, match="1 bytes are left; expected none"):
        read(asked, asked.answer + b"\0")


def test_partition_that_is_answered_twice_is_unreadable() -> None:
    asked = exchange("1.1.1", "Produce", "timed out")
    # After the correlation id: one topic, its name (3 letters), one partition of 22 bytes, and the throttle time.
    start = 4 + 4 + 2 + 3
    part = asked.answer[start + 4 : start + 4 + 22]
    twice = asked.answer[:start] + struct.pack(">i", 2) + part + part + bytes(4)
    with pytest.raises(Unreadable, match="two entries for log-0; expected one"):
        read(asked, twice)


def test_error_that_kafka_does_not_have_is_unreadable() -> None:
    asked = exchange("1.1.1", "InitProducerId", "an id")
    with pytest.raises(Unreadable, match="error 999; expected one of Kafka's codes"):
        read(asked, asked.answer[:8] + struct.pack(">h", 999) + asked.answer[10:])


def test_error_codes_are_those_of_kio() -> None:
    codes: Any = importlib.import_module("kio.schema.errors").ErrorCode
    assert {each.name.upper(): each.value for each in codes} == {each.name: each.value for each in ErrorCode}
