"""Workload crash: clients are killed before and after their leader is, and nothing is wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from harness.cleanup.process import identity_of
from harness.cluster.cluster import Cluster
from harness.environment.real import RealEnvironment
from harness.events import ClientKilled, ClientStarted, Poll, Produce
from harness.history.file import History
from harness.launch import Address
from harness.model import Op, OpType, UsageError, Verdict, events_of
from harness.search.random_runs import NO_SOCKETS, RandomRuns
from harness.search.simulated import play_in_memory, sim_player
from harness.target.clients import Client
from harness.workload.lives import KILLED
from harness.workload.plan import Clients, Library
from targets.broker_target.target import TARGET
from tests.kept import exhaustive
from tests.targets.kafka_family.clients.test_lives import Kills
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


@exhaustive
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


# --- in the simulator -------------------------------------------------------------------------------------------
FAULTS = ("client-crash", "kill", "elect", "power-loss")
SIMULATED = RandomRuns(
    target="broker", variant="kip380", host="sim", workload="crash", nemeses=FAULTS, seconds=4.0
)


@exhaustive
def test_simulated_clients_are_killed_and_started_again_amid_chaos_and_nothing_is_wrong() -> None:
    spec = SIMULATED.spec(SEED)
    result, ops = play_in_memory(sim_player(TARGET), spec)
    assert result.verdict in (Verdict.VALID, Verdict.PERMITTED), (result.reason, result.anomalies)
    counts = Counter(killed.name for op, killed in events_of(ops, ClientKilled) if op.type is OpType.OK)
    # A fault may kill c4 too, which is killed by nothing else.
    assert {"p1", "p3", "c1", "c2"} <= {name for name, count in counts.items() if count >= 2}
    assert counts.total() == result.activity.bit["kill-client"] > result.activity.bit["client-crash"] > 0
    completed(ops, Produce)
    completed(ops, Poll)
    sent = values(ops, OpType.INVOKE)
    assert len(sent) == len(set(sent))
    assert KILLED in {sent.error for op, sent in events_of(ops, Produce) if op.type is OpType.INFO}


@pytest.mark.slow
def test_simulated_seed_gives_the_same_history_twice() -> None:
    (_, one), (_, other) = (play_in_memory(sim_player(TARGET), SIMULATED.spec(SEED + 1)) for _ in range(2))
    assert {"client-killed", "client-crash"} <= {op.f for op in one}
    assert [op.to_json() for op in one] == [op.to_json() for op in other]


def test_simulator_goes_without_the_clients_on_libraries_and_says_so() -> None:
    assert {Library.LIBRDKAFKA: NO_SOCKETS} == SIMULATED.left_out(SEED)
    scenario = SIMULATED.spec(SEED).scenario
    assert ["p1", "p3"] == [plan.name for plan in scenario.clients.producers]
    all_of_them = WORKLOADS["crash"].clients(tuple(scenario.places), seed=SEED)
    assert all_of_them.without({Library.LIBRDKAFKA}) == scenario.clients


def test_simulator_refuses_a_workload_that_is_about_libraries() -> None:
    runs = replace(SIMULATED, workload="mixed")
    assert {} == runs.left_out(SEED)
    with pytest.raises(UsageError, match=r"host sim: clients p2, p3, p4, p5, .* stand on libraries"):
        runs.spec(SEED)
