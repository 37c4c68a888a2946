"""Workloads on real processes: a leader dies and comes back, its clients go on, and the checkers find nothing."""

from __future__ import annotations

import gc
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from checkers.judge import judge
from harness import limits
from harness.cleanup.process import until
from harness.cluster.cluster import Cluster
from harness.environment.real import RealEnvironment
from harness.events import Poll, Produce, Read, Setup
from harness.history.file import History, read_history
from harness.hosts import HOSTS
from harness.launch import Address
from harness.model import Op, OpType, events_of
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import create_suite
from harness.scenario.file import draw, parse
from harness.scenario.variant import Variant
from harness.target.clients import Client
from harness.target.found import target as target_of
from harness.target.target import Target
from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan, Via
from harness.workload.text import line_of
from targets.kafka_family.clients.libraries import lacking
from targets.kafka_family.clients.raw import RawClient
from tests.clusters import running
from tests.faults import NEMESES
from tests.kept import exhaustive
from tests.services import shared
from workloads import WORKLOADS

pytestmark = pytest.mark.slow

TARGET: Target = target_of("broker")
LOG = Place("log", 0)
ORDERS = Place("orders", 0)
SCHEDULE = """
title    A leader dies under a workload and comes back
source   this test
nodes    B A replicas, C controller
partition orders-0 A C
records  m1 1, m2 1
{clients}
produce m1 acks=all
kill B
expire B
await leader = A
restart B
await isr = A B
produce m2 acks=all

expect kip380: none
"""
SEED = 7
# So many acknowledged records of each producer before the leader dies, and again after it is back.
ACKNOWLEDGED_MIN = 40


