"""Who lags leaves the ISR in time, and nobody else does."""

from __future__ import annotations

from typing import Any

import pytest

from targets.broker.core import isr, leader, questions
from targets.broker.core.messages import ErrorCode, ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResult
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.oracles.lag import Lag
from targets.simulator.broker.world import World
from tests.simulator.broker.oracles.planted import patch, post, produce, replica_of, sentence_of, watched
from tests.simulator.worlds import TP, WAIT_S

LAG_MS = 100
SETTINGS = {"replica_lag_ms_max": LAG_MS, "fetch_wait_ms_max": 20, "high_watermark_checkpoint_ms": 50}


def with_laggard() -> tuple[World, Oracles]:
    """Return a watched world in which B no longer reaches A, the leader, whose log grows."""
    world, oracles = watched(settings=SETTINGS)
    world.links.cut("B", "A", close=True)
    for number in range(4):
        post(world, "A", produce(f"more.{number}", acks=1))
        world.run(0.1)
    return world, oracles


def test_sound_leader_takes_out_who_lags_and_keeps_the_other() -> None:
    world, oracles = with_laggard()
    assert {world.ids["A"], world.ids["C"]} == {*replica_of(world, "A").isr}
    assert "" == sentence_of(oracles, Rule.DUE)


def test_leader_that_keeps_who_lags_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    patch(monkeypatch, isr, "_late", lambda *_: False)
    _, oracles = with_laggard()
    assert "A, leader of log-0, keeps B, which has lagged for" in sentence_of(oracles, Rule.DUE)


def test_member_that_joins_is_looked_at_from_then_on() -> None:
    """It joins at the high watermark, and may be behind the log's end for longer than the lag allows."""
    world, _ = watched(settings=SETTINGS)
    lag, node, replica = Lag(world, [TP]), world.nodes["A"], replica_of(world, "A")
    isr = replica.isr

    def kept() -> set[str]:
        assert node.broker is not None
        return {text.split()[5] for _, text in lag.wrong("A", node, node.broker.state)}

    assert set() == kept()
    world.run(0.4)
    assert {"B,", "C,"} == kept()  # it was told of no fetch
    replica.isr = (world.ids["A"],)
    assert set() == kept()
    replica.isr = isr
    assert set() == kept()
    world.run(0.4)
    assert {"B,", "C,"} == kept()


def test_leader_that_takes_out_who_does_not_lag_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    world, oracles = watched(settings=SETTINGS)
    patch(monkeypatch, isr, "_late", lambda *_: True)
    world.run(0.2)
    assert "A, leader of log-0, takes out" in sentence_of(oracles, Rule.DUE)


def test_leadership_begins_when_its_broker_reads_of_it_at_its_start() -> None:
    """No command tells it: whoever is silent has lagged since the reading, and not since the next tick."""
    world, oracles = watched("hw", settings=SETTINGS)
    for follower in "BC":
        world.links.cut(follower, "A", close=True)
    world.nodes["A"].kill()
    world.nodes["A"].boot()
    assert world.until(lambda: replica_of(world, "A").isr == (world.ids["A"],), WAIT_S)
    assert "" == sentence_of(oracles, Rule.DUE)


def asked_for_the_latest(monkeypatch: pytest.MonkeyPatch, name: str, broken: Any) -> str:
    """Return what is said of a node's answer to a consumer; A leads, and has a record that is not committed."""
    world, oracles = watched()
    for other in ("B", "C"):
        world.links.cut(other, "A", close=True)
    post(world, "A", produce("tail", acks=1))
    if broken is not None:
        patch(monkeypatch, questions, "_list_one", broken)
    part = ListOffsetsPartition(tp=TP, timestamp=-1)
    post(world, name, ListOffsetsRequest(replica_id=-1, partitions=(part,)))
    return sentence_of(oracles, Rule.ANSWERS)


def _log_end(_original: Any, core: Any, _replica_id: int, part: Any) -> ListOffsetsResult:
    offset = core.state.replicas[part.tp].log.end_offset
    return ListOffsetsResult(tp=part.tp, error=ErrorCode.NONE, offset=offset)


@pytest.mark.parametrize(
    ("name", "broken", "expected"),
    [
        ("A", None, ""),
        ("B", None, ""),
        ("A", _log_end, "A tells a consumer offset 4, above its high watermark 3"),
        ("B", _log_end, "B tells a consumer an offset, and does not lead"),
    ],
)
def test_offset_that_is_not_committed_or_not_a_leader_s_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, broken: Any, expected: str
) -> None:
    found = asked_for_the_latest(monkeypatch, name, broken)
    assert expected in found
    assert bool(expected) == bool(found)


@pytest.mark.parametrize("broken", [False, True])
def test_produce_that_must_be_refused_and_is_appended_is_named(
    monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    world, oracles = watched(settings={**SETTINGS, "min_isr": 3})
    world.links.cut("B", "A", close=True)
    post(world, "A", produce("more", acks=1))
    assert world.until(lambda: len(replica_of(world, "A").isr) == 2, 5)
    if broken:
        patch(monkeypatch, leader, "_refusal", lambda *_: ErrorCode.NONE)
    post(world, "A", produce("late", acks=-1))
    expected = "appends a produce with acks=all, and its ISR is below 3" if broken else ""
    assert expected in sentence_of(oracles, Rule.ACKNOWLEDGED)
    assert broken == bool(sentence_of(oracles, Rule.ACKNOWLEDGED))
