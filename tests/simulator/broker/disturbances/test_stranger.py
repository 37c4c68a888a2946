"""Another machine with a broker's id: the broker that finds it ends, and comes back when that machine is gone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from harness.model import OpType
from targets.broker.core import readable
from targets.broker.core.zookeeper import broker_path, decode_registration
from targets.simulator.broker.disturbances import stranger
from targets.simulator.broker.disturbances.stranger import NODE, Stranger
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.world import World
from tests.simulator.broker.disturbances.test_administrator import LAST_LINE, step
from tests.simulator.broker.oracles.planted import sentence_of
from tests.simulator.worlds import TP, WAIT_S, Ops, cluster, registered

NODES = ("A", "B", "C")


class Stage:
    """A watched cluster whose B is started again, always with a stranger."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stranger, "SHARE", 1.0)
        self.ops = Ops()
        self.world: World = cluster("kip380", replicas=NODES)
        self.world.record_into(self.ops)
        self.oracles = Oracles(self.world, [TP])
        self.stranger = Stranger(self.world, 1, LAST_LINE)

    def restart(self) -> None:
        node = self.world.nodes["B"]
        node.kill()
        node.boot()

    def machine(self) -> str:
        """Return which machine is registered under B's id, "" for none."""
        node = self.world.zookeeper.tree.nodes.get(broker_path(self.world.ids["B"]))
        return "" if node is None else decode_registration(node.data).node


def test_broker_ends_and_is_started_again_when_the_other_machine_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)
    stage.stranger.listen(step(0))
    stage.restart()
    assert NODE == stage.machine()
    monkeypatch.setattr(stranger, "SHARE", 0.0)
    assert stage.world.until(partial(registered, stage.world, "B"), WAIT_S)
    assert "B" == stage.machine()
    assert any("registered by node 'stranger'" in line for line in stage.world.nodes["B"].printed)
    assert {} == stage.oracles.violations
    told = [type_ for _, _, type_, f, _ in stage.ops.found if f == "kill"]
    assert [OpType.INVOKE, OpType.OK] == told


def test_other_machine_that_is_not_found_leaves_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)
    stage.stranger.listen(step(0))
    stage.restart()
    stage.world.nodes["B"].kill()
    stage.world.run(0.2)
    assert "" == stage.machine()


def test_other_machine_is_gone_with_the_last_step_and_does_not_come_before_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)
    stage.restart()
    assert NODE != stage.machine()
    stage.world.run(1.0)
    stage.stranger.listen(step(0))
    stage.restart()
    assert NODE == stage.machine()
    stage.stranger.listen(step(LAST_LINE))
    assert "" == stage.machine()


def test_broker_that_takes_over_another_machines_id_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = readable.decode_registration
    monkeypatch.setattr(readable, "decode_registration", lambda data: replace(real(data), node="B"))
    stage = Stage(monkeypatch)
    stage.stranger.listen(step(0))
    stage.restart()
    stage.world.run(0.5)
    assert "has read the machine stranger to be registered" in sentence_of(stage.oracles, Rule.OFFICE)
