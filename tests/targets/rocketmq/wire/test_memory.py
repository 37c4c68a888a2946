"""Where records end, as far as they were seen: bounded, and each position anew when it is written again."""

from __future__ import annotations

import random

import pytest

from targets.rocketmq.wire import memory as module
from targets.rocketmq.wire.memory import Memory


def noted(*ends: tuple[int, int], topic: str = "log", queue: int = 0, memory: Memory | None = None) -> Memory:
    """Return a memory of records of one queue: the byte after each, and the offset after it."""
    found = memory or Memory()
    for end, after in ends:
        found.note(topic, queue, end=end, after=after)
    return found


def test_memory_of_nothing_knows_no_topic() -> None:
    assert [(), ()] == [Memory().offsets_at(position) for position in (0, 2**62)]


@pytest.mark.parametrize(("position", "offset"), [(0, 0), (99, 0), (100, 1), (199, 1), (200, 2), (10**9, 2)])
def test_position_has_the_offset_after_the_last_record_before_it(position: int, offset: int) -> None:
    assert (("log", offset),) == noted((100, 1), (200, 2)).offsets_at(position)


def test_records_may_be_seen_in_any_order() -> None:
    ends = [(100 * number, number) for number in range(1, 30)]
    random.Random(4).shuffle(ends)
    memory = noted(*ends)
    assert [(("log", number),) for number in range(30)] == [
        memory.offsets_at(100 * number) for number in range(30)
    ]


def test_queues_are_kept_apart_and_come_in_the_order_in_which_they_were_seen() -> None:
    memory = noted((100, 1), (300, 2))
    noted((200, 5), queue=1, memory=memory)
    noted((400, 9), topic="etc", memory=memory)
    assert (("log", 1), ("log", 5), ("etc", 0)) == memory.offsets_at(250)
    assert (("log", 2), ("log", 5), ("etc", 9)) == memory.offsets_at(400)


def test_position_that_is_written_again_has_its_new_offset_alone() -> None:
    memory = noted((100, 1), (200, 2), (300, 3), (200, 8))
    assert [(("log", 1),), (("log", 8),), (("log", 3),)] == [memory.offsets_at(at) for at in (100, 200, 300)]


def test_record_that_is_seen_again_changes_nothing() -> None:
    memory = noted((100, 1), (200, 2), (100, 1), (200, 2))
    assert [(("log", 1),), (("log", 2),)] == [memory.offsets_at(at) for at in (100, 200)]


def test_beyond_the_bound_the_oldest_record_of_a_queue_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RECORDS_MAX", 3)
    memory = noted(*((100 * number, number) for number in range(1, 6)))
    noted((50, 1), queue=1, memory=memory)
    assert [0, 0, 3, 4, 5] == [memory.offsets_at(100 * number)[0][1] for number in range(1, 6)]
    # The other queue has a bound of its own.
    assert ("log", 1) == memory.offsets_at(100)[1]
    # One that is older than all is none that is kept.
    noted((10, 1), memory=memory)
    assert [0, 3] == [memory.offsets_at(at)[0][1] for at in (10, 300)]


def test_many_records_stay_within_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RECORDS_MAX", 500)
    memory = noted(*((number, number) for number in range(1, 5001)))
    assert [500, 500] == [len(each) for kept in (memory._ends, memory._offsets) for each in kept.values()]
    assert (("log", 5000),) == memory.offsets_at(5000)
