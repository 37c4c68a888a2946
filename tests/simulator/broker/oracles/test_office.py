"""Who is not in office commands nobody, decides nothing, and writes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from targets.broker.core import membership, office
from targets.broker.core.commands import send_state
from targets.broker.core.events import Send, ZkAnswered, ZkAsk, ZkSession
from targets.broker.core.messages import LeaderAndIsr, LeaderAndIsrRequest, StopReplica, StopReplicaRequest
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    PartitionState,
    ZkCheck,
    ZkError,
    ZkExists,
    ZkGet,
    ZkMulti,
    ZkNode,
    ZkResult,
    ZkSet,
    broker_path,
    encode_state,
    leader_and_isr_path,
)
from targets.simulator.broker.coordination import writes
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.oracles.office import Office
from targets.simulator.broker.world import World
from targets.simulator.zookeeper import ops
from tests.simulator.broker.oracles.planted import patch, sentence_of, watched
from tests.simulator.worlds import TP, WAIT_S, registered, state

PATH = leader_and_isr_path(TP)


def said(oracles: Oracles) -> str:
    return sentence_of(oracles, Rule.OFFICE)


def controller_of(world: World) -> int:
    return int(world.zookeeper.tree.nodes[CONTROLLER].data)


def expire(world: World, path: str) -> None:
    world.zookeeper.expire(world.zookeeper.session_of(path))


def depose(world: World) -> None:
    world.zookeeper.tree.write((ops.Delete(path=CONTROLLER),), 0)


def session_of(world: World, name: str) -> int:
    return world.zookeeper.session_of(broker_path(world.ids[name]))


def write(world: World, name: str, **changes: Any) -> None:
    """Write the partition's state with these changes, in a node's session."""
    now = state(world)
    fields: dict[str, Any] = {field: getattr(now, field) for field in PartitionState.__dataclass_fields__}
    data = encode_state(PartitionState(**{**fields, **changes}))
    world.zookeeper.tree.write((ops.Set(path=PATH, data=data, version=ops.ANY_VERSION),), session_of(world, name))


# --- what a node sends -----------------------------------------------------------------------------------------
def test_offices_change_hands_without_a_violation() -> None:
    world, oracles = watched()
    for _ in range(3):
        depose(world)
        assert world.until(lambda: CONTROLLER in world.zookeeper.tree.nodes, WAIT_S)
        expire(world, CONTROLLER)
        assert world.until(lambda: all(registered(world, name) for name in world.nodes), WAIT_S)
        world.run(1.0)
    assert {} == oracles.violations


def test_controller_whose_session_is_gone_and_that_goes_on_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its core is told that the session is gone, keeps its office, and commands as before."""

    def keeps(_original: Any, core: Core, session: int) -> None:
        core.state.session = session
        _send(core)

    world, oracles = watched()
    patch(monkeypatch, membership, "on_session", keeps)
    process = world.nodes["C"].process
    assert process is not None
    process.post(ZkSession(session=0))
    found = oracles.violations[Rule.OFFICE, TP]
    assert (("C",), -1) == (found.nodes, found.offset)
    assert "C sends LeaderAndIsr as controller of epoch 1, though its session is gone" in found.sentence


def _send(core: Core) -> None:
    replica = core.state.replicas[TP]
    command = LeaderAndIsr(
        tp=TP,
        leader=replica.leader,
        leader_epoch=replica.leader_epoch,
        isr=replica.isr,
        zk_version=replica.zk_version,
        replicas=replica.replicas,
    )
    send_state(core, command)


@pytest.mark.parametrize(("ended", "why"), [
    ("session", "another session won that epoch"),
    ("office", "it has read that the office is not its own"),
])  # fmt: skip
def test_controller_that_does_not_resign_is_named(monkeypatch: pytest.MonkeyPatch, ended: str, why: str) -> None:
    world, oracles = watched()
    assert world.ids["C"] == controller_of(world)
    patch(monkeypatch, office, "resign", lambda *_: None)
    if ended == "session":
        expire(world, CONTROLLER)
    else:  # another node wins while this one, whose session lives on, cannot see it
        cut = world.links.cut("C", "metadata", close=True)
        depose(world)
        assert world.until(lambda: CONTROLLER in world.zookeeper.tree.nodes, WAIT_S)
        world.links.heal(cut)
    assert world.until(lambda: CONTROLLER in world.zookeeper.tree.nodes, WAIT_S)
    for name in ("A", "B"):
        world.nodes[name].kill()
        expire(world, broker_path(world.ids[name]))
        world.nodes[name].boot()
        assert world.until(lambda name=name: registered(world, name), WAIT_S)  # type: ignore[misc]
        world.run(1.0)
    asks = "C asks ZooKeeper to write a leader and ISR as controller of epoch 1"
    assert f"{asks}, though {why}" in said(oracles)


