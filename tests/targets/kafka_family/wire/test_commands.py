"""Every version of Apache Kafka's LeaderAndIsr is read: whole, cut at every byte, and with a tail."""

from __future__ import annotations

import pytest

from targets.kafka_family.wire.commands import VERSION_MAX, leader_and_isr, leader_and_isr_answer
from targets.kafka_family.wire.frames import Unreadable, answer_correlation, request_header
from tests.targets.kafka_family.wire import wire
from tests.targets.kafka_family.wire.wire import TOPIC_ID

VERSIONS = range(VERSION_MAX + 1)


def body_of(frame: bytes) -> bytes:
    """Return the bytes after a request's header."""
    return frame[4 + request_header(frame, 4)[1] :]


def answer_of(frame: bytes) -> bytes:
    """Return the bytes after an answer's correlation id."""
    return frame[4 + answer_correlation(frame, 4)[1] :]


@pytest.mark.parametrize("version", VERSIONS)
def test_command_gives_leader_epoch_and_isr_of_every_partition(version: int) -> None:
    sent = (("log", 0, 2, 5, (2, 1)), ("log", 3, -1, 6, ()))
    data = body_of(wire.leader_and_isr(version, sent))
    found, size = leader_and_isr(data, 0, version)
    assert list(sent) == [(c.topic, c.partition, c.leader, c.leader_epoch, c.isr) for c in found.commands]
    assert ({TOPIC_ID: "log"} if version >= 5 else {}) == found.topics
    assert (found, size) == leader_and_isr(b"head" + data + b"tail", 4, version)
    for end in range(size):
        with pytest.raises(Unreadable):
            leader_and_isr(data[:end], 0, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_answer_gives_the_error_of_every_partition_and_of_the_whole(version: int) -> None:
    data = answer_of(wire.leader_and_isr_answer(version, (("log", 0, 11), ("log", 1, 0)), error=0))
    found, size = leader_and_isr_answer(data, 0, version)
    topic = TOPIC_ID if version >= 5 else "log"
    assert (0, {(topic, 0): 11, (topic, 1): 0}) == (found.error, found.errors)
    assert (
        77
        == leader_and_isr_answer(answer_of(wire.leader_and_isr_answer(version, (), error=77)), 0, version)[0].error
    )
    for end in range(size):
        with pytest.raises(Unreadable):
            leader_and_isr_answer(data[:end], 0, version)


def test_version_that_is_not_known_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="LeaderAndIsr: version 8; expected 0 to 7"):
        leader_and_isr(b"\0" * 99, 0, 8)
