"""The witness records epoch questions, their answers and followers' fetch offsets as in docs/history.md."""

from __future__ import annotations

from typing import Any

from harness.fabric.core.rules import Direction
from targets.kafka_family.wire.bodies import EpochAnswer, EpochQuestion, FetchBody
from targets.kafka_family.wire.witness import Answers, Questions, Witness
from tests.events.as_recorded import into

LINK = ("A", "B")


def witness_with_record() -> tuple[Witness, list[tuple[str, dict[str, Any]]]]:
    record: list[tuple[str, dict[str, Any]]] = []
    return Witness(into(record)), record


def fetch_at(offset: int) -> FetchBody:
    return FetchBody(replica_id=1, full=True, offsets=((("t", 0), offset),), forgotten=())


def test_witness_records_a_question_and_its_answer() -> None:
    witness, record = witness_with_record()
    question = EpochQuestion(topic="t", partition=0, leader_epoch=4, current_leader_epoch=-1)
    answer = EpochAnswer(topic="t", partition=0, error=0, leader_epoch=-1, end_offset=21)
    witness.passed(LINK, Questions(version=0, questions=(question,)), {})
    witness.passed(LINK, Answers(answers=(answer,)), {})
    about = {"link": ["A", "B"], "topic": "t", "partition": 0}
    assert [
        ("epoch-question", {**about, "leader_epoch": 4, "version": 0}),
        ("epoch-answer", {**about, "error": 0, "leader_epoch": -1, "end_offset": 21}),
    ] == record


def test_witness_records_a_fetch_offset_only_when_it_changes() -> None:
    witness, record = witness_with_record()
    last: dict[tuple[str, int], int] = {}
    for offset in (1, 1, 2, 2, 1):
        witness.passed(LINK, fetch_at(offset), last)
    assert [1, 2, 1] == [value["offset"] for _, value in record]
    witness.passed(LINK, fetch_at(1), {})
    assert 4 == len(record)


def test_witness_records_no_offset_when_a_consumer_fetches() -> None:
    witness, record = witness_with_record()
    witness.passed(("?", "B"), fetch_at(1), {})
    assert [] == record


def test_witness_records_what_is_unreadable_once_for_each_kind() -> None:
    witness, record = witness_with_record()
    for version in (1, 1, 2):
        witness.unreadable(LINK, "Fetch", version, Direction.REQUEST, "why")
    assert [1, 2] == [value["version"] for _, value in record]


def test_witness_says_nothing_of_topics_that_brokers_make_for_themselves() -> None:
    """A client's group makes Apache Kafka create __consumer_offsets; a run records only its own topic."""
    witness, record = witness_with_record()
    own = FetchBody(replica_id=1, full=True, offsets=((("__consumer_offsets", 0), 3),), forgotten=())
    witness.passed(LINK, own, {})
    assert [] == record
