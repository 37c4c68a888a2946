"""A client deletes records: in some worlds inside a batch, once an ISR has shrunk."""

from __future__ import annotations

from random import Random

from harness.workload.plan import Place
from targets.broker.core.zookeeper import broker_path
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.disturbances.deleter import AIMED_SHARE, SHARE, Deleter
from tests.simulator.broker.disturbances.test_administrator import LAST_LINE, step
from tests.simulator.worlds import TOPIC, TP, Ops, cluster

NODES = ("A", "B")
PLACES = [(Place(TOPIC, 0), NODES)]
# The first seeds whose only deletions are aimed ones.
SEEDS = [
    seed
    for seed in range(100)
    if Random(f"aimed deletions {seed}").random() < AIMED_SHARE and Random(f"deleter {seed}").random() >= SHARE
][:5]


def starts(seed: int, *, shrinks: bool, last: bool = False) -> int:
    """Return where the leader's log starts in the end, after three batches of four records each."""
    world = cluster("kip380", replicas=NODES)
    world.record_into(Ops())
    deleter = Deleter(world, seed, PLACES, LAST_LINE)
    for group in ("m1", "m2", "m3"):
        SimClient(world).produce(TOPIC, 0, group, [f"{group}.{number}" for number in range(4)], acks=-1)
    deleter.listen(step(0))
    if last:
        deleter.listen(step(LAST_LINE))
    if shrinks:
        world.nodes["B"].kill()
        world.zookeeper.expire(world.zookeeper.session_of(broker_path(world.ids["B"])))
    world.run(0.5)
    return world.nodes["A"].disk.logs[TP].start_offset


def test_log_starts_inside_a_batch_once_an_isr_has_shrunk() -> None:
    found = {starts(seed, shrinks=True) for seed in SEEDS}
    assert found - {0}, "some delete"
    assert all(start % 4 for start in found - {0})
    assert {0} == {starts(seed, shrinks=False) for seed in SEEDS}


def test_nothing_is_deleted_after_the_last_step() -> None:
    assert {0} == {starts(seed, shrinks=True, last=True) for seed in SEEDS}
