"""A reading identifies the source of a connection, the request that an answer belongs to, and what both say."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest

from harness.fabric.core.rules import Pattern
from harness.fabric.limits import WHOLE_BYTES_MAX
from harness.target.wire import UNKNOWN, Direction, Message, Seen
from targets.kafka_family.wire.frames import FETCH
from targets.kafka_family.wire.reading import KafkaReading, client_source
from targets.zookeeper.packets import ZooKeeperReading
from tests.events.as_recorded import as_recorded
from tests.targets.kafka_family.wire import wire
from tests.targets.kafka_family.wire.wire import TOPIC_ID

NAMES = {1: "A", 12: "B"}


class Read:
    """A reading of a connection to B, and all that its frames said."""

    def __init__(self, topics: dict[str, str] | None = None) -> None:
        self.reading = KafkaReading((UNKNOWN, "B"), NAMES, topics)
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.errors: list[str] = []

    def request(self, frame: bytes) -> Seen:
        return self._read(frame, Direction.REQUEST)

    def answer(self, frame: bytes) -> Seen:
        return self._read(frame, Direction.ANSWER)

    def _read(self, frame: bytes, direction: Direction) -> Seen:
        message: Message = self.reading.read(frame, direction)
        assert direction is message.seen.direction
        self.said += map(as_recorded, message.events)
        self.errors += [message.error] if message.error else []
        return message.seen


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
    read = Read()
    assert ("?", "B") == read.request(wire.request(3, 1, 1, "ReplicaFetcherThread-0-12")).link
    fetch = wire.fetch(5, version=3, client_id="ReplicaFetcherThread-0-12", replica_id=1)
    assert ("A", "B") == read.request(fetch).link


def test_source_stays_when_a_later_request_names_another() -> None:
    read = Read()
    read.request(wire.fetch(5, client_id="broker-1-fetcher"))
    assert ("A", "B") == read.request(wire.fetch(5, client_id="broker-12-fetcher")).link


def test_source_is_unknown_and_nothing_is_said_when_a_consumer_fetches() -> None:
    read = Read()
    assert ("?", "B") == read.request(wire.fetch(5, client_id="rdkafka", replica_id=-1)).link
    assert [] == read.said


def test_answer_has_word_and_offsets_of_its_request() -> None:
    read = Read()
    read.request(wire.fetch(5, correlation=7))
    read.request(wire.request(4, 1, 8, "1"))
    first, second = (read.answer(wire.answer(c, b"not read")) for c in (7, 8))
    assert ("fetch", (("t", 5),), 5) == (first.api, first.offsets, first.version)
    assert ("command", ()) == (second.api, second.offsets)


def test_fetch_of_many_partitions_is_about_each_and_held_by_the_offset_of_one() -> None:
    """A broker asks a leader for all of its partitions in one Fetch."""
    topics = [(topic, [(number, 10 * number) for number in range(500)]) for topic in ("t", "u")]
    read = Read({})
    body = wire.fetch_body(11, topics)
    seen = read.request(wire.request(FETCH, 11, 7, "broker-1-fetcher", body))
    assert [(topic, 10 * number) for topic in ("t", "u") for number in range(500)] == [*seen.offsets]
    read.answer(wire.answer(7, b"not read"))
    assert (1_000, 1_000) == tuple([f for f, _ in read.said].count(f) for f in ("fetch", "fetched"))
    assert [] == read.errors
    hold = Pattern(api="fetch", src="A", dst="B", direction=Direction.REQUEST, from_offset=4_990, topic="u")
    assert hold.matches(seen)
    assert not replace(hold, from_offset=4_991).matches(seen)
    assert not replace(hold, topic="v").matches(seen)


def test_question_and_its_answer_are_said() -> None:
    read = Read()
    asked, told = read.request(wire.epoch_question(0)), read.answer(wire.epoch_answer(0))
    assert ("epoch-question", "epoch-question") == (asked.api, told.api)
    about = {"link": ["A", "B"], "topic": "t", "partition": 0}
    assert [
        ("epoch-question", {**about, "leader_epoch": 4, "version": 0}),
        ("epoch-answer", {**about, "error": 0, "leader_epoch": -1, "end_offset": 21}),
    ] == read.said


def test_fetch_offset_is_said_only_when_it_changes() -> None:
    read = Read()
    for offset in (1, 1, 2, 2, 1):
        read.request(wire.fetch(offset))
    assert [("fetch", 1), ("fetch", 2), ("fetch", 1)] == [(f, value["offset"]) for f, value in read.said]


def test_nothing_is_said_of_topics_that_brokers_make_for_themselves() -> None:
    """A client's group makes Apache Kafka create __consumer_offsets; a run records only its own topic."""
    read = Read()
    assert (("__consumer_offsets", 3),) == read.request(wire.fetch(3, topic="__consumer_offsets")).offsets
    assert [] == read.said


