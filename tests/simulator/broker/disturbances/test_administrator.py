"""An administrator asks for what no step of a schedule asks for, and stops when the schedule ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial

import pytest

from harness.events import Step
from harness.model import Op, OpType
from harness.workload.plan import Place
from targets.broker.core.events import Received
from targets.broker.core.messages import CreateTopicsRequest, DeleteTopicsRequest
from targets.broker.core.zookeeper import (
    CONFIG_TOPICS,
    CONTROLLER,
    ELECTIONS,
    broker_path,
    config_path,
    topic_path,
)
from targets.simulator.broker.disturbances.administrator import TOPICS, Administrator
from targets.simulator.broker.disturbances.by_hand import DEPOSE
from targets.simulator.broker.oracles import Oracles
from targets.simulator.broker.world import World
from targets.simulator.zookeeper import ops
from tests.kept import exhaustive, keep
from tests.simulator.worlds import TOPIC, TP, WAIT_S, Ops, Steps, cluster, leads, registered, settled

SEEDS = range(60)
LAST_LINE = 9
NODES = ("A", "B", "C")


def step(line: int) -> Op:
    """Return the op with which a step ends."""
    about = Step(line=line, text="pass 1ms", narrative="")
    return Op.of(about, index=0, time_ns=0, process="runner", type=OpType.OK)


class Stage:
    """A world with an administrator; `writes` are those of no session."""

    def __init__(self, seed: int, taken: Collection[str] = ()) -> None:
        self.ops = Ops()
        self.world: World = cluster("kip380", replicas=NODES)
        self.world.record_into(self.ops)
        self.writes: list[str] = []
        self.steps = {name: Steps(self.world, name) for name in NODES}
        places = [(Place(TOPIC, 0), NODES)]
        self.administrator = Administrator(self.world, seed, places, LAST_LINE, taken=taken)
        self.world.zookeeper.tree.wrote.append(self._wrote)

    def _wrote(self, parts: Sequence[ops.Write], session: int) -> None:
        self.writes += [part.path for part in parts if session == 0]

    def asked(self, kind: type[CreateTopicsRequest | DeleteTopicsRequest]) -> list[str]:
        """Return the nodes that received such a request."""
        return [
            name
            for name, steps in self.steps.items()
            for event in steps.of(Received)
            if isinstance(event.request, kind)
        ]


def test_administrator_elects_creates_deposes_validates_and_deletes() -> None:
    found: Counter[str] = Counter()
    both = 0
    for seed in SEEDS:
        stage = Stage(seed)
        stage.administrator.listen(step(0))
        stage.world.run(1.0)
        found.update({*stage.writes})
        deleted = stage.asked(DeleteTopicsRequest)
        found.update({"delete"} if deleted else {}, validate=bool(stage.asked(CreateTopicsRequest)))
        both += len({*deleted}) > 1
    expected = {ELECTIONS, CONTROLLER, CONFIG_TOPICS, "delete", "validate"}
    expected |= {*map(topic_path, TOPICS), *map(config_path, TOPICS)}
    assert expected == {name for name, count in found.items() if 0 < count < len(SEEDS)}
    assert both  # now and then two brokers are asked to delete the same topics


@exhaustive
def test_deposal_is_in_the_history_and_the_topics_are_not() -> None:
    stages = [Stage(seed) for seed in SEEDS]
    for stage in stages:
        stage.administrator.listen(step(0))
        stage.world.run(1.0)
    deposed = [stage for stage in stages if CONTROLLER in stage.writes]
    assert deposed
    for stage in deposed:
        assert stage.ops.of(DEPOSE)
    topics = {value.get("topic") for stage in stages for *_, value in stage.ops.found}
    assert not topics & {*TOPICS}


def test_administrator_leaves_the_topics_of_a_runs_clients_alone() -> None:
    written: set[str] = set()
    for seed in SEEDS[:20]:
        stage = Stage(seed, taken={"spare", "spare-too"})
        stage.administrator.listen(step(0))
        stage.world.run(1.0)
        written.update(stage.writes)
        assert stage.world.aside == {"spare-too-too", "other"}
    assert {topic_path("spare-too-too"), config_path("spare-too-too")} <= written
    assert written.isdisjoint(map(topic_path, ("spare", "spare-too")))
    assert written.isdisjoint(map(config_path, ("spare", "spare-too")))


@exhaustive
def test_administrator_does_nothing_before_the_first_step_nor_after_the_last() -> None:
    for seed in SEEDS:
        stage = Stage(seed)
        stage.world.run(1.0)
        stage.administrator.listen(step(0))
        stage.administrator.listen(step(LAST_LINE))
        stage.world.run(1.0)
        assert [] == stage.writes + stage.asked(DeleteTopicsRequest) + stage.asked(CreateTopicsRequest)


@pytest.mark.parametrize("seeds", keep([SEEDS[:20], SEEDS[20:]], SEEDS[:20]))
def test_sound_brokers_do_all_that_they_are_asked_for(seeds: range) -> None:
    for seed in seeds:
        stage = Stage(seed)
        oracles = Oracles(stage.world, [TP])
        stage.administrator.listen(step(0))
        stage.world.run(2.0)
        assert {} == oracles.violations, f"seed {seed}"
        assert ELECTIONS not in stage.world.zookeeper.tree.nodes
        assert any(leads(stage.world, name) for name in NODES)
        assert stage.world.until(partial(settled, stage.world), WAIT_S)


def test_registration_of_a_broker_that_starts_is_rewritten_now_and_then_and_it_registers_all_the_same() -> None:
    rewritten = 0
    for seed in SEEDS[:25]:
        stage = Stage(seed)
        oracles = Oracles(stage.world, [TP])
        stage.administrator.listen(step(0))
        stage.world.run(1.0)
        before, path = len(stage.writes), broker_path(stage.world.ids["B"])
        node = stage.world.nodes["B"]
        node.kill()
        node.boot()
        assert stage.world.until(partial(registered, stage.world, "B"), WAIT_S), f"seed {seed}"
        rewritten += path in stage.writes[before:]
        assert {} == oracles.violations, f"seed {seed}"
    assert 0 < rewritten < 25
