"""The failover's frames, its assignments and its table; and one real failover of a few partitions."""

from __future__ import annotations

import struct

import pytest
from rich.console import Console

from benchmarks.failover import (
    BATCHED,
    BROKERS,
    OURS,
    SERIAL,
    SINGLE,
    Failover,
    assignments,
    measure,
    peer_of,
    table,
)
from benchmarks.prober import _answered, _request
from targets.broker.core.messages import ListOffsetsRequest, TopicPartition
from targets.broker.core.zookeeper import ZkSet, leader_and_isr_path
from targets.broker.log import split_produced
from targets.broker.wire import decode_request
from tests.broker.core.test_state_writes import MANY, controller_of_many, leaders, lose_leader
from tests.kept import exhaustive
from tests.needs import needs


@pytest.mark.parametrize("led", ["third", "all"])
@pytest.mark.parametrize("victim", BROKERS)
def test_dead_broker_leads_what_it_is_said_to_lead_and_every_broker_has_every_partition(
    led: str, victim: int
) -> None:
    controller = 1 + victim % len(BROKERS)
    placed = assignments(30, led, victim, controller)
    assert all(sorted(brokers) == list(BROKERS) for brokers in placed)
    leaders = [brokers[0] for brokers in placed]
    assert (30 if led == "all" else 10) == leaders.count(victim)
    heirs = [brokers[1] for brokers in placed if brokers[0] == victim]
    assert {*BROKERS} - {victim, controller} == set(heirs)


def test_question_names_every_partition_and_an_answer_with_an_error_is_no_leader() -> None:
    head = struct.pack(">hhih", 2, 2, 7, 8) + b"failover"
    request = decode_request(head + _request([("a", 1), ("b", 0), ("a", 5)]), split_batches=split_produced).request
    assert isinstance(request, ListOffsetsRequest)
    assert [("a", 1), ("a", 5), ("b", 0)] == [tuple(part.tp) for part in request.partitions]
    assert {-1} == {part.timestamp for part in request.partitions} | {request.replica_id}
    parts = struct.pack(">ihqq", 1, 0, -1, 4) + struct.pack(">ihqq", 5, 6, -1, -1)
    answer = struct.pack(">iii", 7, 0, 1) + struct.pack(">h", 1) + b"a" + struct.pack(">i", 2) + parts
    assert [("a", 1)] == _answered(answer)


def found(peer: str, last: float) -> Failover:
    return Failover(
        peer=peer,
        partitions=1_000,
        led="all",
        moved=1_000,
        first=0.5,
        median=1.0,
        last=last,
        writes=13,
        sent_bytes=1_048_576,
        controller_s=1.5,
        leader_s=2.0,
        memory_kib=4.25,
        made_s=9.0,
        start_s=2.0,
        back_s=3.0,
    )


def test_table_has_the_ratio_to_our_batched_failover() -> None:
    console = Console(width=160, record=True)
    console.print(table([found(BATCHED, 2.0), found(SINGLE, 5.0), found("3.9.1", 1.0)]))
    rows = [line for line in console.export_text().splitlines() if "1,000" in line]
    assert ["1.00", "2.50", "0.50"] == [row.split("│")[7].strip() for row in rows]


@pytest.mark.parametrize(("way", "sent"), [(BATCHED, 1), (SINGLE, MANY), (SERIAL, 1)])
def test_each_way_has_its_own_number_of_writes_under_way(way: str, sent: int) -> None:
    """While the first is not answered; V3 reckons with one write after another."""
    bench = controller_of_many(**OURS[way])
    bench.hold(leader_and_isr_path(TopicPartition("t", 0)), writes=True)
    under_way = lose_leader(bench)
    assert sent == len(under_way)
    written = sum(isinstance(part, ZkSet) for multi in under_way for part in multi.ops)
    assert written == (1 if way == SERIAL else MANY)
    bench.release()
    assert [(1, 1)] * MANY == leaders(bench)


@pytest.mark.slow
@exhaustive
@needs("java")
def test_real_failover_moves_every_leader_in_few_writes() -> None:
    """Source: Kafka Replication Design V3, discussion 1."""
    said: list[str] = []
    batched = measure(peer_of(BATCHED, profile=False), 20, "all", said.append, None)
    assert (20, "all", BATCHED) == (batched.moved, batched.led, batched.peer)
    assert 0 < batched.first <= batched.median <= batched.last
    # The end of the session, the failover in one multi, and what the leaders may write of their ISRs meanwhile.
    assert batched.writes < 10 and batched.sent_bytes > 20 * 100
    assert any("20 leaders moved" in text for text in said)
