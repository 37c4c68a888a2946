"""A write that fails ends the broker, which loses nothing by it; on simulated machines."""

from __future__ import annotations

import pytest

from harness.model import Verdict
from targets.simulator.broker.node import Node
from tests.nemesis.simulated import played, refused, seen

STEPS = "produce m1 acks=all\nproduce m2 acks=1 meanwhile\nwrite-error A\nawait leader = B\nrestart A\n"


@pytest.mark.parametrize("protocol", ["hw", "kip101", "kip380"])
def test_broker_ends_at_its_next_write_and_nothing_is_lost(protocol: str) -> None:
    result, ops = played("write-error", STEPS, protocol)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert "it met EIO at an append to log-0" in seen(ops, "write-error")
    assert "ended: OSError(5, 'Input/output error')" in seen(ops, "write-error")


def test_broker_that_swallows_the_error_and_goes_on_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Node, "end", lambda *_: None)
    result, ops = played("write-error", STEPS)
    assert "A goes on after 0.12 s; it met EIO at " in refused(ops, "write-error")
    assert Verdict.UNKNOWN is result.verdict
