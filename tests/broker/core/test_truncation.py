"""Truncation decisions one by one (D numbers Kafka's own cases), and truncation inside a batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from targets.broker.core.epochs import EpochCache, EpochEnd, EpochEntry
from targets.broker.core.log_port import LeoAfterCut
from targets.broker.core.messages import FetchRequest
from targets.broker.core.rules import PROTOCOLS, EpochCut, TruncateTo
from targets.broker.core.truncation import Cut, Reason, decide, walk
from tests.broker.core.asks import ends_at
from tests.broker.core.bench import Bench, log_of, recovery

TARGET, PHYSICAL = LeoAfterCut.TARGET, LeoAfterCut.PHYSICAL


@pytest.mark.parametrize(
    ("leo", "end", "epochs"),
    [(TARGET, 4, [(0, 0), (1, 2)]), (PHYSICAL, 2, [(0, 0)])],
    ids=["as Kafka, the offset asked for", "what is really there"],
)
def test_epochs_and_high_watermark_are_cut_at_the_logs_new_end_under_both_switches(
    leo: LeoAfterCut, end: int, epochs: list[tuple[int, int]]
) -> None:
    """
    Source:  KAFKA-6361, case 3: an answer inside a batch removes the batch whole. Here one batch holds offsets 2
             to 6 in epoch 1, and the leader's answer is 4.
    """
    bench = Bench(replace(PROTOCOLS["kip101"], leo_after_cut=leo))
    log = log_of((0, 2), (1, 5))
    bench.start((log, recovery(log, high_watermark=7)))
    bench.command(leader=2, epoch=2)
    effects = bench.answer(ends_at(4))
    assert [item.base_offset for item in log.batches] == [0]
    assert (log.end_offset, bench.replica.high_watermark) == (end, end)
    assert list(bench.replica.epochs.entries) == epochs
    cut = {"topic": "t", "partition": 0, "from": 7, "to": 4, "end": end, "reason": "epoch-answer", "epoch": 2}
    assert [cut] == bench.observed("truncate", effects)
    (request,) = [send.request for send in bench.sent(effects)]
    assert isinstance(request, FetchRequest)
    assert [end] == [part.fetch_offset for part in request.partitions]


@pytest.mark.parametrize("leo", [TARGET, PHYSICAL])
@pytest.mark.parametrize("epoch_cut", EpochCut)
def test_epochs_that_go_with_a_cut_are_written_down(leo: LeoAfterCut, epoch_cut: EpochCut) -> None:
    """Source: KIP-101 step 4.4: "and flushes the Leader Epoch Sequence File"."""
    bench = Bench(replace(PROTOCOLS["kip101"], leo_after_cut=leo, epoch_cut=epoch_cut))
    log = log_of((0, 2), (1, 5), (3, 1))
    bench.start((log, recovery(log)))
    bench.command(leader=2, epoch=4)
    bench.answer(ends_at(1))
    assert log.epoch_writes[-1][:2] == (list(bench.replica.epochs.entries), True)


@pytest.mark.parametrize("leo", [TARGET, PHYSICAL])
def test_cut_to_the_high_watermark_inside_a_batch_ends_by_the_same_switch(leo: LeoAfterCut) -> None:
    """Source: Kafka Replication Design V3, becomeFollower: "truncate the log to r.hw"."""
    bench = Bench(replace(PROTOCOLS["kip101"], truncate_to=TruncateTo.HIGH_WATERMARK, leo_after_cut=leo))
    log = log_of((0, 2), (1, 5))
    bench.start((log, recovery(log, high_watermark=4)))
    effects = bench.command(leader=2, epoch=2)
    expected = 4 if leo is TARGET else 2
    assert (log.end_offset, bench.replica.high_watermark) == (expected, expected)
    assert [("high-watermark", 4, expected)] == [
        (seen["reason"], seen["to"], seen["end"]) for seen in bench.observed("truncate", effects)
    ]


def test_log_that_ends_before_the_answer_is_not_cut_and_loses_no_epoch() -> None:
    bench = Bench("kip101")
    log = log_of((0, 2), (1, 5))
    bench.start((log, recovery(log)))
    bench.command(leader=2, epoch=2)
    bench.answer(ends_at(7))
    assert (len(log.batches), list(bench.replica.epochs.entries)) == (2, [(0, 0), (1, 2)])


def test_high_watermark_beyond_the_log_cuts_nothing_when_the_leader_knows_no_epoch() -> None:
    found = decide(EpochEnd(-1, -1), log_end_offset=3, fallback=5)
    assert Cut(to=3, reason=Reason.NO_EPOCH_INFORMATION) == found


# --- one decision at a time: Kafka's own numbers -------------------------------------------------------------
# (id, answer, log end, high watermark, own cache, truncated to, done)
WALKS: list[tuple[str, tuple[int, int], int, int, list[tuple[int, int]], int, bool]] = [
    ("D1", (5, 156), 200, 199, [(5, 0)], 156, True),
    ("D1'", (5, 172), 200, 199, [(5, 0)], 172, True),
    ("D2", (4, 156), 200, 197, [], 156, True),
    ("D2'", (4, 202), 200, 197, [], 200, True),
    ("D3", (4, 155), 200, 198, [(3, 0), (5, 120)], 120, False),
    ("D3'", (4, 143), 200, 198, [(3, 0), (5, 120)], 120, False),
    ("D3b", (3, 101), 120, 120, [(3, 0)], 101, True),
    ("D3b'", (3, 102), 120, 120, [(3, 0)], 102, True),
    ("D4", (-1, 155), 200, 198, [(5, 0)], 155, True),
    ("D4'", (-1, 143), 200, 198, [(5, 0)], 143, True),
    ("D5", (-1, -1), 200, 100, [(5, 0)], 100, True),
    ("D6", (4, 1), 0, 0, [(4, 0)], 0, True),
    # Kafka's tests of diverging epochs in Fetch v12 and of moves between log directories decide by the same rule.
    ("D8", (4, 140), 200, 115, [(4, 0), (5, 149)], 140, True),
    ("D8'", (4, 141), 200, 115, [(4, 0), (5, 149)], 141, True),
    ("D8b", (3, 130), 140, 115, [(2, 0), (4, 129)], 129, False),
    ("D8b'", (3, 131), 141, 115, [(2, 0), (4, 129)], 129, False),
    ("D8c", (2, 120), 129, 115, [(1, 0), (3, 119)], 119, False),
    ("D9", (4, 140), 150, 130, [(4, 0), (5, 149)], 140, True),
    ("D12", (2, 190), 191, 0, [(2, 0)], 190, True),
    ("D12'", (2, 192), 191, 0, [(2, 0)], 191, True),
    ("D13", (4, 200), 195, 0, [(3, 0), (5, 195)], 195, False),
    ("D13'", (3, 190), 195, 0, [(3, 0), (5, 191)], 190, True),
    ("D14", (-1, -1), 200, 100, [], 100, True),
    ("D15", (1, 300), 290, 0, [(1, 0)], 290, True),
]


@pytest.mark.parametrize("case", WALKS, ids=lambda case: case[0])
@pytest.mark.parametrize("protocol", ["kip279", "kip279-2.0.1", "kip320", "kip380"])
def test_walk_decides_as_kafkas_own_tests(
    case: tuple[str, tuple[int, int], int, int, list[tuple[int, int]], int, bool], protocol: str
) -> None:
    """Source: Kafka ReplicaFetcherThreadTest and ReplicaAlterLogDirsThreadTest; KIP-279."""
    _, answer, log_end, high_watermark, own, to, done = case
    cache = EpochCache(PROTOCOLS[protocol], [EpochEntry(*entry) for entry in own])
    found = walk(EpochEnd(*answer), cache, log_end_offset=log_end, fallback=high_watermark)
    assert (to, done) == (found.to, found.done)
    assert (Reason.NO_EPOCH_INFORMATION if answer[1] == -1 else Reason.EPOCH_ANSWER) is found.reason


@pytest.mark.parametrize(
    ("answer", "log_end", "high_watermark", "to"),
    [(156, 200, 199, 156), (202, 200, 197, 200), (155, 200, 198, 155), (-1, 200, 100, 100), (1, 0, 0, 0)],
    ids=["D1", "D2'", "D4", "D5", "D6"],
)
def test_one_answer_decides_as_kafkas_own_tests(answer: int, log_end: int, high_watermark: int, to: int) -> None:
    """Source: Kafka ReplicaFetcherThreadTest, the cases that one answer of v0 decides; KIP-101 steps 4.3, 4.5."""
    found = decide(EpochEnd(-1, answer), log_end_offset=log_end, fallback=high_watermark)
    assert (to, True) == (found.to, found.done)


@pytest.mark.parametrize(("protocol", "to"), [("kip279", 11), ("kip279-2.0.1", 5), ("kip320", 5), ("kip380", 5)])
def test_epoch_before_the_followers_first_one_is_where_releases_differ(protocol: str, to: int) -> None:
    """Source: KAFKA-7415: up to 2.0.0 a follower trusts the leader's offset; later, its first epoch's start."""
    cache = EpochCache(PROTOCOLS[protocol], [EpochEntry(7, 5)])
    found = walk(EpochEnd(4, 11), cache, log_end_offset=20, fallback=0)
    assert Cut(to=to, reason=Reason.EPOCH_ANSWER) == found
