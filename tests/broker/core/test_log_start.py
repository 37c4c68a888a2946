"""A follower's log starts where its leader's does, never past its own high watermark, and its epochs with it."""

from __future__ import annotations

import pytest

from targets.broker.core.messages import ErrorCode, FetchResponse, FetchResult
from tests.broker.core.asks import ends_at
from tests.broker.core.bench import Bench
from tests.broker.core.memory import TP, log_of, recovery


def fetching(protocol: str = "kip380") -> Bench:
    """Return a follower of broker 2 with fifteen records of three epochs, 0@0, 1@7 and 2@10, that fetches."""
    log = log_of((0, 5), (0, 2), (1, 3), (2, 5))
    bench = Bench(protocol)
    bench.start((log, recovery(log)))
    bench.command(leader=2, epoch=6)
    bench.answer(ends_at(15, epoch=2))
    return bench


def fetched(bench: Bench, *, start: int, high_watermark: int) -> None:
    """Answer the fetch in flight with no records and the leader's bounds."""
    result = FetchResult(tp=TP, error=ErrorCode.NONE, high_watermark=high_watermark, log_start_offset=start)
    bench.answer(FetchResponse(results=(result,)))


@pytest.mark.parametrize(
    ("start", "epochs"),
    [
        (5, [(0, 5), (1, 7), (2, 10)]),
        (7, [(1, 7), (2, 10)]),
        (9, [(1, 9), (2, 10)]),
        (15, [(2, 15)]),
    ],
)
def test_L7_first_epoch_that_remains_begins_where_the_log_now_does(
    start: int, epochs: list[tuple[int, int]]
) -> None:
    """
    Source:  Kafka UnifiedLogTest shouldUpdateOffsetForLeaderEpochsWhenDeletingSegments; KIP-101, Maintaining the
             LeaderEpochSequenceFile, which would remove it.
    """
    bench = fetching()
    fetched(bench, start=start, high_watermark=15)
    assert (start, 15) == (bench.replica.log.start_offset, bench.replica.log.end_offset)
    assert epochs == [tuple(entry) for entry in bench.replica.epochs.entries]
    assert epochs == [tuple(entry) for entry in bench.observed("checkpoint")[-1]["content"]]
    assert [{"topic": "t", "partition": 0, "from": 0, "to": start, "reason": "leader"}] == bench.observed(
        "log-start"
    )


def test_L15_log_start_never_passes_the_high_watermark() -> None:
    """Source: KAFKA-5634; Kafka UnifiedLogTest testCannotIncrementLogStartOffsetPastHighWatermark."""
    bench = fetching()
    fetched(bench, start=9, high_watermark=7)
    assert (7, 7) == (bench.replica.log.start_offset, bench.replica.high_watermark)


@pytest.mark.parametrize("start", [-1, 0, 4])
def test_log_start_does_not_move_back_or_without_word_from_the_leader(start: int) -> None:
    bench = fetching()
    fetched(bench, start=4, high_watermark=15)
    fetched(bench, start=start, high_watermark=15)
    assert 4 == bench.replica.log.start_offset
    assert 1 == len(bench.observed("log-start"))


def test_damage_below_the_new_start_is_forgotten_and_not_repaired() -> None:
    bench = fetching()
    bench.replica.damages = {5: 7, 10: 15}
    fetched(bench, start=7, high_watermark=15)
    assert {10: 15} == bench.replica.damages
    assert 7 == bench.replica.checked_to
