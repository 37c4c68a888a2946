"""Outages of ZooKeeper, the loss of its leader, its lateness and cuts from it bite, and are undone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from harness.cluster.cluster import Cluster
from harness.effect import ON_METADATA
from harness.environment.own_services import OwnServices
from harness.environment.services import Own, start_own
from harness.history.file import History
from harness.hosts import HOSTS
from harness.launch import Address
from harness.model import PreconditionError, Verdict
from harness.scenario.file import PARTITION, TOPIC
from targets.broker_target import layout
from targets.kafka_family.zookeeper.view import RealZooKeeperView
from targets.zookeeper.server import ZOOKEEPER
from tests.clusters import run_of, running
from tests.faults import NEMESES
from tests.hosts.sshds import made_on
from tests.kept import exhaustive
from tests.needs import needs
from tests.nemesis.conftest import IDS, REPLICAS, await_whole, client_of, heal, inject, produce, roles
from tests.nemesis.simulated import played, refused, seen

M1, M2, M3 = "produce m1 acks=all\n", "produce m2 acks=all\n", "produce m3 acks=all\n"
FAULTS = ("zookeeper-outage", "zookeeper-leader-lost", "cut-from-metadata")


def test_every_fault_of_zookeeper_is_played_here() -> None:
    assert {*FAULTS} == {name for name, each in NEMESES.items() if each.effect in ON_METADATA}


# --- in the simulator ------------------------------------------------------------------------------------------
def test_brokers_go_on_without_zookeeper_and_a_dead_one_is_missed_when_it_is_back() -> None:
    steps = f"{M1}zookeeper-outage A\n{M2}kill B\nzookeeper-back A\nexpire B\nawait isr = A\nrestart B\n{M3}"
    result, ops = played("outage", steps)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert "3 servers frozen, 3 sessions wait" == seen(ops, "zookeeper-outage")
    back = "all servers are frozen; now all 3 serve, zookeeper-3 leads, 3 of 3 sessions kept"
    assert back == seen(ops, "zookeeper-back")


def test_nobody_is_elected_while_zookeeper_is_out() -> None:
    _, ops = played("outage", f"{M1}zookeeper-outage all\nelect B\n")
    assert "elect: ZooKeeper answers nobody; expected one that serves" in refused(ops, "elect")


def test_sessions_outlive_their_leader_and_another_server_elects() -> None:
    steps = f"{M1}zookeeper-leader-lost A\n{M2}elect B\nawait leader = B\nzookeeper-back A\n{M3}"
    result, ops = played("leader", steps)
    assert Verdict.VALID is result.verdict, result.anomalies
    lost = "zookeeper-3 led and was killed; zookeeper-2 leads; 3 of 3 sessions kept"
    assert lost == seen(ops, "zookeeper-leader-lost")
    assert seen(ops, "zookeeper-back").startswith("zookeeper-3 is gone; now all 3 serve, zookeeper-2 leads")


def test_second_leader_is_not_killed_since_no_majority_would_be_left() -> None:
    _, ops = played("leaders", f"{M1}zookeeper-leader-lost A\nzookeeper-leader-lost A\n")
    assert "zookeeper-3 is gone; expected all servers to serve" in refused(ops, "zookeeper-leader-lost")


def test_broker_that_was_cut_from_zookeeper_for_a_while_keeps_its_session() -> None:
    result, ops = played("cut", f"{M1}cut-from-metadata B\n{M2}zookeeper-back B\n{M3}")
    assert Verdict.VALID is result.verdict, result.anomalies
    assert "frames lost: whole connections on B -> metadata" == seen(ops, "cut-from-metadata")
    assert "; B is registered in session 0x1000000000000003" in seen(ops, "zookeeper-back")


def test_broker_whose_session_ended_while_it_was_cut_off_registers_anew() -> None:
    steps = f"{M1}cut-from-metadata A\nexpire A\nawait leader = B\nzookeeper-back A\n{M2}"
    result, ops = played("cut", steps)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert "; A is registered in session 0x1000000000000004" in seen(ops, "zookeeper-back")


def test_zookeeper_is_late_for_a_controller_that_elects() -> None:
    result, ops = played("late", f"{M1}zookeeper-late C\nelect B\nawait leader = B\nreconnect C\n{M2}")
    assert Verdict.VALID is result.verdict, result.anomalies
    assert "zookeeper-late: frames late: 7 on C -> metadata; open again: C -> metadata" == seen(ops, "reconnect")


@pytest.mark.parametrize("protocol", ["kip101", "kip380"])
def test_controller_whose_write_was_done_and_not_answered_finds_out(protocol: str) -> None:
    result, ops = played("multi", f"{M1}zookeeper-multi-lost C\nawait leader = B\n{M2}", protocol)
    assert Verdict.VALID is result.verdict, result.anomalies
    expected = "the answer to a multi of C was lost with its connection; B leads"
    assert seen(ops, "zookeeper-multi-lost").endswith(expected)


def test_answer_is_lost_only_to_a_controller() -> None:
    _, ops = played("multi", f"{M1}zookeeper-multi-lost A\n")
    assert "zookeeper-multi-lost A: not the controller; expected C" == refused(ops, "zookeeper-multi-lost")


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_in_force_at_the_end_is_healed_before_the_final_reads(fault: str) -> None:
    result, ops = played("end", f"{M1}{fault} A\n{M2}")
    assert Verdict.VALID is result.verdict, result.anomalies
    assert seen(ops, "zookeeper-back")


def test_return_of_zookeeper_that_was_never_away_is_refused() -> None:
    _, ops = played("none", f"{M1}zookeeper-back A\n")
    assert "A reaches the metadata; expected a fault that parts it from them" == refused(ops, "zookeeper-back")


# --- on real processes -----------------------------------------------------------------------------------------
@pytest.mark.slow
def test_real_broker_that_is_cut_from_zookeeper_keeps_its_session(cluster: Cluster) -> None:
    _, follower = roles(cluster)
    session = cluster.metadata.incarnation(follower)
    assert f"on {follower} -> metadata" in inject("cut-from-metadata", cluster, follower)
    produce(cluster, 1)
    assert f"{follower} is registered in session 0x{session:x}" in heal("cut-from-metadata", cluster, follower)
    await_whole(cluster)


@pytest.mark.slow
def test_real_controller_whose_write_was_done_and_not_answered_finds_out(cluster: Cluster) -> None:
    _, follower = roles(cluster)
    controller = str(cluster.metadata.controller())
    probe = inject("zookeeper-multi-lost", cluster, controller)
    assert f"the answer to a multi of {controller} was lost with its connection; {follower} leads" in probe
    await_whole(cluster)
    produce(cluster, 1)


@pytest.mark.slow
def test_shared_zookeeper_is_not_touched(cluster: Cluster) -> None:
    with pytest.raises(PreconditionError, match="zookeeper-outage A: the run shares its services with others"):
        inject("zookeeper-outage", cluster, "A")


@contextmanager
def with_own_zookeeper(
    folder: Path, servers: int, *, power: bool = False, host: str = "local"
) -> Iterator[Cluster]:
    """Start a cluster with a ZooKeeper of its own; the address of the shared one leads nowhere."""
    nowhere = Address(host="127.0.0.1", port=1)
    with ExitStack() as stack:
        made = stack.enter_context(
            running(
                folder / "run",
                nowhere,
                "kip101",
                IDS,
                replicas=REPLICAS,
                power_tier=None if power else "watermark",
                host=host,
                make_host=made_on(stack, host, folder),
                own_servers=servers,
                power_of_services=power,
            )
        )
        client_of(made).create_topic(TOPIC, [IDS[name] for name in REPLICAS])
        await_whole(made)
        yield made


@pytest.mark.slow
@needs("java")
def test_real_ensemble_loses_its_leader_then_answers_nobody_then_serves_again(tmp_path: Path) -> None:
    with with_own_zookeeper(tmp_path, 3) as cluster:
        lost = inject("zookeeper-leader-lost", cluster, "A")
        gone = lost.partition(" led, ")[0]
        assert f"{gone} led, " in lost
        assert f"{gone} gone" in lost
        assert "; 3 of 3 sessions kept, " in lost
        leader, follower = roles(cluster)
        sessions = {name: cluster.metadata.incarnation(name) for name in IDS}
        out = inject("zookeeper-outage", cluster, "A")
        assert "; nobody is answered" in out
        with pytest.raises(PreconditionError, match="ZooKeeper answers nobody: its servers are frozen"):
            cluster.leader()
        # Our brokers ask ZooKeeper who leads, as V3 has it: a client that knows the leader is served.
        client_of(cluster).produce(TOPIC, PARTITION, "m", ["v"], acks=-1, via=cluster.addresses[leader])
        back = heal("zookeeper-outage", cluster, "A")
        assert f"; {gone} started; now " in back
        assert (1, 2) == (back.count(" leader"), back.count(" follower"))
        assert sessions == {name: cluster.metadata.incarnation(name) for name in IDS}
        inject("elect", cluster, follower)
        cluster.await_(lambda: cluster.leader() == follower, lambda: f"{follower} leads {TOPIC}-{PARTITION}")
        await_whole(cluster)


@exhaustive
@pytest.mark.slow
@pytest.mark.docker
def test_ensemble_in_containers_loses_its_leader_and_is_whole_again(tmp_path: Path) -> None:
    host, history = HOSTS["docker"](tmp_path / "run"), History(tmp_path / "history.jsonl")
    with ExitStack() as stack:
        stack.callback(history.close)
        stack.callback(host.close)
        host.open()
        started, addresses = start_own(host, (ZOOKEEPER,), Own(counts={"zookeeper": 3}), {})
        first, *others = addresses["zookeeper"]
        view = RealZooKeeperView(run=run_of(history, first, *others, ids=IDS), layout=layout)
        stack.callback(view.close)
        own = OwnServices(host, started, view)
        lost = own.lose_leader("zookeeper")
        assert " led, container ended by SIGKILL with exit code 137; now " in lost
        assert f"{lost.partition(' led, ')[0]} does not serve" == own.lacking()
        assert "container frozen; nobody is answered" in own.halt("zookeeper")
        back = own.mend()
        assert (1, 2, "") == (back.count(" leader"), back.count(" follower"), own.lacking())
