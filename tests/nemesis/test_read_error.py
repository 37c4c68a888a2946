"""A read of a log that fails ends the broker, on simulated machines."""

from __future__ import annotations

from harness.model import Verdict
from tests.nemesis.simulated import played, refused, seen


def test_leader_that_cannot_read_what_a_follower_asks_for_ends() -> None:
    steps = "produce m1 acks=all\nproduce m2 acks=1 meanwhile\nread-error A\nawait leader = B\nrestart A\n"
    result, ops = played("read-error", steps)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert "it met EIO at a read of log-0" in seen(ops, "read-error")
    assert "OSError(5, 'Input/output error')" in seen(ops, "read-error")


def test_follower_that_is_asked_for_nothing_is_not_hit() -> None:
    steps = "produce m1 acks=all\npass 500ms\nread-error B\n"
    _, ops = played("read-error", steps)
    assert refused(ops, "read-error").endswith("B goes on after 0.12 s; it met no error")
