"""Workload crash on real brokers: clients are killed before and after their leader is, and nothing is wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from harness.cleanup.process import identity_of
from harness.cluster.client import Client
from harness.cluster.cluster import Cluster
from harness.environment.real import RealEnvironment
from harness.events import ClientKilled, ClientStarted, Poll, Produce
from harness.history.file import History
from harness.launch import Address
from harness.model import Op, OpType, UsageError, events_of
from harness.search.random_runs import RandomRuns
from harness.workload.plan import Clients
from tests.workloads.clients.test_lives import Kills
from tests.workloads.test_at_work import LOG, ORDERS, SEED, Environment, completed, played
from workloads import WORKLOADS


class Killing:
    """A client whose produces return once each of the workload's clients was killed once more."""

    def __init__(self, client: Client, clients: Clients, history: History) -> None:
        self._client = client
        self._clients = clients
        self._kills = Kills(history)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def produce(self, *args: Any, **options: Any) -> list[int]:
        """Produce as always, then wait for a kill of each."""
        offsets = self._client.produce(*args, **options)
        before = min((self._kills.counts.get(name, 0) for name in self._clients.killed), default=0)
        self._kills.await_(self._clients.killed, before + 1)
        return offsets


class KillingEnvironment(Environment):
    """Real nodes, whose client waits for kills."""

    def make_client(self, cluster: Cluster) -> Client:
        return cast(Client, Killing(RealEnvironment.make_client(self, cluster), self._clients, cluster.history))


def values(ops: list[Op], type_: OpType) -> list[str]:
    return [sent.value for op, sent in events_of(ops, Produce) if op.type is type_]


@pytest.mark.slow
def test_every_client_is_killed_and_started_again_while_the_leader_dies_and_nothing_is_wrong(
    tmp_path: Path, zookeeper: Address
) -> None:
    clients = WORKLOADS["crash"].clients((LOG, ORDERS), seed=SEED)
    result, ops = played(clients, zookeeper, tmp_path, environment=KillingEnvironment)
    assert ("as expected", "") == (result.status, result.reason)
    kills = [(op, killed) for op, killed in events_of(ops, ClientKilled) if op.type is not OpType.INVOKE]
    assert {OpType.OK} == {op.type for op, _ in kills}
    counts = Counter(killed.name for _, killed in kills)
    assert set(clients.killed) == counts.keys()
    assert min(counts.values()) >= 2
    # Each kill bit: its probe says so, and no process is left of any life.
    started = {op.process: each for op, each in events_of(ops, ClientStarted)}
    assert all(killed.probe == f"pid {killed.pid} ended by SIGKILL, waited for: signal 9" for _, killed in kills)
    assert {started[op.process].pid for op, _ in kills} == {killed.pid for _, killed in kills}
    assert [] == [each.pid for each in started.values() if identity_of(each.pid) is not None]
    # Every op has its outcome, and no value was sent twice, by whichever life.
    completed(ops, Produce)
    completed(ops, Poll)
    sent = values(ops, OpType.INVOKE)
    assert len(sent) == len(set(sent))
    # A client that was killed goes on as another process, and one that was not as itself.
    after = [each.after for each in started.values() if each.after]
    assert len(after) == len(set(after))
    assert set(after) <= {op.process for op, _ in kills}
    (steady,) = {plan.name for plan in clients.consumers} - set(clients.killed)
    assert steady not in {each.name for each in started.values()}


def test_simulator_has_no_processes_to_kill() -> None:
    runs = RandomRuns(target="broker", variant="kip380", host="sim", workload="crash")
    why = (
        r"host sim: clients p1, .* are killed and started again \(kill_after=…\), which needs processes; expected"
    )
    with pytest.raises(UsageError, match=why):
        runs.spec(SEED)
