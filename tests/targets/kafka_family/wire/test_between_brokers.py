"""What the links read of what brokers of unmodified Apache Kafka say to each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from targets.kafka_family.wire.bodies import EpochAnswer, EpochQuestion, epoch_answers, epoch_questions, fetch_body
from targets.kafka_family.wire.commands import Command, leader_and_isr, leader_and_isr_answer
from targets.kafka_family.wire.frames import API_NAMES, Unreadable, request_header
from tests.targets.kafka_family.wire.recorded import BETWEEN_BROKERS, EXCHANGES, Exchange, exchange

AT = ("log", 0)
# An answer's correlation id, before its body.
BODY = 4


def body_of(asked: Exchange) -> int:
    """Return where a request's body begins."""
    header, size = request_header(asked.request, 0)
    assert (asked.api, asked.version) == (API_NAMES[header.api_key], header.version)
    return size


def check_cut_anywhere(reader: Callable[[bytes, int, int], tuple[Any, int]], data: bytes, at: int, v: int) -> None:
    """Check that each proper beginning of what is read is unreadable."""
    _, size = reader(data, at, v)
    for end in range(at, at + size):
        with pytest.raises(Unreadable):
            reader(data[:end], at, v)


@pytest.mark.parametrize(("release", "version"), [("0.10.2.2", 0), ("1.1.1", 1), ("3.9.1", 7)])
def test_command_names_the_leader_its_epoch_and_the_isr(release: str, version: int) -> None:
    asked = exchange(release, "LeaderAndIsr", BETWEEN_BROKERS)
    at = body_of(asked)
    assert version == asked.version
    commands, _ = leader_and_isr(asked.request, at, version)
    assert (Command(topic="log", partition=0, leader=2, leader_epoch=0, isr=(2, 3)),) == commands.commands
    told, _ = leader_and_isr_answer(asked.answer, BODY, version)
    topic = "log" if version < 5 else next(iter(commands.topics))
    assert (0, {(topic, 0): 0}) == (told.error, told.errors)
    assert {topic: "log"} == commands.topics or version < 5
    check_cut_anywhere(leader_and_isr, asked.request, at, version)
    check_cut_anywhere(leader_and_isr_answer, asked.answer, BODY, version)


@pytest.mark.parametrize(("release", "version"), [("0.10.2.2", 3), ("1.1.1", 7), ("3.9.1", 17)])
def test_follower_s_fetch_names_its_offsets(release: str, version: int) -> None:
    asked = exchange(release, "Fetch", BETWEEN_BROKERS)
    at = body_of(asked)
    assert version == asked.version
    found, _ = fetch_body(asked.request, at, version)
    ((topic, partition), offset), *rest = found.offsets
    assert ([], 0, 0) == (rest, partition, offset)
    assert ("log" if version < 13 else 32) == (topic if version < 13 else len(topic))
    assert (3 if version < 15 else None) == found.replica_id
    check_cut_anywhere(fetch_body, asked.request, at, version)


@pytest.mark.parametrize("asked", [each for each in EXCHANGES if each.api == "OffsetForLeaderEpoch"], ids=str)
def test_question_about_an_epoch_and_its_answer_are_read(asked: Exchange) -> None:
    at = body_of(asked)
    (question,), _ = epoch_questions(asked.request, at, asked.version)
    (answer,), _ = epoch_answers(asked.answer, BODY, asked.version)
    epoch = 0 if asked.what in (BETWEEN_BROKERS, "the end of epoch 0") else 9
    # The log ended there when this was asked: after the record that timed out.
    end = {"1.1.1": 4, "3.9.1": 6}[asked.release] if asked.what == "the end of epoch 0" else -1
    known = asked.version >= 1 and end >= 0
    assert (
        EpochQuestion(topic="log", partition=0, leader_epoch=question.leader_epoch, current_leader_epoch=-1)
        == question
    )
    assert epoch == question.leader_epoch or asked.what == BETWEEN_BROKERS
    assert (
        EpochAnswer(topic="log", partition=0, error=0, leader_epoch=0 if known else -1, end_offset=end) == answer
    )
    check_cut_anywhere(epoch_questions, asked.request, at, asked.version)
    check_cut_anywhere(epoch_answers, asked.answer, BODY, asked.version)
