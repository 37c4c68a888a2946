"""A broker obeys a command that is in force, and no other command changes anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from targets.broker.core import replicas
from targets.broker.core.messages import (
    ErrorCode,
    LeaderAndIsr,
    LeaderAndIsrRequest,
    StopReplica,
    StopReplicaRequest,
)
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.world import World
from tests.simulator.broker.oracles.planted import patch, post, replica_of, sentence_of, watched
from tests.simulator.worlds import TP, state


def lead(world: World, leader: str, epoch: int, **fields: Any) -> LeaderAndIsrRequest:
    """Return the controller's command that this node leads; fields change the request."""
    ids = tuple(world.ids[name] for name in ("A", "B", "C"))
    part = LeaderAndIsr(
        tp=TP,
        leader=world.ids[leader],
        leader_epoch=epoch,
        isr=ids,
        zk_version=1,
        replicas=ids,
        topic_id=state(world).topic_id,
    )
    request = LeaderAndIsrRequest(
        controller_id=world.ids["C"], controller_epoch=1, ack_timeout_ms=1, is_init=False, partitions=(part,)
    )
    return replace(request, **fields)


def stop(**fields: Any) -> StopReplicaRequest:
    request = StopReplicaRequest(
        controller_id=3, controller_epoch=1, ack_timeout_ms=1, partitions=(StopReplica(tp=TP),)
    )
    return replace(request, **fields)


def said(oracles: Oracles) -> str:
    return sentence_of(oracles, Rule.OFFICE)


def test_commands_in_force_are_obeyed_and_others_refused() -> None:
    world, oracles = watched()
    post(world, "B", lead(world, "B", 1))
    post(world, "B", lead(world, "B", 1))
    post(world, "B", lead(world, "C", 0))
    post(world, "B", lead(world, "C", 2, controller_epoch=0))
    post(world, "B", lead(world, "C", 2, broker_epoch=0))
    post(world, "B", stop(controller_epoch=0))
    post(world, "B", stop(broker_epoch=0))
    assert 1 == replica_of(world, "B").leader_epoch
    post(world, "B", stop())
    post(world, "A", lead(world, "A", 1, is_init=True, partitions=()))
    assert "" == said(oracles)


@pytest.mark.parametrize(("fields", "why"), [
    ({"controller_epoch": 0}, "though it has obeyed controller epoch 1"),
    ({"broker_epoch": 1}, "though it is for registration 1, and its own is"),
])  # fmt: skip
def test_command_that_is_not_in_force_and_obeyed_is_named(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, int], why: str
) -> None:
    for request in ("lead", "stop"):
        world, oracles = watched()
        with monkeypatch.context() as planted:
            patch(planted, replicas, "_refusal", lambda *_: ErrorCode.NONE)
            post(world, "B", lead(world, "B", 1, **fields) if request == "lead" else stop(**fields))
        what = "becomes leader of log-0 in epoch 1" if request == "lead" else "deletes its replica of log-0"
        assert what in said(oracles)
        assert why in said(oracles)
        assert ("B",) == oracles.violations[Rule.OFFICE, TP].nodes


def test_stale_command_that_is_accepted_is_named_though_it_changed_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, oracles = watched()
    patch(monkeypatch, replicas, "_refusal", lambda *_: ErrorCode.NONE)
    post(world, "B", lead(world, "A", 0, controller_epoch=0))
    assert "of controller epoch 0, accepts it, though it has obeyed controller epoch 1" in said(oracles)


def test_registration_counts_only_where_the_rules_tell_registrations_apart() -> None:
    world, oracles = watched("kip320")
    post(world, "B", lead(world, "B", 1, broker_epoch=1))
    assert 1 == replica_of(world, "B").leader_epoch
    assert "" == said(oracles)


@pytest.mark.parametrize("epoch", [0, -1])
def test_command_of_no_newer_leader_epoch_that_is_obeyed_is_named(
    monkeypatch: pytest.MonkeyPatch, epoch: int
) -> None:
    def always(_original: Any, core: Any, command: LeaderAndIsr) -> ErrorCode:
        replicas._apply(core, core.state.replicas[command.tp], command)
        return ErrorCode.NONE

    world, oracles = watched()
    patch(monkeypatch, replicas, "_on_command", always)
    post(world, "B", lead(world, "C", epoch))
    assert f"becomes follower of log-0 in epoch {epoch}, though it was in epoch 0 already" in said(oracles)


@pytest.mark.parametrize(("late", "why"), [
    (StopReplica(tp=TP, leader_epoch=0), "it was in epoch 4 already"),
    (StopReplica(tp=TP, topic_id=1), "it is of a newer topic"),
])  # fmt: skip
def test_replica_that_a_late_command_deletes_is_named(
    monkeypatch: pytest.MonkeyPatch, late: StopReplica, why: str
) -> None:
    """Source: KIP-516, KIP-570."""

    def deletes(_original: Any, core: Any, asked: StopReplica) -> ErrorCode:
        replicas.stop_replica(core, asked.tp)
        return ErrorCode.NONE

    for broken in (False, True):
        world, oracles = watched()
        post(world, "B", lead(world, "C", 4))
        assert 1 < replica_of(world, "B").topic_id
        if broken:
            patch(monkeypatch, replicas, "_stop", deletes)
        post(world, "B", stop(partitions=(late,)))
        assert (f"deletes its replica of log-0, though {why}" in said(oracles)) is broken


def test_replica_that_is_kept_against_a_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for request, what in (
        (stop(), "StopReplica of controller epoch 1, keeps its replica of log-0"),
        (lead(watched()[0], "A", 1, is_init=True, partitions=()), "keeps its replica of log-0, which the command"),
    ):
        world, oracles = watched()
        with monkeypatch.context() as planted:
            patch(planted, replicas, "stop_replica", lambda *_: None)
            post(world, "B", request)
        assert what in said(oracles)


def test_replica_that_is_deleted_or_led_without_being_named_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for request in (stop(partitions=()), lead(watched()[0], "A", 1, partitions=())):

        def deletes(original: Any, core: Any, *args: Any) -> Any:
            replicas.stop_replica(core, TP)
            return original(core, *args)

        world, oracles = watched()
        with monkeypatch.context() as planted:
            patch(planted, replicas, "_refusal", deletes)
            post(world, "B", request)
        assert "deletes its replica of log-0" in said(oracles)


def test_new_process_has_seen_no_controller_epoch() -> None:
    world, oracles = watched()
    world.nodes["B"].kill()
    world.nodes["B"].boot()
    world.run(0.5)
    post(world, "B", lead(world, "A", 9, controller_epoch=1))
    assert "" == said(oracles)
