"""The witness records what forwarded frames say, and what could not be read."""

from __future__ import annotations

from typing import Any

from harness.events import Fetch
from harness.fabric.limits import UNREADABLE_KINDS_MAX
from harness.fabric.witness import Witness
from harness.target.wire import Direction, Message, Seen
from tests.events.as_recorded import into

SEEN = Seen(link=("A", "B"), api="fetch", direction=Direction.REQUEST)


def witness_with_record() -> tuple[Witness, list[tuple[str, dict[str, Any]]]]:
    record: list[tuple[str, dict[str, Any]]] = []
    return Witness(into(record)), record


def test_witness_records_each_event_of_a_frame_that_is_forwarded() -> None:
    witness, record = witness_with_record()
    events = tuple(Fetch(link=("A", "B"), topic="t", partition=number, offset=3) for number in range(2))
    witness.passed(Message(seen=SEEN, events=events))
    assert [("fetch", 0), ("fetch", 1)] == [(f, value["partition"]) for f, value in record]


def test_witness_records_what_is_unreadable_once_for_each_kind() -> None:
    witness, record = witness_with_record()
    for version in (1, 1, 2):
        seen = Seen(link=("A", "B"), api="fetch", direction=Direction.REQUEST, version=version)
        witness.unreadable(seen, "why")
    assert [1, 2] == [value["version"] for _, value in record]


def test_witness_records_no_more_kinds_of_what_is_unreadable_than_it_has_room_for() -> None:
    witness, record = witness_with_record()
    for version in range(UNREADABLE_KINDS_MAX + 10):
        seen = Seen(link=("A", "B"), api="fetch", direction=Direction.REQUEST, version=version)
        witness.unreadable(seen, "why")
    assert UNREADABLE_KINDS_MAX == len(record)
