"""The witness records truncation requests, their answers and fetch offsets as the fabric's events."""

from __future__ import annotations

import pytest

from targets.broker.core.rules import PROTOCOLS
from targets.simulator.broker.versions import questions_version
from tests.simulator.ends import Room, end_of, fetch, question

PLACE = {"link": ["A", "B"], "topic": "log", "partition": 0}


def test_fetch_offset_is_told_of_a_connections_first_and_when_it_changes() -> None:
    room = Room()
    pipe, anew = room.dial(), room.dial()
    for offset in (0, 0, 2, 2):
        room.ask(pipe, offset, fetch(offset))
    room.settle()
    room.ask(anew, 2, fetch(2))
    room.settle()
    assert [{**PLACE, "offset": offset} for offset in (0, 2, 2)] == room.of("fetch")


def test_question_and_answer_are_told_when_they_are_handed_on() -> None:
    room = Room("kip279")
    pipe = room.dial()
    hold = room.links.hold("epoch-question", "A", "B", "request")
    room.ask(pipe, (1, question(3)), question(3))
    room.settle()
    assert [] == room.of("epoch-question")
    room.links.release(hold)
    room.answer(pipe, (1, end_of(2, 7)), question(3))
    room.settle()
    assert [{**PLACE, "leader_epoch": 3, "version": 1}] == room.of("epoch-question")
    assert [{**PLACE, "error": 0, "leader_epoch": 2, "end_offset": 7}] == room.of("epoch-answer")


def test_answers_of_the_oldest_version_have_no_epoch() -> None:
    room = Room("kip101")
    pipe = room.dial()
    room.ask(pipe, (1, question(3)), question(3))
    room.answer(pipe, (1, end_of(2, 7)), question(3))
    room.settle()
    assert [{**PLACE, "error": 0, "leader_epoch": -1, "end_offset": 7}] == room.of("epoch-answer")


@pytest.mark.parametrize(("before", "after", "epoch"), [("kip279", "kip101", 2), ("kip101", "kip279", -1)])
def test_answer_under_way_keeps_its_version_while_its_sender_is_installed_another(
    before: str, after: str, epoch: int
) -> None:
    """Its bytes were written before (seed 1529 with an upgrade forced)."""
    room = Room(before)
    pipe = room.dial()
    room.ask(pipe, (1, question(3)), question(3))
    room.settle()
    room.answer(pipe, (1, end_of(2, 7)), question(3))
    room.install(after)
    room.settle()
    assert [{**PLACE, "error": 0, "leader_epoch": epoch, "end_offset": 7}] == room.of("epoch-answer")


def test_clients_are_not_overheard() -> None:
    room = Room()
    room.ask(room.dial(outside=True), 0, fetch(0))
    room.settle()
    assert [] == room.told


@pytest.mark.parametrize(
    ("protocol", "version"), [("kip101", 0), ("kip279", 1), ("kip279-2.0.1", 1), ("kip320", 2), ("kip380", 4)]
)
def test_version_of_the_question_is_the_releases(protocol: str, version: int) -> None:
    assert version == questions_version(PROTOCOLS[protocol])
