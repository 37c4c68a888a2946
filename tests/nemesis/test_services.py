"""Ordinary faults hit the processes of a run's own services, as nodes that are no replicas, and are undone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cluster.cluster import Cluster
from harness.environment.needs import own_services
from harness.environment.own_services import OwnServices
from harness.environment.real import RealEnvironment
from harness.events import Injection
from harness.history.file import read_history
from harness.launch import Address
from harness.model import Op, OpType, PreconditionError, UsageError, Verdict, events_of
from harness.run.player import Player
from harness.run.store import create_suite
from harness.scenario.file import PARTITION, TOPIC, parse
from harness.scenario.service_steps import require_services
from harness.scenario.text import text_of
from harness.suite.judged import judge_run
from harness.target.wire import METADATA
from targets.broker_target.target import TARGET
from targets.zookeeper.server import is_ready
from tests.faults import NEMESES
from tests.hosts.sshds import made_on
from tests.kept import exhaustive, keep
from tests.needs import needs
from tests.nemesis.conftest import IDS, await_whole, client_of, heal, inject, produce, roles
from tests.nemesis.simulated import played, refused, seen, spec_of
from tests.nemesis.test_zookeeper_faults import with_own_zookeeper
from tests.services import shared

M1, M2, M3 = "produce m1 acks=all\n", "produce m2 acks=all\n", "produce m3 acks=all\n"
LONE, THREE = "services zookeeper", "services zookeeper 3"
ONE = ("zookeeper-1",)
NOWHERE = Address(host="127.0.0.1", port=1)
EVERYWHERE = [
    pytest.param("local", id="local"),
    pytest.param("docker", id="docker", marks=pytest.mark.docker),
    pytest.param("ssh", id="ssh", marks=needs("sshd")),
]
# What the host says of each fault that ends or freezes a process, or takes the power of its disk.
TAKEN_AWAY = {
    "pause": "pid [0-9]+ stopped|container frozen",
    "kill": "ended by SIGKILL",
    "power-loss": "filesystem shut down in .* ms, a write then failed with EIO",
}


# --- what a schedule may name ----------------------------------------------------------------------------------
def test_fault_that_names_a_service_gives_the_run_services_of_its_own() -> None:
    def own(steps: str, head: str = "") -> dict[str, int]:
        return dict(own_services(spec_of("own", steps, head=head), TARGET).counts)

    assert {} == own("kill A\n")
    assert {"zookeeper": 1} == own("kill service\n") == own("pause zookeeper\n", LONE)
    assert {"zookeeper": 3} == own("kill zookeeper-1\n", THREE) == own("zookeeper-leader-lost A\n")


def test_disks_of_services_lose_power_only_if_a_step_takes_it() -> None:
    steps = {"kill zookeeper-1\n": False, "power-loss A\n": False, "power-loss zookeeper-1\n": True}
    assert steps == {each: own_services(spec_of("own", each, head=THREE), TARGET).loses_power for each in steps}


def test_process_that_no_head_declares_is_an_error_with_the_nearest_word() -> None:
    with pytest.raises(
        UsageError, match=r"'zookeeper-4'; expected a node or an aim: .*, zookeeper-3\. Did you mean"
    ):
        spec_of("wrong", "kill zookeeper-4\n", head=THREE)


@pytest.mark.parametrize(
    ("head", "step", "said"),
    [
        (
            "services coordinator",
            "kill A",
            "coordinator: target broker has no such service; expected one of zoo",
        ),
        ("services zookeeper 2", "kill A", "services zookeeper 2; target broker has 1 or 3"),
        (
            THREE,
            "kill A from zookeeper",
            "it parts nodes from no service; expected one of cut-from-metadata, or no",
        ),
        (THREE, "cut-from-metadata A from zookeeper-1", "nodes of target broker reach the metadata by one link"),
        (THREE, "expire zookeeper-1", "expire zookeeper-1: it hits nodes, and no service; expected one of kill,"),
    ],
)
def test_service_that_a_target_lacks_or_a_fault_cannot_hit_is_refused(head: str, step: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        require_services(spec_of("wrong", step, head=head).scenario, TARGET, NEMESES)


def test_schedule_is_printed_with_its_services() -> None:
    scenario = replace(
        spec_of("printed", "kill zookeeper-1\nrestart zookeeper\n", head=THREE).scenario, expectations={}
    )
    again = parse("printed", text_of(scenario), "this test", NEMESES)
    assert scenario.services == again.services == {"zookeeper": 3}
    assert [step.text for step in scenario.steps] == [step.text for step in again.steps]


# --- in the simulator ------------------------------------------------------------------------------------------
def test_ensemble_without_one_server_serves_and_brokers_keep_their_sessions() -> None:
    steps = f"{M1}kill zookeeper-3\n{M2}elect B\nawait leader = B\nrestart zookeeper-3\n{M3}"
    result, ops = played("one", steps, head=THREE)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert "killed; zookeeper-2 leads" == seen(ops, "kill")
    assert "zookeeper-3 started; zookeeper-2 leads" == seen(ops, "restart")


def test_brokers_go_on_without_the_only_server_and_a_dead_one_is_missed_when_it_is_back() -> None:
    steps = f"{M1}pause zookeeper\n{M2}kill B\nresume zookeeper\nexpire B\nawait isr = A\nrestart B\n{M3}"
    result, ops = played("only", steps, head=LONE)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert [("zookeeper-1",)] == [fault.nodes for op, fault in hits(ops) if op.f == "pause"]


def test_services_are_back_before_the_nodes_that_need_them() -> None:
    result, ops = played("end", f"{M1}kill zookeeper\n{M2}kill B\n", head=THREE)
    assert Verdict.VALID is result.verdict, result.anomalies
    order = [fault.nodes[0] for op, fault in hits(ops) if op.f == "restart"]
    assert [*sorted(order[:3]), "B"] == order and order[:3] == ["zookeeper-1", "zookeeper-2", "zookeeper-3"]


def test_aim_at_a_service_hits_one_of_its_processes_and_no_replica() -> None:
    result, ops = played("aim", f"{M1}kill service\n{M2}restart service\n{M3}")
    assert Verdict.VALID is result.verdict, result.anomalies
    found = [fault.nodes for op, fault in hits(ops)]
    assert 2 == len(found) and found[0] == found[1] and found[0][0].startswith("zookeeper-")


def test_only_server_is_cut_from_all_nodes_and_reached_again() -> None:
    result, ops = played("cut", f"{M1}partition-isolate zookeeper\n{M2}reconnect zookeeper\n{M3}", head=LONE)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert "on A -> metadata" in seen(ops, "partition-isolate")


def test_server_of_an_ensemble_cannot_be_cut_off_since_its_links_have_one_name() -> None:
    _, ops = played("cut", f"{M1}partition-isolate zookeeper-1\n", head=THREE)
    said = "zookeeper-1: links to several processes of services are one to the fabric; expected a lone one"
    assert said == refused(ops, "partition-isolate")


def hits(ops: Sequence[Op]) -> list[tuple[Op, Injection]]:
    """Return the faults that took effect."""
    return [(op, fault) for op, fault in events_of(ops, Injection) if op.type is OpType.OK]


# --- on real processes -----------------------------------------------------------------------------------------
@exhaustive
@pytest.mark.slow
@pytest.mark.root
@needs("java", "loop")
@pytest.mark.parametrize("host", EVERYWHERE)
def test_real_ensemble_serves_without_a_server_that_was_killed_or_lost_its_power(
    host: str, tmp_path: Path
) -> None:
    with with_own_zookeeper(tmp_path, 3, power=True, host=host) as cluster:
        sessions = {name: cluster.metadata.incarnation(name) for name in IDS}
        for fault, name in (("kill", "zookeeper-1"), ("power-loss", "zookeeper-3")):
            assert inject(fault, cluster, name)
            produce(cluster, 1)
            _, follower = roles(cluster)
            inject("elect", cluster, follower)
            cluster.await_(lambda: cluster.leader() == follower, lambda: f"{follower} leads")  # noqa: B023
            assert heal(fault, cluster, name).startswith(f"{name} is ")
            await_whole(cluster)
        assert sessions == {name: cluster.metadata.incarnation(name) for name in IDS}


@pytest.mark.slow
@pytest.mark.root
@needs("java", "loop")
@pytest.mark.parametrize("host", EVERYWHERE)
def test_real_brokers_keep_their_sessions_while_faults_take_the_only_server_away(
    host: str, tmp_path: Path
) -> None:
    """The server flushes what it promises, so it has the sessions when its power is back."""
    with with_own_zookeeper(tmp_path, 1, power=True, host=host) as cluster:
        sessions = {name: cluster.metadata.incarnation(name) for name in IDS}
        leader, _ = roles(cluster)
        produce(cluster, 1)  # the follower has found the leader, and need not ask where it is
        for fault, said in TAKEN_AWAY.items():
            assert re.search(said, inject(fault, cluster, "zookeeper-1"))
            assert not is_ready(address_of(cluster))
            with pytest.raises(PreconditionError, match="ZooKeeper answers nobody: a fault hits zookeeper-1"):
                cluster.leader()
            assert [] == missed(cluster, leader)
            heal(fault, cluster, "zookeeper-1")
            assert is_ready(address_of(cluster))
            await_whole(cluster)
        cut = inject("partition-isolate", cluster, "zookeeper-1")
        assert re.search(r"^frames lost: .* on [ABC] -> metadata", cut)
        assert is_ready(address_of(cluster))
        assert [] == missed(cluster, leader)
        assert heal("partition-isolate", cluster, "zookeeper-1").startswith("partition-isolate: frames lost: ")
        links = [(name, METADATA) for name in IDS]
        cluster.await_(lambda: all(cluster.fabric.connections(*link) for link in links), lambda: f"{links} open")
        await_whole(cluster)
        assert sessions == {name: cluster.metadata.incarnation(name) for name in IDS}


@pytest.mark.slow
@pytest.mark.root
@needs("java", "iptables")
@pytest.mark.parametrize("host", keep(EVERYWHERE[:2], "local"))
def test_packets_of_the_only_server_are_dropped_where_it_runs(host: str, tmp_path: Path) -> None:
    with with_own_zookeeper(tmp_path, 1, host=host) as cluster:
        assert re.search("packets dropped: [1-9]", inject("drop-packets", cluster, "zookeeper-1"))
        assert not is_ready(address_of(cluster))
        heal("drop-packets", cluster, "zookeeper-1")
        assert is_ready(address_of(cluster))
        await_whole(cluster)


def address_of(cluster: Cluster) -> Address:
    """Return where the harness asks the only server of a cluster's own ZooKeeper."""
    assert isinstance(cluster.services, OwnServices)
    (process,) = cluster.services._kinds["zookeeper"].processes
    return process.address


