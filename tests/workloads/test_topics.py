"""Workload topics on real brokers: topics come and go while a leader dies, and none has what an older one had."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from harness import limits
from harness.cleanup.process import until
from harness.cluster.cluster import Cluster
from harness.environment.real import RealEnvironment
from harness.events import CreateTopic, DeleteTopic, Produce, Setup
from harness.history.file import History
from harness.launch import Address
from harness.model import Op, OpType, UsageError, events_of
from harness.run.player import setup_event
from harness.search.random_runs import RandomRuns
from harness.target.clients import Client
from harness.target.found import target as target_of
from harness.target.target import Target
from harness.target.traits import traits_of
from harness.workload.plan import Clients
from tests.kept import exhaustive
from tests.needs import needs
from tests.workloads.test_at_work import LOG, ORDERS, SEED, Environment, completed, played
from workloads import WORKLOADS

NODES = ("A", "B", "C")
RELEASE = "3.9.1"
# So many deletions of each topic before the leader dies, and again after it is back.
DELETIONS_MIN = 3


class Churning:
    """A client whose produces return once each of the workload's topics was deleted some times more."""

    def __init__(self, client: Client, clients: Clients, history: History) -> None:
        self._client = client
        self._topics = clients.churned
        self._deleted: Counter[str] = Counter()
        history.listeners.append(self._listen)

    def _listen(self, op: Op) -> None:
        if isinstance(op.event, DeleteTopic) and op.type is OpType.OK:
            self._deleted[op.event.topic] += 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def produce(self, *args: Any, **options: Any) -> list[int]:
        """Produce as always, then wait for deletions of each topic."""
        offsets = self._client.produce(*args, **options)
        before = Counter(self._deleted)
        assert until(
            lambda: all(self._deleted[topic] - before[topic] >= DELETIONS_MIN for topic in self._topics),
            limits.CONDITION_WAIT_S_MAX,
        ), self._deleted
        return offsets


class ChurningEnvironment(Environment):
    """Real nodes, whose client waits for deletions."""

    def make_client(self, cluster: Cluster) -> Client:
        return cast(Client, Churning(RealEnvironment.make_client(self, cluster), self._clients, cluster.history))


def test_brokers_that_know_no_record_batches_are_refused() -> None:
    runs = RandomRuns(target="kafka", variant="0.10.2.2", host="local", workload="topics")
    with pytest.raises(UsageError, match=r"target kafka:0.10.2.2: churner n1 with brokers older than 0.11"):
        runs.spec(SEED)


OF_RELEASE = (exhaustive, needs(f"kafka-{RELEASE}"))


@pytest.mark.parametrize(("target", "variant", "later"), [("kafka", "3.9.1", True), ("broker", "kip380", False)])
def test_history_says_whether_deletes_take_effect_later(target: str, variant: str, later: bool) -> None:
    spec = RandomRuns(target=target, variant=variant, host="local", workload="topics").spec(SEED)
    setup = setup_event(spec, traits=spec.traits, power_tier="none", sends_once=True)
    assert ("temp", "spare") == setup.churned
    assert later is traits_of(setup).deletes_later


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("broker", "kip380"),
        pytest.param("kafka", RELEASE, marks=[pytest.mark.kafka, *OF_RELEASE]),
    ],
)
def test_topics_come_and_go_while_the_leader_dies_and_nothing_old_is_found_in_new_ones(
    tmp_path: Path, zookeeper: Address, name: str, protocol: str
) -> None:
    target: Target = target_of(name)
    workload = WORKLOADS["topics"]
    drawn = workload.clients((LOG, ORDERS), seed=SEED)
    clients = Clients(
        producers=drawn.producers, consumers=drawn.consumers, churners=workload.churners(NODES, seed=SEED)
    )
    result, ops = played(
        clients, zookeeper, tmp_path, environment=ChurningEnvironment, target=target, protocol=protocol
    )
    assert ("as expected", "") == (result.status, result.reason)
    (setup,) = (setup for _, setup in events_of(ops, Setup))
    assert ("temp", "spare") == setup.churned
    # Each create and each delete has an outcome, and so has each record; those of churners among them.
    created, deleted, sent = (completed(ops, kind) for kind in (CreateTopic, DeleteTopic, Produce))
    for ended in (created, deleted):
        assert {"temp", "spare"} == {op.value["topic"] for op in ended if op.type is OpType.OK}
    assert {"n1", "n2"} <= {op.value["name"] for op in sent if op.type is OpType.OK}
    # A churner is one process, like any other client.
    assert 2 == len({op.process for op in (*created, *deleted)})
