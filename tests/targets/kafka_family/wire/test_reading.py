"""A reading identifies the source of a connection, and the request that an answer belongs to."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest

from harness.fabric.core.rules import Direction, Pattern
from harness.fabric.limits import WHOLE_BYTES_MAX
from targets.kafka_family.wire.bodies import EpochQuestion, FetchBody
from targets.kafka_family.wire.frames import FETCH
from targets.kafka_family.wire.reading import KafkaReading, ZooKeeperReading, client_source
from targets.kafka_family.wire.witness import Commanded, Fetched, Questions, Witness
from tests.events.as_recorded import into
from tests.targets.kafka_family.wire import wire
from tests.targets.kafka_family.wire.wire import TOPIC_ID

NAMES = {1: "A", 12: "B"}
OFFSETS = [(("t", number), number) for number in range(300)]


def reading_with_record(
    topics: dict[str, str] | None = None,
) -> tuple[KafkaReading, list[tuple[str, dict[str, Any]]]]:
    record: list[tuple[str, dict[str, Any]]] = []
    return KafkaReading("B", NAMES, Witness(into(record)), topics), record


@pytest.mark.parametrize(
    ("client_id", "name"),
    [
        ("broker-1-fetcher", "A"),
        ("broker-12-fetcher-0", "B"),
        ("broker-1-controller", "A"),
        ("broker-1-controller-to-12", "A"),
        ("broker-12", "B"),
        ("12", "B"),
        ("3", None),
        ("broker-3-fetcher-0", None),
        ("broker-1x", None),
        ("1 ", None),
        ("ReplicaFetcherThread-0-1", None),
        ("rdkafka", None),
        ("", None),
    ],
)
def test_client_source_names_the_node_whose_id_the_client_id_tells(client_id: str, name: str | None) -> None:
    assert name == client_source(client_id, NAMES)


def test_source_comes_from_the_replica_id_when_the_client_does_not_say() -> None:
    reading, _ = reading_with_record()
    assert ("?", "B") == reading.request(wire.request(3, 1, 1, "ReplicaFetcherThread-0-12"))[0].link
    fetch = wire.fetch(5, version=3, client_id="ReplicaFetcherThread-0-12", replica_id=1)
    assert ("A", "B") == reading.request(fetch)[0].link


def test_source_stays_when_a_later_request_names_another() -> None:
    reading, _ = reading_with_record()
    reading.request(wire.fetch(5, client_id="broker-1-fetcher"))
    reading.request(wire.fetch(5, client_id="broker-12-fetcher"))
    assert ("A", "B") == reading.link


def test_source_is_unknown_when_a_consumer_fetches() -> None:
    reading, _ = reading_with_record()
    assert ("?", "B") == reading.request(wire.fetch(5, client_id="rdkafka", replica_id=-1))[0].link


def test_answer_has_api_and_offsets_of_its_request() -> None:
    reading, _ = reading_with_record()
    reading.request(wire.fetch(5, correlation=7))
    reading.request(wire.request(4, 1, 8, "1"))
    first, second = (reading.answer(wire.answer(c, b"not read"))[0] for c in (7, 8))
    assert ("Fetch", (("t", 5),), 5) == (first.api, first.offsets, first.version)
    assert ("LeaderAndIsr", ()) == (second.api, second.offsets)


def test_fetch_of_many_partitions_is_about_each_and_held_by_the_offset_of_one() -> None:
    """A broker asks a leader for all of its partitions in one Fetch."""
    topics = [(topic, [(number, 10 * number) for number in range(500)]) for topic in ("t", "u")]
    reading, record = reading_with_record({})
    body = wire.fetch_body(11, topics)
    seen, note = reading.request(wire.request(FETCH, 11, 7, "broker-1-fetcher", body))
    assert isinstance(note, FetchBody)
    assert [(topic, 10 * number) for topic in ("t", "u") for number in range(500)] == [*seen.offsets]
    answered = reading.answer(wire.answer(7, b"not read"))[1]
    assert isinstance(answered, Fetched)
    assert 1_000 == len(answered.offsets)
    assert [] == record  # nothing was unreadable
    hold = Pattern(api="Fetch", src="A", dst="B", direction=Direction.REQUEST, from_offset=4_990, topic="u")
    assert hold.matches(seen)
    assert not replace(hold, from_offset=4_991).matches(seen)
    assert not replace(hold, topic="v").matches(seen)


def test_questions_of_many_partitions_are_recorded_one_by_one() -> None:
    record: list[tuple[str, dict[str, Any]]] = []
    witness = Witness(into(record))
    asked = [EpochQuestion(topic="t", partition=n, leader_epoch=n, current_leader_epoch=-1) for n in range(300)]
    witness.passed(("A", "B"), Questions(version=2, questions=tuple(asked)), {})
    witness.passed(("A", "B"), FetchBody(replica_id=1, full=True, offsets=tuple(OFFSETS), forgotten=()), {})
    assert [*range(300)] == [value["leader_epoch"] for f, value in record if f == "epoch-question"]
    assert [*range(300)] == [value["offset"] for f, value in record if f == "fetch"]


def test_answer_is_found_when_a_request_before_it_has_none() -> None:
    reading, _ = reading_with_record()
    reading.request(wire.request(0, 3, 7, "x"))  # a produce with acks=0
    reading.request(wire.request(3, 1, 8, "x"))
    assert "Metadata" == reading.answer(wire.answer(8))[0].api
    assert ["?", "?"] == [reading.answer(wire.answer(late))[0].api for late in (7, 8)]


def test_answer_is_of_no_api_when_nobody_asked() -> None:
    reading, record = reading_with_record()
    reading.request(wire.fetch(5, correlation=7))
    assert "?" == reading.answer(wire.answer(99))[0].api
    assert "Fetch" == reading.answer(wire.answer(7))[0].api
    assert ["unreadable"] == [f for f, _ in record]


def test_fetch_is_about_its_whole_session_when_it_names_no_partition() -> None:
    reading, _ = reading_with_record()
    start = wire.fetch(5, version=7, session_epoch=0)
    silent = wire.fetch(0, version=7, session_epoch=1, named=False)
    moved = wire.fetch(9, version=7, session_epoch=2)
    offsets = [reading.request(each)[0].offsets for each in (start, silent, moved, silent)]
    assert [(("t", 5),), (("t", 5),), (("t", 9),), (("t", 9),)] == offsets
    forget = wire.request(
        FETCH,
        7,
        1,
        "broker-1-fetcher",
        wire.fetch_body(7, (), session_epoch=3, forgotten=(("t", (0,)),)),
    )
    assert () == reading.request(forget)[0].offsets


def test_fetch_is_about_what_it_names_alone_when_it_is_outside_of_a_session() -> None:
    reading, _ = reading_with_record()
    reading.request(wire.fetch(5, topic="old"))
    assert (("t", 6),) == reading.request(wire.fetch(6))[0].offsets


def test_unreadable_body_is_recorded_once_and_its_frame_keeps_its_api() -> None:
    reading, record = reading_with_record()
    broken = wire.request(FETCH, 5, 1, "broker-1-fetcher", b"\x00\x01")
    seen = [reading.request(broken)[0], reading.request(broken)[0]]
    assert ["Fetch", "Fetch"] == [each.api for each in seen]
    assert [("unreadable", ["A", "B"], "Fetch", 5)] == [
        (f, value["link"], value["api"], value["version"]) for f, value in record
    ]


def test_unreadable_header_is_a_frame_of_no_api() -> None:
    reading, record = reading_with_record()
    assert "?" == reading.request(wire.frame(b"abc"))[0].api
    assert "request header" in record[0][1]["error"]


def test_unreadable_answer_to_an_epoch_question_keeps_its_api() -> None:
    reading, record = reading_with_record()
    reading.request(wire.epoch_question(0))
    seen, note = reading.answer(wire.answer(2, b"\x00"))
    assert ("OffsetForLeaderEpoch", None) == (seen.api, note)
    assert [("unreadable", "answer")] == [(f, value["direction"]) for f, value in record]


def test_fetch_is_not_read_when_its_frame_is_streamed() -> None:
    reading, record = reading_with_record()
    head = wire.request(FETCH, 5, 1, "broker-1-fetcher", b"\x00" * WHOLE_BYTES_MAX)[:1000]
    assert ("Fetch", ()) == (reading.request(head)[0].api, reading.request(head)[0].offsets)
    assert "streamed" in record[0][1]["error"]


def test_obeyed_command_is_told_with_its_error_when_commands_are_read() -> None:
    reading, record = reading_with_record({})
    reading.request(wire.leader_and_isr(1, (("log", 0, 12, 5, (12, 1)), ("log", 1, -1, 2, ()))))
    _, note = reading.answer(wire.leader_and_isr_answer(1, (("log", 0, 0), ("log", 1, 11))))
    assert note is not None
    reading._witness.passed(("A", "B"), note, {})
    about = {"link": ["A", "B"], "topic": "log"}
    assert [
        ("learned", {**about, "partition": 0, "leader": "B", "epoch": 5, "isr": ["B", "A"], "error": 0}),
        ("learned", {**about, "partition": 1, "leader": None, "epoch": 2, "isr": [], "error": 11}),
    ] == record


def test_command_that_is_refused_as_a_whole_is_refused_for_every_partition() -> None:
    reading, _ = reading_with_record({})
    reading.request(wire.leader_and_isr(5, (("log", 0, 1, 5, (1,)),)))
    note = reading.answer(wire.leader_and_isr_answer(5, (), error=77))[1]
    assert isinstance(note, Commanded)
    assert [77] == [each.error for each in note.partitions]


def test_commands_are_not_looked_into_when_they_are_not_as_kafka_lays_them_out() -> None:
    reading, record = reading_with_record()
    reading.request(wire.leader_and_isr(1, (("log", 0, 12, 5, (12, 1)),)))
    assert (None, []) == (reading.answer(wire.leader_and_isr_answer(1, (("log", 0, 0),)))[1], record)


def test_command_that_cannot_be_read_is_told_of_and_its_answer_is_nothing() -> None:
    reading, record = reading_with_record({})
    reading.request(wire.request(4, 1, 3, "1", b"\0\0"))
    seen, note = reading.answer(wire.leader_and_isr_answer(1, ()))
    assert ("LeaderAndIsr", None) == (seen.api, note)
    assert [("unreadable", "LeaderAndIsr")] == [(f, value["api"]) for f, value in record]


def test_topic_goes_by_its_name_once_a_command_has_told_its_id() -> None:
    topics: dict[str, str] = {}
    reading, record = reading_with_record(topics)
    fetch = wire.fetch(5, version=13)
    assert ((TOPIC_ID, 5),) == reading.request(fetch)[0].offsets
    commander, _ = reading_with_record(topics)
    commander.request(wire.leader_and_isr(7, (("log", 0, 12, 5, (12, 1)),)))
    seen, note = reading.request(fetch)
    assert (("log", 5),) == seen.offsets
    assert note is not None
    reading._witness.passed(("A", "B"), note, {})
    assert [("fetch", "log")] == [(f, value["topic"]) for f, value in record]


def test_answered_fetch_of_a_follower_is_told_once_for_every_offset() -> None:
    reading, _ = reading_with_record({})
    told = []
    for correlation, offset in enumerate((5, 5, 6, 5)):
        reading.request(wire.fetch(offset, correlation=correlation))
        note = reading.answer(wire.answer(correlation))[1]
        told.append(note.offsets if isinstance(note, Fetched) else ())
    assert [((("t", 0), 5),), (), ((("t", 0), 6),), ((("t", 0), 5),)] == told


def test_answered_fetch_of_a_consumer_is_not_told() -> None:
    reading, _ = reading_with_record({})
    reading.request(wire.fetch(5, client_id="rdkafka", replica_id=-1))
    assert reading.answer(wire.answer(1))[1] is None


def test_zookeeper_frames_are_told_apart_by_direction_alone() -> None:
    reading = ZooKeeperReading(("A", "metadata"))
    seen = [reading.request(b"")[0], reading.answer(b"")[0]]
    assert [("ZooKeeper", "request"), ("ZooKeeper", "answer")] == [(s.api, s.direction.value) for s in seen]


def test_multi_of_zookeeper_and_its_answer_are_told_from_other_packets() -> None:
    """Source: zookeeper.jute: a request is xid, type, body; its answer begins with xid; a connect has neither."""
    reading = ZooKeeperReading(("A", "metadata"))
    asked = [reading.request(packet(*head))[0].multi for head in ((0, 14), (1, 14), (2, 4), (-2, 11), (3, 14))]
    assert [False, True, False, False, True] == asked
    told = [reading.answer(packet(*head))[0].multi for head in ((1, 0), (1, 0), (2, 0), (-2, 0), (3, 0), (3, 0))]
    assert [False, True, False, False, True, False] == told
    assert not reading.request(b"\0\0\0\4\0\0\0\1")[0].multi


def packet(xid: int, kind: int) -> bytes:
    """Return a packet of ZooKeeper's that begins with these numbers."""
    return struct.pack(">iii", 8, xid, kind)
