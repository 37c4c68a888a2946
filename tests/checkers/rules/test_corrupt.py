"""A damaged batch that is served or copied is found, whoever let it pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checkers.rules.corrupt import corrupt
from harness.events import Injection, Truncate
from harness.model import Kind, Verdict
from targets.broker.core import damage
from targets.simulator.broker.storage.log import SimLog
from tests.nemesis.simulated import played

ON_BOTH = "produce m1 acks=all\nproduce m2 acks=all\nproduce m3 acks=all\n"
NOT_ON_B = "hold requests Fetch B -> A\nproduce m1 acks=1\nproduce m2 acks=1\nproduce m3 acks=1\n"
SMALL = "segment_bytes=100"


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a bug: a broker reads its log, and looks at no checksum."""
    real = SimLog.read

    def read(log: SimLog, *asked: Any, **more: Any) -> Any:
        log.rotten, before = False, log.rotten
        try:
            return real(log, *asked, **more)
        finally:
            log.rotten = before

    monkeypatch.setattr(SimLog, "read", read)


@pytest.mark.usefixtures("unchecked")
def test_damaged_batch_that_a_leader_serves_to_clients_is_found() -> None:
    result, _ = played("served", f"{ON_BOTH}bit-rot-closed A\nread\n", settings=SMALL)
    assert Verdict.INVALID is result.verdict
    assert Kind.WRONG_READ in {anomaly.kind for anomaly in result.anomalies}, result.anomalies


@pytest.mark.usefixtures("unchecked")
def test_damaged_batch_that_a_follower_copies_is_found_on_its_disk() -> None:
    result, _ = played("copied", f"{NOT_ON_B}bit-rot-closed A\nrelease all\n", settings=SMALL)
    assert Verdict.INVALID is result.verdict
    found = [anomaly for anomaly in result.anomalies if anomaly.kind is Kind.CORRUPT]
    assert [(("B",), ((2, 3),))] == [(anomaly.nodes, anomaly.ranges) for anomaly in found]
    assert "and no fault did that" in found[0].sentence


def test_follower_that_throws_away_what_is_before_the_damage_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a bug: it cuts its log, and does so from the beginning."""
    monkeypatch.setattr(SimLog, "mend", lambda *_: False)
    real = damage.repair_from
    monkeypatch.setattr(damage, "repair_from", lambda replica: None if real(replica) is None else 0, raising=True)
    result, _ = played("early", f"{ON_BOTH}bit-rot-active B\nawait sound B\n")
    assert Kind.NOT_REPLICATED in {anomaly.kind for anomaly in result.anomalies}, result.anomalies


def test_damage_that_a_broker_finds_and_no_fault_has_done_is_one_that_it_wrote() -> None:
    _, ops = played("found", f"{ON_BOTH}bit-rot-active B\nawait sound B\n")
    assert [] == corrupt(ops)
    without = [op for op in ops if not isinstance(op.event, Injection)]
    assert [("B", ((2, 3),))] == [(*each.nodes, each.ranges) for each in corrupt(without)]


def test_cut_that_is_said_to_be_for_damage_and_is_for_none_is_found() -> None:
    _, ops = played("cut", f"{ON_BOTH}kill B\nexpire B\nawait isr = A\nrestart B\nawait isr = A B\n")
    cut = next(op for op in reversed(ops) if isinstance(op.event, Truncate))
    planted = replace(cut, value={**cut.value, "reason": "corrupt", "to": 2})
    found = corrupt([planted if op is cut else op for op in ops])
    assert [("B", ((2, 4),))] == [(*each.nodes, each.ranges) for each in found]