# --- what is written -------------------------------------------------------------------------------------------
def test_leader_may_change_its_isr_and_a_controller_everything() -> None:
    world, oracles = watched()
    write(world, "A", isr=(world.ids["A"],))
    write(world, "C", leader=world.ids["B"], leader_epoch=5)
    assert "" == said(oracles)


@pytest.mark.parametrize(("name", "changes"), [
    ("B", {"isr": (1,)}),
    ("B", {"leader": 2}),
    ("B", {"leader": 2, "leader_epoch": 1}),
    ("A", {"leader_epoch": 1}),
    ("A", {"leader": -1}),
])  # fmt: skip
def test_write_by_who_is_neither_controller_nor_leader_of_that_epoch_is_named(
    name: str, changes: dict[str, Any]
) -> None:
    world, oracles = watched()
    write(world, name, **changes)
    assert f"{name} writes leader " in said(oracles)
    assert "though it neither won controller epoch 1, the newest, nor leads in that epoch" in said(oracles)


def test_write_of_a_deposed_controller_is_named_once_another_epoch_began() -> None:
    world, oracles = watched()
    first = world.name_of(controller_of(world))
    assert first == "C"
    depose(world)
    write(world, first, leader_epoch=1)
    assert "" == said(oracles), "nobody has won a newer epoch yet"
    world.links.cut(first, "metadata", close=True)
    assert world.until(lambda: CONTROLLER in world.zookeeper.tree.nodes, WAIT_S)
    write(world, first, leader_epoch=2)
    assert "C writes leader A and epoch 2" in said(oracles)


def test_refused_write_is_none() -> None:
    world, oracles = watched()
    data = encode_state(state(world))
    write_it = ZkMulti(ops=(ZkCheck(path=PATH, version=99), ZkSet(path=PATH, data=data, version=ops.ANY_VERSION)))
    world.zookeeper.tree.write(writes(write_it.ops), session_of(world, "B"))
    assert "" == said(oracles)


def test_operator_who_writes_a_state_is_named_without_a_node() -> None:
    world, oracles = watched()
    data = encode_state(state(world))
    world.zookeeper.tree.write((ops.Set(path=PATH, data=data, version=ops.ANY_VERSION),), 0)
    assert () == oracles.violations[Rule.OFFICE, TP].nodes
    assert "an operator writes leader A" in said(oracles)


@pytest.mark.parametrize(("epoch", "out"), [
    (ZkNode(data=b"2", version=2, owner=0, czxid=1, mzxid=2), True),
    (ZkError.LOST, False),
])  # fmt: skip
def test_controller_is_not_told_by_an_answer_of_which_a_part_was_lost(epoch: ZkResult, *, out: bool) -> None:
    """A broker takes such an answer as lost, and asks again."""
    world, _ = watched()
    found = Office(world, {})
    command = StopReplicaRequest(
        controller_id=world.ids["C"], controller_epoch=1, ack_timeout_ms=1, partitions=(StopReplica(tp=TP),)
    )
    found.on_send("C", Send(to=1, tag=6, channel="controller", request=command))
    found.on_ask("C", ZkAsk(tag=7, ops=(ZkExists(path=CONTROLLER, watch=True), ZkGet(path=CONTROLLER_EPOCH))))
    answer = ZkAnswered(tag=7, session=session_of(world, "C"), results=(ZkError.NO_NODE, epoch))
    found.on_event("C", answer)
    assert out is bool(found._is_out("C", 1))


@pytest.mark.parametrize(("epoch", "writer", "says"), [
    (-1, 1, ""),
    (0, 1, "C tells of epoch 0 of log-0; newest is 1"),
    (0, 2, ""),
    (1, 1, ""),
])  # fmt: skip
def test_state_that_is_told_though_there_is_a_newer_one_is_named(epoch: int, writer: int, says: str) -> None:
    """Unless a later controller wrote that, and whoever tells the older one has not heard that it is deposed."""
    world, oracles = watched()
    world.nodes["B"].kill()
    expire(world, broker_path(world.ids["B"]))
    assert world.until(lambda: state(world).leader_epoch == 1, WAIT_S)
    world.run(0.5)
    now = state(world)
    broker = world.nodes["C"].broker
    assert broker is not None and broker.state.controller.states[TP].controller_epoch == 1
    broker.state.controller.states[TP] = replace(now, controller_epoch=writer)
    command = LeaderAndIsr(
        tp=TP,
        leader=now.leader,
        leader_epoch=epoch,
        isr=now.isr,
        zk_version=now.zk_version,
        replicas=(1, 2, 3),
        topic_id=now.topic_id,
    )
    request = LeaderAndIsrRequest(
        controller_id=world.ids["C"], controller_epoch=1, ack_timeout_ms=1, is_init=False, partitions=(command,)
    )
    oracles._office.on_send("C", Send(to=1, tag=6, channel="controller", request=request))
    assert says in said(oracles) and bool(says) is bool(said(oracles))
