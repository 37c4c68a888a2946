"""The replicas' logs at the end of the run, and the tails that they lost during it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.model import Op, OpType, Source
from harness.report.reading import Reading
from harness.report.replicas import Piece, Replica, replayed, replicas_of
from tests.events.filled import filled
from tests.report.recorder import PLACE, TOPIC
from tests.report.samples import scenario1, scenario2b


def _replicas(ops: Sequence[Op]) -> dict[str, Replica]:
    reading = Reading(ops=ops)
    return {r.node: r for r in replicas_of(reading, TOPIC, 0, replayed(reading, TOPIC, 0).cuts)}


def _events(*events: tuple[str, dict[str, Any]]) -> list[Op]:
    return [
        Op(
            index=n,
            time_ns=n,
            source=Source.BROKER,
            process="A",
            type=OpType.INFO,
            f=f,
            value=filled(Source.BROKER, f, {**PLACE, **value}),
        )
        for n, (f, value) in enumerate(events)
    ]


def test_cut_tail_is_named_and_explained_when_follower_truncates_to_its_high_watermark() -> None:
    """Source: KIP-101, Scenario 1."""
    replica = _replicas(scenario1("hw")[1])["A"]
    (cut,) = replica.cuts
    assert (cut.to, cut.end, cut.reason) == (1, 3, "high-watermark")
    assert cut.pieces == (Piece(first=1, end=3, epoch=-1, name="m2"),)
    assert replica.pieces == (Piece(first=0, end=1, epoch=-1, name="m1"),)


def test_nothing_is_cut_when_the_leader_answers_with_the_end_of_the_log() -> None:
    """Source: KIP-101, Scenario 1."""
    replicas = _replicas(scenario1("kip101")[1])
    assert [replicas[node].cuts for node in "AB"] == [(), ()]
    assert replicas["A"].pieces[-1] == Piece(first=1, end=3, epoch=0, name="m2")


def test_tail_that_power_loss_took_is_a_cut_too() -> None:
    """Source: KIP-101, Scenario 2."""
    replicas = _replicas(scenario2b("kip101")[1])
    assert [(c.to, c.end, c.reason) for c in replicas["B"].cuts] == [(1, 2, "not on disk at restart (torn)")]
    assert [(c.to, c.end, c.reason) for c in replicas["A"].cuts] == [(1, 2, "epoch-answer")]


def test_replica_knows_its_batches_of_several_records() -> None:
    assert _replicas(scenario2b("hw")[1])["B"].batches == ((1, 6, "gzip"),)


def test_cut_that_was_undone_by_power_loss_is_none() -> None:
    ops = _events(
        ("append", {"base": 0, "end": 3, "epoch": 0, "role": "leader"}),
        ("truncate", {"from": 3, "to": 1, "end": 1, "reason": "epoch-answer", "epoch": 1}),
        ("recovered", {"log_end_offset": 3, "reason": "clean"}),
    )
    assert [len(r.cuts) for r in _replicas(ops[:2]).values()] == [1]
    assert replayed(Reading(ops=ops), TOPIC, 0).cuts == {}


def test_whole_log_thrown_away_is_one_cut_although_the_log_goes_on_behind_its_end() -> None:
    ops = _events(
        ("append", {"base": 0, "end": 3, "epoch": 0, "role": "leader"}),
        ("truncate", {"from": 3, "to": 7, "end": 7, "reason": "full", "epoch": 1}),
    )
    (cut,) = replayed(Reading(ops=ops), TOPIC, 0).cuts["A"]
    assert (cut.to, cut.end, cut.reason) == (0, 3, "full")


def test_cut_inside_a_batch_takes_what_lies_before_its_target_too() -> None:
    ops = _events(
        ("append", {"base": 0, "end": 9, "epoch": 0, "role": "leader"}),
        ("truncate", {"from": 9, "to": 6, "end": 4, "reason": "epoch-answer", "epoch": 1}),
    )
    (cut,) = replayed(Reading(ops=ops), TOPIC, 0).cuts["A"]
    assert (cut.to, cut.end) == (4, 9)


def test_replica_whose_files_were_not_read_says_so() -> None:
    _, ops = scenario1("hw")
    unread = [op for op in ops if op.source is not Source.LOG]
    assert [_replicas(unread)[node].snapshot for node in "AB"] == [None, None]
