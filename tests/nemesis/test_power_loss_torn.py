"""A power loss while the disk writes leaves torn batches and zeros, which recovery cuts; on simulated machines."""

from __future__ import annotations

import pytest

from harness.model import Verdict
from targets.simulator.broker.storage.disk import SimDisk
from tests.nemesis.simulated import played, seen

STEPS = (
    "produce m1 acks=all\nproduce m2 acks=all\nproduce m3 acks=all\npower-loss-torn A\nexpire A\n"
    "await leader = B\nrestart A\n"
)


@pytest.mark.parametrize("protocol", ["kip101", "kip380"])
def test_torn_tail_is_cut_and_copied_again(protocol: str) -> None:
    result, ops = played("torn", STEPS, protocol)
    assert Verdict.VALID is result.verdict, result.anomalies
    words = seen(ops, "power-loss-torn")
    assert "batches became" in words
    assert int(words.split(", ")[-1].split()[0]) > 0, words  # "12 bytes torn or zeros"


def test_log_that_is_damaged_keeps_what_was_flushed(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[bool] = []
    lose = SimDisk.lose_power

    def watched(disk: SimDisk, *arguments: object, **options: object) -> str:
        durable = [segment.durable for log in disk.logs.values() for segment in log.segments]
        text = lose(disk, *arguments, **options)  # type: ignore[arg-type]
        left = [segment.batches for log in disk.logs.values() for segment in log.segments]
        kept.append(all(list(before) == after[: len(before)] for before, after in zip(durable, left, strict=True)))
        return text

    monkeypatch.setattr(SimDisk, "lose_power", watched)
    played("torn", STEPS.replace("produce m3", "flush A\nproduce m3"))
    assert [True] == kept