def missed(cluster: Cluster, leader: str) -> list[str]:
    """Produce to a leader that is known; return what was not acknowledged."""
    found = client_of(cluster).produce(TOPIC, PARTITION, "m", ["v"], acks=-1, via=cluster.addresses[leader])
    return [] if found else ["v"]


@pytest.mark.slow
@needs("java")
@pytest.mark.parametrize("host", keep(EVERYWHERE, "local"))
def test_run_whose_schedule_hits_services_touches_no_shared_one_and_is_judged(host: str, tmp_path: Path) -> None:
    """The address of the shared ZooKeeper leads nowhere: only services of its own can have served."""
    steps = f"{M1}pause zookeeper\nresume zookeeper\n{M2}kill zookeeper\n"
    spec = replace(spec_of("services", steps, head=LONE), host=host)
    suite = create_suite(tmp_path, "services")
    with ExitStack() as stack:
        make_host = made_on(stack, host, tmp_path)
        environment = RealEnvironment(host, make_host=make_host, target=TARGET, shared=shared(NOWHERE))
        run = Player(environment=environment, faults=NEMESES).play(spec, suite.create_run(spec.name))
    result, _ = judge_run(spec, run)
    assert Verdict.VALID is result.verdict, result.anomalies
    names = [
        (op.f, fault.nodes)
        for op, fault in events_of(read_history(run.history), Injection)
        if op.type is OpType.OK
    ]
    assert [("pause", ONE), ("resume", ONE), ("kill", ONE), ("restart", ONE)] == names
