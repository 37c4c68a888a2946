"""An operator moves partitions while a schedule is played, and back before the cluster must be whole."""

from __future__ import annotations

from harness.events import Step
from harness.model import Op, OpType
from harness.workload.plan import Place
from targets.broker.core.assignments import Assignment, decode_topic
from targets.broker.core.zookeeper import topic_path
from targets.simulator.broker.disturbances.mover import SETTLE, Mover
from targets.simulator.broker.world import World
from tests.simulator.broker.disturbances.test_administrator import LAST_LINE, step
from tests.simulator.worlds import IDS, TOPIC, TP, WAIT_S, Ops, cluster, state

SEEDS = range(30)
# C has no replica at first.
NODES = ("A", "B")


class Stage:
    """A world with a mover, and the assignments that ZooKeeper has had."""

    def __init__(self, seed: int) -> None:
        self.world: World = cluster("kip380", replicas=NODES)
        self.world.record_into(Ops())
        self.home = self.now
        self.seen = [self.home]
        self.mover = Mover(self.world, seed, [(Place(TOPIC, 0), NODES)], LAST_LINE)
        self.world.zookeeper.tree.changed.append(self._note)

    @property
    def now(self) -> Assignment:
        """Return what the topic's node holds."""
        return decode_topic(self.world.zookeeper.tree.nodes[topic_path(TOPIC)].data)

    def _note(self, path: str) -> None:
        if path == topic_path(TOPIC) and self.now != self.seen[-1]:
            self.seen.append(self.now)

    def is_home(self) -> bool:
        """Return True if the partition has its first replicas, in their order, all in sync, and no other."""
        logs = {IDS[name]: node.disk.logs.get(TP) for name, node in self.world.nodes.items()}
        holders = {broker for broker, log in logs.items() if log is not None and not log.deleted}
        return self.now == self.home and {*state(self.world).isr} == holders == {1, 2}

    @property
    def replicas(self) -> set[tuple[int, ...]]:
        """Return every set of replicas that it has had."""
        return {each.replicas[TP.partition] for each in self.seen}


def settle(type_: OpType) -> Op:
    """Return an op of the step at which a schedule waits until the cluster is whole."""
    return Op.of(Step(line=3, text=SETTLE, narrative=""), index=0, time_ns=0, process="runner", type=type_)


def test_partitions_move_in_some_worlds_and_are_back_after_the_last_step() -> None:
    moved = set()
    for seed in SEEDS:
        stage = Stage(seed)
        stage.mover.listen(step(0))
        stage.world.run(2.0)
        stage.mover.listen(step(LAST_LINE))
        assert stage.world.until(stage.is_home, WAIT_S), f"seed {seed}: {stage.now}"
        moved |= stage.replicas
    assert {1, 2, 3} == {len(replicas) for replicas in moved}, "to fewer and to more"
    assert any({*replicas} == {2, 3} for replicas in moved), "and to others"


def test_partition_is_back_when_a_schedule_waits_until_all_is_whole_and_stays_until_then() -> None:
    seed = next(seed for seed in SEEDS if _moves(seed))
    stage = Stage(seed)
    stage.mover.listen(step(0))
    stage.world.run(0.8)
    stage.mover.listen(settle(OpType.INVOKE))
    assert stage.world.until(stage.is_home, WAIT_S)
    count = len(stage.seen)
    stage.world.run(2.0)
    assert stage.is_home() and count == len(stage.seen)


def _moves(seed: int) -> bool:
    stage = Stage(seed)
    stage.mover.listen(step(0))
    stage.world.run(0.8)
    return not stage.is_home()