def test_answer_is_found_when_a_request_before_it_has_none() -> None:
    read = Read()
    read.request(wire.request(0, 3, 7, "x"))  # a produce with acks=0
    read.request(wire.request(3, 1, 8, "x"))
    assert "Metadata" == read.answer(wire.answer(8)).api
    assert ["?", "?"] == [read.answer(wire.answer(late)).api for late in (7, 8)]


def test_answer_to_a_request_that_was_sent_twice_is_found_twice() -> None:
    read = Read()
    read.request(wire.fetch(5, correlation=7))
    read.reading.sent_again(7)
    assert ["fetch", "fetch", "?"] == [read.answer(wire.answer(7)).api for _ in range(3)]


def test_answer_is_of_no_word_when_nobody_asked() -> None:
    read = Read()
    read.request(wire.fetch(5, correlation=7))
    assert "?" == read.answer(wire.answer(99)).api
    assert "fetch" == read.answer(wire.answer(7)).api
    assert 1 == len(read.errors)


def test_fetch_is_about_its_whole_session_when_it_names_no_partition() -> None:
    read = Read()
    start = wire.fetch(5, version=7, session_epoch=0)
    silent = wire.fetch(0, version=7, session_epoch=1, named=False)
    moved = wire.fetch(9, version=7, session_epoch=2)
    offsets = [read.request(each).offsets for each in (start, silent, moved, silent)]
    assert [(("t", 5),), (("t", 5),), (("t", 9),), (("t", 9),)] == offsets
    forget = wire.request(
        FETCH,
        7,
        1,
        "broker-1-fetcher",
        wire.fetch_body(7, (), session_epoch=3, forgotten=(("t", (0,)),)),
    )
    assert () == read.request(forget).offsets


def test_fetch_is_about_what_it_names_alone_when_it_is_outside_of_a_session() -> None:
    read = Read()
    read.request(wire.fetch(5, topic="old"))
    assert (("t", 6),) == read.request(wire.fetch(6)).offsets


def test_frame_whose_body_is_unreadable_keeps_its_word() -> None:
    read = Read()
    seen = read.request(wire.request(FETCH, 5, 1, "broker-1-fetcher", b"\x00\x01"))
    assert (("A", "B"), "fetch", 5) == (seen.link, seen.api, seen.version)
    assert 1 == len(read.errors)


def test_unreadable_header_is_a_frame_of_no_word() -> None:
    read = Read()
    assert "?" == read.request(wire.frame(b"abc")).api
    assert "request header" in read.errors[0]


def test_unreadable_answer_to_an_epoch_question_keeps_its_word() -> None:
    read = Read()
    read.request(wire.epoch_question(0))
    assert ("epoch-question", 1) == (read.answer(wire.answer(2, b"\x00")).api, len(read.said))
    assert 1 == len(read.errors)


def test_fetch_is_not_read_when_its_frame_is_streamed() -> None:
    read = Read()
    head = wire.request(FETCH, 5, 1, "broker-1-fetcher", b"\x00" * WHOLE_BYTES_MAX)[:1000]
    seen = read.request(head)
    assert ("fetch", (), -1) == (seen.api, seen.offsets, seen.correlation)
    assert "streamed" in read.errors[0]


