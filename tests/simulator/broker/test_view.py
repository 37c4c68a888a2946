"""The simulated ZooKeeper view records every change, and offers an operator's actions."""

from __future__ import annotations

import pytest

from harness.model import OpType, PreconditionError, Source
from harness.target.metadata import Metadata, Office, PartitionTruth
from targets.broker.core.zookeeper import CONTROLLER, broker_path
from targets.broker_target import layout
from targets.simulator.broker.view import SimZooKeeperView
from targets.simulator.broker.world import World
from tests.simulator.worlds import TOPIC, WAIT_S, Ops, boot, cluster, registered, state


@pytest.fixture
def ops() -> Ops:
    return Ops()


@pytest.fixture
def world(ops: Ops) -> World:
    return cluster("kip380", sink=ops)


@pytest.fixture
def view(world: World) -> SimZooKeeperView:
    return SimZooKeeperView(world, layout)


def test_view_is_the_metadata_and_reads_what_zookeeper_holds(world: World, view: SimZooKeeperView) -> None:
    general: Metadata = view
    assert PartitionTruth(leader="A", epoch=0, in_sync=("A", "B"), version=0) == general.truth(TOPIC, 0)
    session = world.zookeeper.session_of(broker_path(3))
    made = world.zookeeper.tree.nodes[CONTROLLER].czxid
    assert ("C", Office(node="C", member=session, incarnation=made)) == (general.controller(), general.office())
    assert world.zookeeper.session_of(broker_path(1)) == general.incarnation("A") != 0
    assert None is general.truth("none", 0)
    general.close()


def test_changes_are_recorded_from_the_watch_on_beginning_with_what_is_there(
    world: World, view: SimZooKeeperView, ops: Ops
) -> None:
    view.watch([(TOPIC, 0)])
    world.nodes["A"].kill()
    view.expire("A")
    assert world.until(lambda: 2 == state(world).leader, WAIT_S)
    place = {"topic": TOPIC, "partition": 0}
    assert [
        {**place, "leader": "A", "epoch": 0, "isr": ["A", "B"], "version": 0},
        {**place, "leader": "B", "epoch": 1, "isr": ["B"], "version": 1},
    ] == ops.of("state")
    assert [["A", "B", "C"], ["B", "C"]] == [value["nodes"] for value in ops.of("members", "metadata")]
    assert [{"node": "C"}] == ops.of("controller", "metadata")
    assert {(Source.METADATA, OpType.INFO)} == {(op[0], op[2]) for op in ops.found if op[1] == "metadata"}


def test_expired_registration_is_gone_at_once_and_there_must_be_one(world: World, view: SimZooKeeperView) -> None:
    session = view.incarnation("A")
    assert f"session 0x{session:x} closed, /brokers/ids/1 gone" == view.expire("A")
    assert 0 == view.incarnation("A")
    with pytest.raises(PreconditionError, match="expire A: it is not registered"):
        view.expire("A")
    assert world.until(lambda: registered(world, "A"), WAIT_S)


def test_deposed_controller_leaves_office_without_failing(world: World, view: SimZooKeeperView, ops: Ops) -> None:
    view.watch([(TOPIC, 0)])
    assert f"/controller of C deleted, which session 0x{view.incarnation('C'):x} had made" == view.depose()
    assert None is view.controller()
    assert world.until(lambda: view.controller() is not None, WAIT_S)
    assert {"epoch": 1, "active": False} in ops.of("controller", "C")
    assert [{"node": "C"}, {"node": None}] == ops.of("controller", "metadata")[:2]


def test_without_a_controller_there_is_nobody_to_depose() -> None:
    world = World(protocol="hw", ids={"A": 1})
    with pytest.raises(PreconditionError, match="depose: there is no /controller"):
        SimZooKeeperView(world, layout).depose()
    boot(world)
    assert CONTROLLER in world.zookeeper.tree.nodes


def test_member_of_the_isr_is_elected_though_nobody_failed(world: World, view: SimZooKeeperView) -> None:
    assert "broker 2 asked for at /admin/elections" == view.elect(TOPIC, 0, "B")
    assert world.until(lambda: 2 == state(world).leader, WAIT_S)
    assert (1, 2) == tuple(sorted(state(world).isr))


def test_operator_reads_nodes_and_changes_what_is_there(view: SimZooKeeperView) -> None:
    for _ in range(2):
        view.update("/x/y", lambda there: (there or b"") + b"1")
    assert (b"11", b"", None) == (view.read("/x/y"), view.read("/x"), view.read("/x/z"))
