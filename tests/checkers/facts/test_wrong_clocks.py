"""A leader whose clocks are wrong is not judged by the history's time."""

from __future__ import annotations

import pytest

from checkers.facts.wrong_clocks import clock_was_wrong
from checkers.rules import lagging
from harness.model import Kind, Op, OpType, Verdict
from tests.nemesis.simulated import played, seen

# B leads by slow clocks, and keeps A, which lags for six times as long as it may.
STEPS = """\
produce m1 acks=all
clock-slow B
kill A
expire A
await leader = B
restart A
await isr = A B
hold answers Fetch A -> B from end(m1)
produce m2 acks=1
pass 6000ms
require isr = A B
release all
pass 100ms
clock-right B
produce m3 acks=all
"""


def test_follower_that_lags_long_may_stay_where_the_leaders_clocks_are_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, _ = played("slow-leader", STEPS, settings="replica_lag_ms_max=1000")
    assert (Verdict.VALID, ()) == (result.verdict, result.anomalies)
    monkeypatch.setattr(lagging, "clock_was_wrong", lambda *_: False)
    result, _ = played("slow-leader", STEPS, settings="replica_lag_ms_max=1000")
    assert {Kind.WRONG_ISR} == {each.kind for each in result.anomalies}


def test_clocks_are_wrong_from_their_fault_to_the_end_of_its_healing() -> None:
    steps = "produce m1 acks=all\nclock-slow B\npass 1000ms\nclock-right B\nproduce m2 acks=all\n"
    _, ops = played("slow", steps)
    began = next(op for op in ops if op.f == "clock-slow")
    ended = next(op for op in ops if op.f == "clock-right" and op.type is OpType.OK)
    assert [False, True, True, False] == [
        clock_was_wrong(ops, "B", at_ns, at_ns)
        for at_ns in (began.time_ns - 1, began.time_ns, ended.time_ns, ended.time_ns + 1)
    ]
    assert not clock_was_wrong(ops, "A", 0, ended.time_ns)


def test_clocks_that_nothing_sets_right_are_wrong_to_the_end() -> None:
    _, ops = played("slow", "produce m1 acks=all\nclock-slow B\npass 1000ms\n")
    assert seen(ops, "clock-slow")
    cut: list[Op] = [op for op in ops if op.f != "clock-right"]
    assert clock_was_wrong(cut, "B", cut[-1].time_ns, cut[-1].time_ns)