class Seen:
    """What the history has of the clients so far."""

    def __init__(self, history: History) -> None:
        self.acknowledged: Counter[str] = Counter()
        self.ends: Counter[Place] = Counter()
        self.positions: Counter[tuple[str, Place]] = Counter()
        history.listeners.append(self._listen)

    def _listen(self, op: Op) -> None:
        if op.type is not OpType.OK:
            return
        match op.event:
            case Produce(offset=int(offset), name=name) as sent:
                place = Place(sent.topic, sent.partition)
                self.acknowledged[name] += 1
                self.ends[place] = max(self.ends[place], offset + 1)
            case Poll(records=records) as poll if records:
                key = op.process, Place(poll.topic, poll.partition)
                self.positions[key] = max(self.positions[key], records[-1][0] + 1)

    def await_more(self, clients: Clients) -> None:
        """Wait until each producer has further records acknowledged, and each consumer has seen all before."""
        before, ends = Counter(self.acknowledged), Counter(self.ends)
        names = [plan.name for plan in clients.producers]
        count = sum(len(plan.places) for plan in clients.consumers)
        self.await_(
            lambda: (
                all(self.acknowledged[name] - before[name] >= ACKNOWLEDGED_MIN for name in names)
                and len(self.positions) == count
                and all(position >= ends[place] for (_, place), position in list(self.positions.items()))
            )
        )

    def await_(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition; fail with what was seen."""
        assert until(condition, limits.CONDITION_WAIT_S_MAX), (self.acknowledged, self.positions, self.ends)


class Working:
    """A client whose produces return once the workload's clients have gone on: each step finds them at work."""

    def __init__(self, client: Client, clients: Clients, history: History) -> None:
        self._client = client
        self._clients = clients
        self._seen = Seen(history)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def produce(self, *args: Any, **options: Any) -> list[int]:
        """Produce as always, then wait for the others."""
        offsets = self._client.produce(*args, **options)
        self._seen.await_more(self._clients)
        return offsets


class Environment(RealEnvironment):
    """Real nodes, whose client works."""

    def __init__(self, clients: Clients, zookeeper: Address, client: str, target: Target = TARGET) -> None:
        super().__init__("local", make_host=HOSTS["local"], target=target, client=client, shared=shared(zookeeper))
        self._clients = clients

    def make_client(self, cluster: Cluster) -> Client:
        return cast(Client, Working(super().make_client(cluster), self._clients, cluster.history))


def played(
    clients: Clients,
    zookeeper: Address,
    folder: Path,
    client: str = "raw",
    *,
    environment: Callable[[Clients, Address, str, Target], Environment] = Environment,
    target: Target = TARGET,
    protocol: str = "kip380",
    schedule: str = SCHEDULE,
) -> tuple[RunResult, list[Op]]:
    """Play the schedule under a workload; return the judgement and the history."""
    lines = [
        *(f"producer {line_of(plan)}" for plan in clients.producers),
        *(f"consumer {line_of(plan)}" for plan in clients.consumers),
        *(f"churner {line_of(plan)}" for plan in clients.churners),
    ]
    scenario = parse("workload", schedule.format(clients="\n".join(lines)), "this test", NEMESES)
    spec = RunSpec(
        target=target.name,
        host="local",
        variant=Variant(protocol=protocol),
        rules=target.rules(protocol, ()),
        traits=target.traits(protocol, ()),
        scenario=scenario,
        draw=draw(scenario, SEED),
    )
    # The run's chroot in ZooKeeper, which all tests share, has these names.
    run = create_suite(folder, folder.name).create_run(f"workload-{client}")
    Player(environment=environment(clients, zookeeper, client, target), faults=NEMESES).play(spec, run)
    ops = read_history(run.history)
    return judge(spec, ops), ops


def completed(ops: Sequence[Op], kind: type) -> list[Op]:
    """Return what ended of this kind; assert that each op that was invoked has ended once."""
    mine = [op for op in ops if isinstance(op.event, kind)]
    ended = [op for op in mine if op.type is not OpType.INVOKE]
    assert len(mine) == 2 * len(ended)
    return ended


def test_leader_dies_and_comes_back_while_clients_work_and_nothing_is_wrong(
    tmp_path: Path, zookeeper: Address
) -> None:
    both = (LOG, ORDERS)
    clients = Clients(
        producers=(
            ProducerPlan(name="p1", places=both, batch=(1, 5), codecs=("none", "gzip", "zstd"), together=0.3),
            ProducerPlan(name="p2", places=(LOG,), acks=(-1, 0), within_ms=200),
        ),
        consumers=(
            ConsumerPlan(name="c1", places=both),
            ConsumerPlan(name="c2", places=(LOG,), via=Via.EVERY),
            ConsumerPlan(name="c3", places=both, seek=0.2, max_bytes=2_000),
        ),
    )
    result, ops = played(clients, zookeeper, tmp_path)
    assert ("as expected", "") == (result.status, result.reason)
    sent, polls = completed(ops, Produce), completed(ops, Poll)
    of: dict[str, list[Op]] = {}
    for op in polls:
        of.setdefault(op.process, []).append(op)
    # The workload begins first: one process for each producer and each consumer.
    assert {"client-1", "client-2"} == {op.process for op in sent if op.value["name"] in ("p1", "p2")}
    assert {"client-3", "client-4", "client-5"} == set(of)
    # Who asks every node asks the one that never leads, and the one that is down.
    assert {"A", "B", "C"} == {op.value["node"] for op in of["client-4"]}
    assert {OpType.OK, OpType.FAIL} == {op.type for op in of["client-4"] if op.value["node"] == "B"}
    answered = {(op.value["node"], op.value["topic"]) for op in of["client-3"] if op.type is OpType.OK}
    assert {("A", "log"), ("B", "log"), ("A", "orders")} == answered
    assert {True, False} == {getattr(op.event, "sought", None) for op in of["client-5"]}
    # Whatever was seen is what is read at the end.
    held = {
        (op.value["topic"], *record)
        for op in completed(ops, Read)
        if op.type is OpType.OK
        for record in op.value["records"]
    }
    seen = {(op.value["topic"], *record) for op in polls for record in op.value.get("records", ())}
    assert set() < seen <= held


def test_one_request_has_the_partitions_that_one_node_leads(tmp_path: Path, zookeeper: Address) -> None:
    places = (Place("log", 0), Place("log", 1), Place("orders", 0), Place("orders", 1))
    clients = Clients(
        producers=(ProducerPlan(name="p1", places=places, together=0.7), ProducerPlan(name="p2", places=places)),
        consumers=(ConsumerPlan(name="c1", places=places), ConsumerPlan(name="c2", places=places, via=Via.EVERY)),
    )
    ids = {"A": 3, "B": 1}
    with running(tmp_path / "run", zookeeper, "kip380", ids, replicas=("A", "B")) as cluster:
        client = RawClient(history=cluster.history, bootstrap=cluster.clients_addresses)
        client.create_topic("log", [3, 1], [1, 3])
        client.create_topic("orders", [1], [3, 1])
        seen = Seen(cluster.history)
        at_work = client.begin_workload(clients, SEED, nodes=cluster.addresses)
        seen.await_more(clients)
        at_work.stop_producing()
        seen.await_(lambda: at_work.produced)
        seen.await_(lambda: all(at == seen.ends[place] for (_, place), at in list(seen.positions.items())))
        at_work.stop()
        seen.await_(lambda: at_work.done)
        ops = read_history(cluster.history.path)
    sent = completed(ops, Produce)
    polled = {
        (op.value["topic"], op.value["partition"], offset, value)
        for op in completed(ops, Poll)
        for offset, value in op.value.get("records", ())
    }
    acknowledged = {
        (op.value["topic"], op.value["partition"], op.value["offset"], op.value["value"])
        for op in sent
        if op.type is OpType.OK
    }
    assert acknowledged <= polled
    leaders = {
        (op.value["node"], op.value["topic"], op.value["partition"])
        for op in completed(ops, Poll)
        if op.process == "client-3" and op.type is OpType.OK
    }
    assert leaders == {("A", "log", 0), ("B", "log", 1), ("B", "orders", 0), ("A", "orders", 1)}


@exhaustive
def test_librdkafka_works_on_while_the_leader_dies(tmp_path: Path, zookeeper: Address) -> None:
    clients = Clients(
        producers=(
            ProducerPlan(name="p1", places=(LOG, ORDERS), batch=(1, 5), codecs=("none", "lz4"), together=0.3),
            ProducerPlan(name="p2", places=(LOG,), acks=(-1, 0), retries=2, within_ms=1_000),
        ),
        consumers=(
            ConsumerPlan(name="c1", places=(LOG, ORDERS)),
            ConsumerPlan(name="c2", places=(LOG,), seek=0.2),
        ),
    )
    result, ops = played(clients, zookeeper, tmp_path, "librdkafka")
    assert ("as expected", "") == (result.status, result.reason)
    sent, polls = completed(ops, Produce), completed(ops, Poll)
    assert {"client-1", "client-2"} == {op.process for op in sent if op.value["name"] in ("p1", "p2")}
    assert {"client-3", "client-4"} == {op.process for op in polls}
    assert {""} == {op.value["node"] for op in polls}
    assert {True, False} == {getattr(op.event, "sought", None) for op in polls if op.process == "client-4"}
    seen = {(op.value["topic"], *record) for op in polls for record in op.value.get("records", ())}
    held = {
        (op.value["topic"], *record)
        for op in completed(ops, Read)
        if op.type is OpType.OK
        for record in op.value["records"]
    }
    assert set() < seen <= held


def close_refused_sockets() -> None:
    """Close the sockets of connections that were refused, which kafka-python leaves open."""
    # By type: `isinstance` asks a weak proxy for the class of what it stands for, which may be gone.
    sockets = [each for each in gc.get_objects() if issubclass(type(each), socket.socket) and each.fileno() >= 0]
    for each in sockets:
        if each.family == socket.AF_INET and each.getsockname()[0] == "0.0.0.0":
            each.close()


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@exhaustive
def test_all_libraries_work_beside_each_other_while_the_leader_dies(tmp_path: Path, zookeeper: Address) -> None:
    """Each producer is acknowledged before and after, and each consumer reads all: `Working` waits for that."""
    drawn = WORKLOADS["mixed"].clients((LOG, ORDERS), seed=SEED)
    clients = drawn.without(lacking(drawn))
    count = len(clients.producers)
    result, ops = played(clients, zookeeper, tmp_path)
    assert ("as expected", "") == (result.status, result.reason)
    sent, polls = completed(ops, Produce), completed(ops, Poll)
    writers = {op.process for op in sent if op.value["name"].startswith("p")}
    assert {f"client-{number}" for number in range(1, count + 1)} == writers
    readers = {op.process for op in polls if op.type is OpType.OK and op.value["records"]}
    assert {f"client-{number}" for number in range(count + 1, 2 * count + 1)} == readers
    assert {f"client-{count + 1}"} == {op.process for op in polls if op.value["node"]}
    close_refused_sockets()


@exhaustive
def test_idempotent_producers_of_three_libraries_lose_and_repeat_nothing_while_the_leader_dies(
    tmp_path: Path, zookeeper: Address
) -> None:
    """Source: KIP-98, Idempotent Producer Guarantees."""
    drawn = WORKLOADS["idempotent"].clients((LOG, ORDERS), seed=SEED)
    clients = drawn.without(lacking(drawn))
    result, ops = played(clients, zookeeper, tmp_path)
    assert ("as expected", "") == (result.status, result.reason)
    assert [clients.idempotent] == [setup.idempotent for _, setup in events_of(ops, Setup)]
    assert {*clients.idempotent} <= {op.value["name"] for op in completed(ops, Produce) if op.type is OpType.OK}
