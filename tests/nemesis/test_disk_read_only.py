"""A disk that becomes read-only ends the broker at its next change; on simulated machines."""

from __future__ import annotations

from harness.model import Verdict
from tests.nemesis.simulated import played, seen


def test_broker_ends_at_its_next_change_and_comes_back() -> None:
    steps = "produce m1 acks=all\nproduce m2 acks=1 meanwhile\ndisk-read-only A\nawait leader = B\nrestart A\n"
    result, ops = played("disk-read-only", steps)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert "it met EROFS at" in seen(ops, "disk-read-only")
    assert "ended: OSError(30, 'Read-only file system')" in seen(ops, "disk-read-only")
