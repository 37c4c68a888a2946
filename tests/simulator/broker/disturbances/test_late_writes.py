"""A leader's write of its ISR reaches ZooKeeper when the next topic of its name has begun, and changes nothing."""

from __future__ import annotations

from targets.broker.core.messages import DeleteTopicsRequest, TopicPartition
from targets.broker.core.zookeeper import leader_and_isr_path
from targets.simulator.broker.clients.caller import Caller
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.disturbances.late_writes import LateWrites
from targets.simulator.broker.oracles import Oracles
from targets.simulator.engine.clock import NS_PER_S
from tests.simulator.broker.disturbances.test_administrator import LAST_LINE, step
from tests.simulator.worlds import IDS, TP, WAIT_S, Ops, cluster, state

TEMP = TopicPartition("temp", 0)
PATH = leader_and_isr_path(TEMP)
SEEDS = range(5)
GENERATIONS = 3


class Stage:
    """A cluster in which a topic of A and B begins and goes, over and over; C is the controller."""

    def __init__(self, seed: int, tps: tuple[TopicPartition, ...] = (TEMP,)) -> None:
        self.world = cluster("kip380", replicas=("A", "B"), session_timeout_ms=1_500)
        self.world.record_into(Ops())
        self.oracles = Oracles(self.world, [TP])
        self.late = LateWrites(self.world, seed, tps, LAST_LINE)
        self.caller = Caller(self.world, "client")

    def churn(self) -> None:
        """Create the topic and delete it some times; in the end it is there."""
        for _ in range(GENERATIONS):
            self.create()
            self.world.run(0.15)
            self.delete()
        self.create()

    def create(self) -> None:
        SimClient(self.world).create_topic(TEMP.topic, [IDS["A"], IDS["B"]])
        assert self.world.until(lambda: PATH in self.world.zookeeper.tree.nodes, WAIT_S)

    def delete(self) -> None:
        request = DeleteTopicsRequest(topics=(TEMP.topic,), timeout_ms=100)
        self.caller.ask("C", request, NS_PER_S, lambda _outcome: None)
        assert self.world.until(lambda: PATH not in self.world.zookeeper.tree.nodes, WAIT_S)


def test_late_write_meets_the_next_topic_in_some_worlds_and_never_reaches_it() -> None:
    """KIP-516, Motivation."""
    met = 0
    for seed in SEEDS:
        stage = Stage(seed)
        stage.late.listen(step(0))
        stage.churn()
        stage.late.listen(step(LAST_LINE))
        world, met = stage.world, met + stage.late.met
        world.run(0.05)
        assert world.until(lambda world=world: state(world, TEMP).isr == (IDS["A"], IDS["B"]), WAIT_S), seed
        assert ({}, {}) == (world.zookeeper.held, stage.oracles.violations), seed
    assert met


def test_no_write_waits_in_other_worlds_nor_where_no_topic_comes_and_goes() -> None:
    held = {}
    for seed in SEEDS:
        for tps in ((TEMP,), ()):
            stage = Stage(seed, tps)
            stage.late.listen(step(0))
            stage.churn()
            held[seed, len(tps)] = stage.late.held
    assert {0} == {held[seed, 0] for seed in SEEDS}
    assert 0 in {held[seed, 1] for seed in SEEDS} != {0}


def test_nothing_happens_before_the_first_step_nor_after_the_last() -> None:
    for seed in SEEDS:
        stage = Stage(seed)
        before = stage.world.zookeeper.ended
        stage.create()
        stage.late.listen(step(LAST_LINE))
        stage.late.listen(step(0))
        stage.delete()
        stage.create()
        assert (0, before) == (stage.late.held, stage.world.zookeeper.ended)