def test_obeyed_command_is_told_with_its_error_when_commands_are_read() -> None:
    read = Read({})
    read.request(wire.leader_and_isr(1, (("log", 0, 12, 5, (12, 1)), ("log", 1, -1, 2, ()))))
    read.answer(wire.leader_and_isr_answer(1, (("log", 0, 0), ("log", 1, 11))))
    about = {"link": ["A", "B"], "topic": "log"}
    assert [
        ("learned", {**about, "partition": 0, "leader": "B", "epoch": 5, "isr": ["B", "A"], "error": 0}),
        ("learned", {**about, "partition": 1, "leader": None, "epoch": 2, "isr": [], "error": 11}),
    ] == read.said


def test_command_that_is_refused_as_a_whole_is_refused_for_every_partition() -> None:
    read = Read({})
    read.request(wire.leader_and_isr(5, (("log", 0, 1, 5, (1,)),)))
    read.answer(wire.leader_and_isr_answer(5, (), error=77))
    assert [77] == [value["error"] for _, value in read.said]


def test_commands_are_not_looked_into_when_they_are_not_as_kafka_lays_them_out() -> None:
    read = Read()
    read.request(wire.leader_and_isr(1, (("log", 0, 12, 5, (12, 1)),)))
    read.answer(wire.leader_and_isr_answer(1, (("log", 0, 0),)))
    assert ([], []) == (read.said, read.errors)


def test_command_that_cannot_be_read_is_told_of_and_its_answer_is_nothing() -> None:
    read = Read({})
    read.request(wire.request(4, 1, 3, "1", b"\0\0"))
    assert "command" == read.answer(wire.leader_and_isr_answer(1, ())).api
    assert ([], 1) == (read.said, len(read.errors))


def test_topic_goes_by_its_name_once_a_command_has_told_its_id() -> None:
    topics: dict[str, str] = {}
    read, fetch = Read(topics), wire.fetch(5, version=13)
    assert ((TOPIC_ID, 5),) == read.request(fetch).offsets
    Read(topics).request(wire.leader_and_isr(7, (("log", 0, 12, 5, (12, 1)),)))
    assert (("log", 5),) == read.request(fetch).offsets
    assert [TOPIC_ID, "log"] == [value["topic"] for _, value in read.said]


def test_answered_fetch_of_a_follower_is_told_once_for_every_offset() -> None:
    read = Read({})
    for correlation, offset in enumerate((5, 5, 6, 5)):
        read.request(wire.fetch(offset, correlation=correlation))
        read.answer(wire.answer(correlation))
    assert [5, 6, 5] == [value["offset"] for f, value in read.said if f == "fetched"]


def test_answered_fetch_of_a_consumer_is_not_told() -> None:
    read = Read({})
    read.request(wire.fetch(5, client_id="rdkafka", replica_id=-1))
    read.answer(wire.answer(1))
    assert [] == read.said


def test_zookeeper_frames_are_told_apart_by_direction_alone() -> None:
    reading = ZooKeeperReading(("A", "metadata"))
    seen = [reading.read(b"", direction).seen for direction in Direction]
    assert [("metadata-request", "request"), ("metadata-request", "answer")] == [
        (each.api, each.direction.value) for each in seen
    ]


def test_multi_of_zookeeper_and_its_answer_are_told_from_other_packets() -> None:
    """Source: zookeeper.jute: a request is xid, type, body; its answer begins with xid; a connect has neither."""
    reading = ZooKeeperReading(("A", "metadata"))

    def multis(direction: Direction, *heads: tuple[int, int]) -> list[bool]:
        return [reading.read(packet(*head), direction).seen.multi for head in heads]

    asked = multis(Direction.REQUEST, (0, 14), (1, 14), (2, 4), (-2, 11), (3, 14))
    assert [False, True, False, False, True] == asked
    told = multis(Direction.ANSWER, (1, 0), (1, 0), (2, 0), (-2, 0), (3, 0), (3, 0))
    assert [False, True, False, False, True, False] == told
    assert not reading.read(b"\0\0\0\4\0\0\0\1", Direction.REQUEST).seen.multi


def packet(xid: int, kind: int) -> bytes:
    """Return a packet of ZooKeeper's that begins with these numbers."""
    return struct.pack(">iii", 8, xid, kind)
