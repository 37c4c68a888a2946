from __future__ import annotations

from targets.broker.core.events import Caller
from targets.broker.core.messages import FetchPartition, FetchRequest, TopicPartition
from targets.broker.core.waiting import WaitingFetch
from targets.broker.core.waits import Waits

ONE, TWO = TopicPartition("t", 1), TopicPartition("t", 2)


def waiting(connection: int, *tps: TopicPartition) -> WaitingFetch:
    parts = tuple(FetchPartition(tp=tp, fetch_offset=0, max_bytes=1) for tp in tps)
    request = FetchRequest(replica_id=-1, max_wait_ms=1, min_bytes=1, max_bytes=1, partitions=parts)
    caller, asked = Caller(connection=connection, number=1), {part.tp: part for part in parts}
    return WaitingFetch(caller=caller, request=request, asked=asked)


def test_who_waits_is_found_by_partition_and_by_connection() -> None:
    waits: Waits[WaitingFetch] = Waits()
    waits.add(1, waiting(7, ONE, TWO, ONE))
    waits.add(2, waiting(8, TWO))
    waits.add(3, waiting(7, ONE))
    assert [1, 3] == [number for number, _ in waits.on(ONE)]
    assert [1, 2] == [number for number, _ in waits.on(TWO)]
    assert ([1, 3], [2], []) == (waits.of_connection(7), waits.of_connection(8), waits.of_connection(9))


def test_nothing_is_left_of_those_who_wait_no_more() -> None:
    waits: Waits[WaitingFetch] = Waits()
    for number in range(10):
        waits.add(number, waiting(number % 3, ONE, TWO))
    assert all(waits.pop(number) is not None for number in range(10))
    assert waits.pop(3) is None
    assert Waits() == waits
