"""Request and answer bodies are read as kio writes them: whole, cut at every byte, and with a tail."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from targets.kafka_family.wire.bodies import (
    FETCH_VERSION_MAX,
    EpochAnswer,
    EpochQuestion,
    epoch_answers,
    epoch_questions,
    fetch_body,
)
from targets.kafka_family.wire.frames import Unreadable
from tests.targets.kafka_family.wire import wire
from tests.targets.kafka_family.wire.wire import TOPIC_ID, encoded

Reader = Callable[[bytes, int, int], tuple[Any, int]]
FETCH_VERSIONS = range(FETCH_VERSION_MAX + 1)


def check_cut_anywhere(reader: Reader, data: bytes, version: int) -> None:
    """Check a reader's contract: bytes around the value change nothing, and every proper prefix is Unreadable."""
    value, size = reader(data, 0, version)
    assert (value, size) == reader(b"head" + data + b"tail", 4, version)
    for end in range(size):
        with pytest.raises(Unreadable):
            reader(data[:end], 0, version)


def with_header_tags(version: int, flexible_from: int, body: bytes) -> bytes:
    return (b"\x01\x00\x02ab" if version >= flexible_from else b"") + body


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetch_body_gives_offsets_of_every_partition(version: int) -> None:
    topics = (("t", ((0, 41), (3, 7))), ("u", ((1, 2**40),)))
    data = with_header_tags(version, 12, wire.fetch_body(version, topics, replica_id=2))
    body, _ = fetch_body(data, 0, version)
    t, u = ("t", "u") if version < 13 else (TOPIC_ID, TOPIC_ID)
    assert (((t, 0), 41), ((t, 3), 7), ((u, 1), 2**40)) == body.offsets
    assert (2 if version < 15 else None, True, ()) == (body.replica_id, body.full, body.forgotten)
    check_cut_anywhere(fetch_body, data, version)


@pytest.mark.parametrize("version", range(7, FETCH_VERSION_MAX + 1))
def test_fetch_body_gives_forgotten_partitions_when_it_is_inside_a_session(version: int) -> None:
    body_bytes = wire.fetch_body(version, (), session_epoch=5, forgotten=(("t", (0, 2)),))
    data = with_header_tags(version, 12, body_bytes)
    body, _ = fetch_body(data, 0, version)
    topic = "t" if version < 13 else TOPIC_ID
    assert (False, (), ((topic, 0), (topic, 2))) == (body.full, body.offsets, body.forgotten)
    check_cut_anywhere(fetch_body, data, version)


@pytest.mark.parametrize(("session_epoch", "full"), [(-1, True), (0, True), (1, False)])
def test_fetch_body_is_full_outside_of_a_session_and_at_its_start(session_epoch: int, full: bool) -> None:
    body, _ = fetch_body(wire.fetch_body(7, (), session_epoch=session_epoch), 0, 7)
    assert full == body.full


@pytest.mark.parametrize("version", range(4))
def test_epoch_questions_gives_kafkas_fields(version: int) -> None:
    data = wire.epoch_question(version, epoch=4)[4 + 10 + len("broker-1-fetcher") :]
    current = 9 if version >= 2 else -1
    expected = EpochQuestion(topic="t", partition=0, leader_epoch=4, current_leader_epoch=current)
    assert ((expected,), len(data)) == epoch_questions(data, 0, version)
    check_cut_anywhere(epoch_questions, data, version)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_epoch_questions_reads_what_kio_writes(version: int) -> None:
    schema = importlib.import_module(f"kio.schema.offset_for_leader_epoch.v{version}.request")
    partitions = tuple(
        schema.OffsetForLeaderPartition(partition=p, current_leader_epoch=9, leader_epoch=p + 4) for p in (0, 1)
    )
    topic = schema.OffsetForLeaderTopic(topic="t", partitions=partitions)
    replica = {"replica_id": 1} if version >= 3 else {}
    body = encoded(schema.OffsetForLeaderEpochRequest(**replica, topics=(topic,)))
    data = with_header_tags(version, 4, body)
    questions, _ = epoch_questions(data, 0, version)
    expected = tuple(
        EpochQuestion(topic="t", partition=p, leader_epoch=p + 4, current_leader_epoch=9) for p in (0, 1)
    )
    assert expected == questions
    check_cut_anywhere(epoch_questions, data, version)


@pytest.mark.parametrize("version", range(4))
def test_epoch_answers_gives_kafkas_fields(version: int) -> None:
    data = wire.epoch_answer(version, epoch=4, end=21, error=74)[8:]
    epoch = 4 if version >= 1 else -1
    expected = EpochAnswer(topic="t", partition=0, error=74, leader_epoch=epoch, end_offset=21)
    assert ((expected,), len(data)) == epoch_answers(data, 0, version)
    check_cut_anywhere(epoch_answers, data, version)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_epoch_answers_reads_what_kio_writes(version: int) -> None:
    schema = importlib.import_module(f"kio.schema.offset_for_leader_epoch.v{version}.response")
    errors = importlib.import_module("kio.schema.errors")
    end = schema.EpochEndOffset(
        error_code=errors.ErrorCode.fenced_leader_epoch, partition=1, leader_epoch=3, end_offset=-1
    )
    topic = schema.OffsetForLeaderTopicResult(topic="t", partitions=(end,))
    body = encoded(schema.OffsetForLeaderEpochResponse(throttle_time=timedelta(0), topics=(topic,)))
    data = with_header_tags(version, 4, body)
    answers, _ = epoch_answers(data, 0, version)
    assert (EpochAnswer(topic="t", partition=1, error=74, leader_epoch=3, end_offset=-1),) == answers
    check_cut_anywhere(epoch_answers, data, version)


@pytest.mark.parametrize(
    ("reader", "version"), [(fetch_body, 19), (fetch_body, -1), (epoch_questions, 5), (epoch_answers, 5)]
)
def test_reader_is_unreadable_when_the_version_is_not_known(reader: Reader, version: int) -> None:
    with pytest.raises(Unreadable, match=f"version {version}; expected 0 to"):
        reader(b"\x00" * 100, 0, version)


def test_fetch_body_is_unreadable_when_a_count_is_beyond_the_bytes() -> None:
    head = struct.pack(">iii", 1, 500, 1)
    for count in (2**31 - 1, -2):
        with pytest.raises(Unreadable, match="elements"):
            fetch_body(head + struct.pack(">i", count) + b"\x00" * 50, 0, 0)
    assert () == fetch_body(head + struct.pack(">i", -1), 0, 0)[0].offsets


@given(st.binary(max_size=200), st.integers(0, FETCH_VERSION_MAX))
def test_readers_give_a_value_or_unreadable_when_bytes_are_noise(noise: bytes, version: int) -> None:
    for reader in (fetch_body, epoch_questions, epoch_answers):
        try:
            _, size = reader(noise, 0, version)
        except Unreadable:
            continue
        assert size <= len(noise)
