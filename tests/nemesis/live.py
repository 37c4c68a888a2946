"""Shows a fault of the table on a live cluster: pretended in vain, seen, undone in vain, undone, whole again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import count, islice

import pytest

from harness.cluster import fault as faults
from harness.cluster.cluster import Cluster
from harness.docs.evidence import Cell
from harness.environment.machines import RealMachines
from harness.model import OpType, PreconditionError
from harness.scenario.fault_steps import FaultSteps
from harness.scenario.file import PARTITION, TOPIC
from harness.workload.plan import Clients, Place, ProducerPlan
from targets.kafka_family.clients.raw import RawClient
from tests.faults import NEMESES
from tests.nemesis.conftest import REPLICAS, await_whole, client_of, make_whole, produce
from tests.nemesis.every_fault import SHOWN, Shown, pretending

# Each most of a page, in a write of its own: the kernel writes back what one write made at once.
LARGE = (f"{number}-{'x' * 3_000}" for number in count())
PRODUCER = ProducerPlan(name="p1", places=(Place("log", 0),), acks=(1,))


def show(cluster: Cluster, fault: str) -> Cell:
    """Return what a fault said on this cluster, and what its heal did, after both were pretended in vain."""
    prepare(cluster)
    shown = SHOWN[fault]
    for step in shown.before:
        act(cluster, step)
    node = str(cluster.metadata.controller()) if shown.node == "controller" else shown.node
    with busy(cluster) if shown.busy else nullcontext():
        if not shown.untold():
            refuse(cluster, fault, node, said(shown.pretended, fault, node))
        injected = inject(cluster, fault, node)
        assert re.search(shown.seen, injected), injected
        for step in shown.meanwhile:
            act(cluster, step)
        healed = undo(cluster, fault, shown, node) if shown.undo else ""
    for step in shown.after:
        act(cluster, step)
    assert [] == [*cluster.in_force]
    make_whole(cluster)
    produce(cluster, 1)
    return Cell(injected=injected, healed=healed)


def undo(cluster: Cluster, fault: str, shown: Shown, node: str) -> str:
    """Undo the fault, after a pretended heal was refused; return what the heal said."""
    refuse(cluster, shown.undo, node, said(shown.still, fault, node))
    healed = inject(cluster, shown.undo, node)
    assert re.search(said(shown.undone, fault, node), healed), healed
    return healed


def said(pattern: str, fault: str, node: str) -> str:
    """Return a pattern of the table for a fault on a node."""
    return pattern.format(fault=fault, node=node)


def refuse(cluster: Cluster, fault: str, node: str, pattern: str) -> None:
    """Pretend to inject a fault, and see it refused."""
    with pretending(fault), pytest.raises(PreconditionError, match=pattern):
        inject(cluster, fault, node)


def inject(cluster: Cluster, fault: str, node: str) -> str:
    """Inject a fault of the table, and return what was seen of it."""
    return faults.inject(cluster, NEMESES, NEMESES[fault], node)


def prepare(cluster: Cluster) -> None:
    """Heal whatever a test has left, let A lead and B follow, and write something that both have."""
    steps = FaultSteps(cluster=cluster, faults=NEMESES, seed=0, missed=OpType.FAIL, note_exit=lambda name: None)
    steps.heal_all()
    make_whole(cluster)
    if cluster.leader() != REPLICAS[0]:
        inject(cluster, "elect", REPLICAS[0])
        act(cluster, f"await leader = {REPLICAS[0]}")
        # ZooKeeper names a leader before it knows: it would refuse what is written to it.
        await_whole(cluster)
    produce(cluster, 4)
    await_whole(cluster)


def act(cluster: Cluster, step: str) -> None:
    """Do what a step of the table says."""
    match step.split():
        case ["await", "isr", "=", *nodes]:
            cluster.await_(lambda: cluster.isr() == frozenset(nodes), lambda: f"ISR {nodes}, not {cluster.isr()}")
        case ["await", "leader", "=", node]:
            cluster.await_(lambda: cluster.leader() == node, lambda: f"leader {node}, not {cluster.leader()}")
        case ["produce", *_, "singly"]:
            client_of(cluster).produce(TOPIC, PARTITION, "m", list(islice(LARGE, 20)), acks=-1, singly=True)
        case ["produce", *_]:
            produce(cluster, 1)
        case ["await", "registered", node]:
            cluster.await_(lambda: cluster.metadata.incarnation(node) != 0, lambda: f"{node} registered")
        case [fault, node] if fault in NEMESES:
            inject(cluster, fault, node)
        case _:
            raise AssertionError(f"step {step!r}: expected a fault and its node, or an await that is known here")


@contextmanager
def busy(cluster: Cluster) -> Iterator[None]:
    """Have a producer at work, a process that can be killed, until the end of the block."""
    assert isinstance(cluster.host, RealMachines)
    client = RawClient(history=cluster.history, bootstrap=cluster.clients_addresses, ledger=cluster.host.ledger)
    nodes = {name: cluster.address_of(name) for name in cluster.ids}
    workload = client.begin_workload(Clients(producers=(PRODUCER,)).killable(), 1, nodes=nodes)
    cluster.workload = workload
    try:
        yield
    finally:
        workload.stop()
        cluster.await_(lambda: workload.done, lambda: "the end of the producer")
        cluster.workload = None
