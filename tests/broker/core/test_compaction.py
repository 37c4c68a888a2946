"""The broker has its logs compacted again and again, each up to what is committed, and a part at a time."""

from __future__ import annotations

from typing import Any

import pytest

from targets.broker.core.log_port import Cleaned
from targets.broker.core.messages import TopicPartition
from tests.broker.core.asks import fetch, leader_of, produce
from tests.broker.core.bench import TP, Bench, recovery
from tests.broker.core.memory import MemoryLog, log_of

CHECK_MS = 1_000
OTHER = TopicPartition("u", 0)


def log_of_bench(bench: Bench) -> MemoryLog:
    log = bench.replica.log
    assert isinstance(log, MemoryLog)
    return log


def leading(rules: str = "kip380", **settings: Any) -> Bench:
    """Return a leader of three records, of which two are committed."""
    bench = leader_of(0, isr=(1, 2), rules=rules, compaction_check_ms=CHECK_MS, **{"compact": True, **settings})
    for _ in range(3):
        bench.request(produce())
    bench.request(fetch(2, replica=2))
    assert 2 == bench.replica.high_watermark
    return bench


def two_logs(**settings: Any) -> tuple[Bench, MemoryLog, MemoryLog]:
    """Return a broker that leads two partitions, and their logs."""
    bench = Bench("kip380", broker_id=1, compact=True, compaction_check_ms=CHECK_MS, **settings)
    logs = log_of((0, 2)), log_of((0, 2), tp=OTHER)
    bench.start(*((log, recovery(log, high_watermark=2)) for log in logs))
    for tp in (TP, OTHER):
        bench.command(leader=1, epoch=1, isr=(1,), tp=tp)
    return bench, *logs


@pytest.mark.parametrize("lead", [True, False])
def test_log_is_compacted_up_to_the_high_watermark(lead: bool) -> None:
    """Source: KAFKA-13194; Kafka's LogCleanerManagerTest.testCleanableOffsetsForNone and its like."""
    bench = leading()
    if not lead:
        bench.command(leader=2, epoch=9)
    bench.pass_ms(CHECK_MS)
    assert [2] == [upto for upto, _ in log_of_bench(bench).cleans]


def test_log_is_looked_at_again_and_again() -> None:
    bench = leading()
    for _ in range(3):
        bench.pass_ms(CHECK_MS)
    assert 3 == len(log_of_bench(bench).cleans)


def test_log_is_left_alone_unless_it_is_to_be_compacted() -> None:
    bench = leading(compact=False)
    bench.pass_ms(CHECK_MS)
    assert [] == log_of_bench(bench).cleans


def test_what_was_compacted_is_told() -> None:
    bench = leading()
    log_of_bench(bench).cleaned = [Cleaned(read=100, upto=2, size=70)]
    effects = bench.pass_ms(CHECK_MS)
    assert [{"topic": "t", "partition": 0, "upto": 2, "size": 70}] == bench.observed("cleaned", effects)


def test_cleaning_that_is_not_done_goes_on_before_that_of_another_log() -> None:
    bench, first, second = two_logs()
    first.cleaned = [Cleaned(read=10, more=True), Cleaned(read=10, more=True), Cleaned(read=10, upto=2)]
    bench.pass_ms(CHECK_MS)
    bench.pass_ms(1)
    assert (2, 0) == (len(first.cleans), len(second.cleans))
    bench.pass_ms(1)
    assert (3, 1) == (len(first.cleans), len(second.cleans))
    bench.pass_ms(1)
    assert (3, 1) == (len(first.cleans), len(second.cleans))
    bench.pass_ms(CHECK_MS)
    assert (4, 2) == (len(first.cleans), len(second.cleans))


def test_logs_together_read_no_more_than_the_limit_at_once() -> None:
    bench, first, second = two_logs(compaction_bytes_max=100)
    first.cleaned = [Cleaned(read=60, upto=2)]
    bench.pass_ms(CHECK_MS)
    assert ([100], [40]) == tuple([left for _, left in log.cleans] for log in (first, second))
    first.cleaned = [Cleaned(read=100, upto=2)]
    bench.pass_ms(CHECK_MS)
    assert (2, 1) == (len(first.cleans), len(second.cleans))
    bench.pass_ms(1)
    assert [(2, 100), (2, 40), (2, 100)] == [first.cleans[-1], second.cleans[0], second.cleans[-1]]
