"""A failed flush ends the broker, and loses what was not durable; on simulated machines."""

from __future__ import annotations

from harness.model import Kind, Verdict
from tests.nemesis.simulated import played, seen


def test_broker_ends_and_loses_what_it_could_not_flush() -> None:
    steps = "produce m1 acks=all\nproduce m2 acks=1 meanwhile\nflush-error A\nawait leader = B\nrestart A\n"
    result, ops = played("flush-error", steps, settings="flush_messages=1")
    assert "it met EIO at a flush of log-0" in seen(ops, "flush-error")
    assert Verdict.VALID is result.verdict, result.anomalies


def test_loss_of_the_only_copy_is_permitted_and_says_that_a_flush_failed() -> None:
    steps = (
        "produce m1 acks=all\nkill B\nexpire B\nawait isr = A\nproduce m2 acks=all\nproduce m3 acks=1 meanwhile\n"
        "flush-error A\nrestart A\nrestart B\n"
    )
    result, _ = played("flush-error", steps, settings="flush_messages=2")
    assert Verdict.PERMITTED is result.verdict, result.anomalies
    lost = [each for each in result.anomalies if each.kind in (Kind.PERMITTED, Kind.LAST_STANDING)]
    assert any("A lost it unflushed as its flush failed" in each.sentence for each in lost), result.anomalies
