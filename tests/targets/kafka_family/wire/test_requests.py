"""Requests are written as those that unmodified Apache Kafka has answered, and as kio reads them."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from kio.serial import entity_reader

from harness.target.length_prefix import LENGTH
from harness.workload.plan import Place
from targets.kafka_family.clients.batches import write_batch
from targets.kafka_family.wire import requests
from targets.kafka_family.wire.frames import API_NAMES, Unreadable, request_header
from targets.kafka_family.wire.requests import Question
from tests.targets.kafka_family.wire.recorded import BETWEEN_BROKERS, EXCHANGES, Exchange, exchange

AT, SETS = Place("log", 0), Place("sets", 0)
BATCHES = {
    "acknowledged, none": ([b"m1.0", b"m1.1"], -1, 5.0),
    "acknowledged, acks=1": ([b"m2.0"], 1, 5.0),
    "of a follower": ([b"m3.0"], -1, 5.0),
    "timed out": ([b"m4.0"], -1, 0.3),
    "not enough replicas": ([b"m5.0"], -1, 5.0),
}


def fetch(offset: int, version: int, place: Place = AT) -> Question[Any]:
    return requests.fetch({place: offset}, wait_ms=500, max_bytes=1 << 20, version=version)


# What was asked when the answers were recorded.
ASKED: dict[tuple[str, str, int], Question[Any]] = {
    ("ApiVersions", "which versions", 0): requests.api_versions(),
    ("Metadata", "the topic", 1): requests.metadata(["log"], 1),
    ("Metadata", "a topic, and one that is not there", 4): requests.metadata(["log", "missing"]),
    ("InitProducerId", "an id", 0): requests.producer_id(60.0),
    **{
        ("Produce", what, 3): requests.produce(
            {AT: write_batch(values, "none")}, acks=acks, timeout_s=within_s, version=3
        )
        for what, (values, acks, within_s) in BATCHES.items()
    },
    ("Produce", "acknowledged, zstd", 7): requests.produce(
        {AT: write_batch([b"m1.0", b"m1.1"], "zstd")}, acks=-1, timeout_s=5.0, version=7
    ),
    ("Fetch", "from 0", 5): fetch(0, 5),
    ("Fetch", "from 0", 10): fetch(0, 10),
    ("Fetch", "out of range", 5): fetch(99, 5),
    ("ListOffsets", "the first offset", 1): requests.list_offsets(AT, requests.EARLIEST),
    ("DeleteRecords", "before 1", 0): requests.delete_records(AT, 1, 5.0),
    ("CreateTopics", "created", 2): requests.create_topic("sets", [[2, 3]], 5.0),
    ("CreatePartitions", "added", 0): requests.create_partitions("sets", 2, [[3, 2]], 5.0),
    ("AlterConfigs", "altered", 0): requests.alter_topic("sets", "message.format.version", "0.10.2"),
    ("AlterConfigs", "refused", 0): requests.alter_topic("sets", "no.such.setting", "1"),
    ("DeleteTopics", "deleted", 1): requests.delete_topic("sets", 5.0),
}
RECORDED = [
    each for each in EXCHANGES if (each.api, each.what, each.version) in ASKED and each.what != BETWEEN_BROKERS
]


def test_every_request_that_clients_have_was_answered_by_apache_kafka() -> None:
    assert ASKED.keys() == {(each.api, each.what, each.version) for each in RECORDED}
    assert {each.api for each in ASKED.values()} == {
        number for name, number in vars(requests).items() if name.isupper() and name in APIS
    }


APIS = (
    "PRODUCE",
    "FETCH",
    "LIST_OFFSETS",
    "METADATA",
    "API_VERSIONS",
    "CREATE_TOPICS",
    "DELETE_TOPICS",
    "DELETE_RECORDS",
    "INIT_PRODUCER_ID",
    "ALTER_CONFIGS",
    "CREATE_PARTITIONS",
)


@pytest.mark.parametrize("asked", RECORDED, ids=str)
def test_request_is_written_as_apache_kafka_has_answered_it(asked: Exchange) -> None:
    frame = ASKED[asked.api, asked.what, asked.version].frame(asked.correlation, "recorder")
    assert (len(asked.request), asked.request) == (LENGTH.unpack_from(frame)[0], frame[LENGTH.size :])


@pytest.mark.parametrize("name", ASKED, ids=lambda name: f"{name[0]} v{name[2]} {name[1]}")
def test_request_is_read_by_kio_to_its_last_byte(name: tuple[str, str, int]) -> None:
    api, _, version = name
    frame = ASKED[name].frame(3, "recorder")[LENGTH.size :]
    header, at = request_header(frame, 0)
    assert (api, version, 3, "recorder") == (
        API_NAMES[header.api_key],
        header.version,
        header.correlation,
        header.client_id,
    )
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in api)[1:]
    module = importlib.import_module(f"kio.schema.{snake}.v{version}.request")
    _, size = entity_reader(getattr(module, f"{api}Request"))(frame, at)
    assert len(frame) == at + size


def test_batches_of_several_topics_are_grouped_under_them() -> None:
    batches = {AT: b"a", SETS: b"b", Place("log", 1): b"c"}
    body = requests.produce(batches, acks=1, timeout_s=1.0, version=3).body
    module = importlib.import_module("kio.schema.produce.v3.request")
    entity: Any = entity_reader(module.ProduceRequest)(body, 0)[0]
    assert [("log", [(0, b"a"), (1, b"c")]), ("sets", [(0, b"b")])] == [
        (topic.name, [(part.index, bytes(part.records)) for part in topic.partition_data])
        for topic in entity.topic_data
    ]
    assert (1, 1.0) == (entity.acks, entity.timeout.total_seconds())


def test_answer_to_another_request_is_none() -> None:
    asked = exchange("3.9.1", "Produce", "timed out")
    question = ASKED[asked.api, asked.what, asked.version]
    assert question.answer(asked.answer, asked.correlation)
    with pytest.raises(Unreadable, match=f"answer {asked.correlation}; expected {asked.correlation + 1}"):
        question.answer(asked.answer, asked.correlation + 1)
