"""A full disk ends the broker that writes next, on simulated machines; one that writes nothing is not hit."""

from __future__ import annotations

import pytest

from harness.model import Verdict
from tests.nemesis.simulated import played, refused, seen

STEPS = "produce m1 acks=all\nproduce m2 acks=1 meanwhile\ndisk-full A\nawait leader = B\nrestart A\n"


def test_broker_ends_at_its_next_write_and_comes_back() -> None:
    result, ops = played("disk-full", STEPS)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert "it met ENOSPC at" in seen(ops, "disk-full")
    assert "ended: OSError(28, 'No space left on device')" in seen(ops, "disk-full")


def test_broker_that_writes_nothing_is_not_hit() -> None:
    _, ops = played("disk-full", "produce m1 acks=all\npass 500ms\ndisk-full A\n")
    assert refused(ops, "disk-full").endswith("A goes on after 0.12 s; it met no error")


@pytest.mark.parametrize("protocol", ["hw", "kip101", "kip380"])
def test_no_protocol_loses_what_a_full_disk_did_not_take(protocol: str) -> None:
    steps = "produce m1 acks=all\nproduce m2 acks=1 meanwhile\ndisk-full B\nrestart B\nproduce m3 acks=all\n"
    result, _ = played("disk-full", steps, protocol)
    assert Verdict.VALID is result.verdict, result.anomalies
