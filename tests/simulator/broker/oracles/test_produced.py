"""A producer is told the truth: where its records are and, with acks=all, that they are committed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from targets.broker.core import leader
from targets.broker.core.messages import ProducePartition, ProduceRequest, TopicPartition
from targets.broker_target.target import SETTINGS
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.storage.records import make_batch
from tests.simulator.broker.oracles.planted import CONNECTION, patch, post, produce, sentence_of, watched
from tests.simulator.worlds import TP, WAIT_S, cluster, kill, leads, state

TWO = {**SETTINGS, "min_isr": 2, "replica_lag_ms_max": 400}


def test_answer_before_the_isr_has_the_records_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(original: Any, core: Any, caller: Any, request: ProduceRequest) -> None:
        original(core, caller, replace(request, acks=1))

    world, oracles = watched()
    patch(monkeypatch, leader, "on_produce", at_once)
    post(world, "A", produce("m3.0"))
    found = oracles.violations[Rule.ACKNOWLEDGED, TP]
    assert (("A",), 3) == (found.nodes, found.offset)
    assert "records are at 3 and committed, while its high watermark is 3, and they end at 4" in found.sentence


def test_answer_by_an_isr_that_is_too_small_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_one(original: Any, core: Any, tp: Any) -> None:
        config, core.state.config = core.state.config, replace(core.state.config, min_isr=1)
        original(core, tp)
        core.state.config = config

    patch(monkeypatch, leader, "complete_produces", of_one)
    world, oracles = watched(settings=TWO)
    world.links.cut("B", "A", close=True)
    world.links.cut("C", "A", close=True)
    post(world, "A", produce("m3.0"))
    assert world.until(lambda: len(state(world).isr) == 1, WAIT_S)
    world.run(0.2)
    assert "while its ISR has 1 members; expected min_isr=2 at least" in sentence_of(oracles, Rule.ACKNOWLEDGED)


def test_error_that_says_that_the_isr_became_too_small_is_lawful() -> None:
    world, oracles = watched(settings=TWO)
    kill(world, "B")
    kill(world, "C")
    post(world, "A", produce("m3.0"))
    world.run(2.0)
    assert {} == oracles.violations


@pytest.mark.parametrize("acks", [1, -1])
def test_answer_with_another_offset_is_named(monkeypatch: pytest.MonkeyPatch, acks: int) -> None:
    def further(original: Any, *args: Any) -> tuple[int, int]:
        base, end = original(*args)
        return base + 1, end

    patch(monkeypatch, leader, "append_as_leader", further)
    world, oracles = watched_without_records()
    post(world, "A", produce("m3.0", acks=acks))
    assert world.until(lambda: (Rule.ACKNOWLEDGED, TP) in oracles.violations, WAIT_S)
    assert "records are at 1, where its log has others" in sentence_of(oracles, Rule.ACKNOWLEDGED)


def watched_without_records() -> tuple[Any, Oracles]:
    world = cluster("kip380", replicas=("A", "B", "C"))
    return world, Oracles(world, [TP])


def test_answer_for_records_that_were_not_appended_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    patch(monkeypatch, leader, "append_as_leader", lambda _original, _core, replica, _batches: (
        replica.log.end_offset, replica.log.end_offset
    ))  # fmt: skip
    world, oracles = watched_without_records()
    post(world, "A", produce("m3.0", acks=1))
    assert "where its log has others" in sentence_of(oracles, Rule.ACKNOWLEDGED)


def test_produce_to_two_partitions_may_lose_its_isr_in_one_while_it_waits_for_the_other() -> None:
    """The first partition was committed by two replicas; that one leaves its ISR later changes nothing."""
    world, further = cluster("kip380", replicas=("A", "B"), settings=TWO), TopicPartition("side", 0)
    SimClient(world).create_topic("side", [world.ids["A"], world.ids["C"]])
    assert world.until(lambda: leads(world, "A", further), WAIT_S)
    oracles = Oracles(world, [TP, further])
    world.links.hold("fetch", "C", "A", "request")
    parts = tuple(
        ProducePartition(tp=tp, batches=(make_batch([f"x-{tp}"], timestamp_ms=1),)) for tp in (TP, further)
    )
    post(world, "A", ProduceRequest(acks=-1, timeout_ms=30_000, partitions=parts))
    replicas = world.nodes["A"].process.broker.state.replicas  # type: ignore[union-attr]
    assert world.until(lambda: replicas[TP].high_watermark == 1, WAIT_S)
    replicas[TP].isr = (world.ids["A"],)
    world.links.release_all()
    assert world.until(lambda: replicas[further].high_watermark == 1, WAIT_S)
    assert not world.nodes["A"].process.broker.state.produces.of_connection(CONNECTION)  # type: ignore[union-attr]
    assert {} == oracles.violations
