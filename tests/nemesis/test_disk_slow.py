"""On a slow disk all takes longer and nothing is lost, until it is mended; on simulated machines."""

from __future__ import annotations

import pytest

from harness.model import OpType, Verdict
from tests.nemesis.simulated import played, seen

STEPS = "produce m1 acks=all\ndisk-slow A\nproduce m2 acks=all\n"


@pytest.mark.parametrize("protocol", ["hw", "kip101", "kip380"])
def test_what_is_produced_arrives_later(protocol: str) -> None:
    took_ms = []
    for steps in ("produce m1 acks=all\nproduce m2 acks=all\n", f"{STEPS}mend-disk A\n"):
        result, ops = played("disk-slow", steps, protocol)
        assert Verdict.VALID is result.verdict, result.anomalies
        asked = next(op for op in ops if op.f == "produce" and "m2" in str(op.value) and op.type is OpType.INVOKE)
        done = next(op for op in ops if op.index > asked.index and op.f == "produce" and op.type is OpType.OK)
        took_ms.append((done.time_ns - asked.time_ns) / 1e6)
    quick, slow = took_ms
    assert slow >= quick + 20


def test_disk_that_is_still_slow_at_the_end_is_mended() -> None:
    result, ops = played("disk-slow", STEPS)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert "every call takes 20 ms longer" in seen(ops, "disk-slow")
    assert "calls took longer" in seen(ops, "mend-disk")
