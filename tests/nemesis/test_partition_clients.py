"""Clients that do not reach a broker are parted from it alone, and go on with it once they reach it again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from harness.effect import Effect
from harness.events import Produce
from harness.fabric.core.rules import ANY, CLIENTS, link_matches
from harness.launch import Address
from harness.model import OpType, Verdict, events_of
from harness.scenario.file import TOPIC
from targets.kafka_family.clients import probe
from tests.clusters import running
from tests.nemesis.conftest import IDS, REPLICAS, await_whole, client_of, heal, inject, produce, roles
from tests.nemesis.simulated import played, refused, seen

WORKLOAD = "producer p1 log-0 acks=all"
M1, M2 = "produce m1 acks=all\n", "produce m2 acks=all\n"


def test_producers_wait_for_a_leader_that_they_do_not_reach_and_nobody_else_leads() -> None:
    steps = f"{M1}partition-clients A\npass 500ms\nrequire leader = A\nreconnect A\n{M2}"
    result, ops = played("clients", steps, head=WORKLOAD)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert "frames lost: 1 on clients -> A" == seen(ops, "partition-clients")
    assert seen(ops, "reconnect").startswith("partition-clients: frames lost: ")
    outcomes = {op.type for op, sent in events_of(ops, Produce) if sent.name == "p1"}
    assert {OpType.INVOKE, OpType.OK, OpType.INFO} <= outcomes


def test_without_clients_at_work_it_takes_no_frame() -> None:
    _, ops = played("clients", f"{M1}partition-clients A\n")
    expected = "partition-clients A: no frame was lost within 3 s; expected one at least"
    assert expected == refused(ops, "partition-clients")


def test_rules_for_any_node_leave_clients_alone() -> None:
    assert not link_matches((ANY, "A"), (CLIENTS, "A"))
    assert link_matches((CLIENTS, ANY), (CLIENTS, "A"))
    assert not link_matches((CLIENTS, "A"), ("B", "A"))


@pytest.mark.slow
def test_real_clients_reach_a_broker_through_a_link_that_can_be_cut(tmp_path: Path, zookeeper: Address) -> None:
    done = Event()
    with running(tmp_path / "run", zookeeper, "kip101", IDS, replicas=REPLICAS, client_links=True) as cluster:
        client_of(cluster).create_topic(TOPIC, [IDS[name] for name in REPLICAS])
        await_whole(cluster)
        end = produce(cluster, 1)
        leader, follower = roles(cluster)

        def ask() -> None:
            while not done.is_set():
                probe.serves(cluster.addresses[leader])

        with ThreadPoolExecutor() as pool:
            asking = pool.submit(ask)
            try:
                cut = inject("partition-clients", cluster, leader)
            finally:
                done.set()
            asking.result()
        assert f"on clients -> {leader}" in cut
        assert {leader} == cluster.in_force.nodes({Effect.CLIENTS_CUT})
        assert not probe.serves(cluster.addresses[leader])
        assert probe.serves(cluster.addresses[follower])
        assert (leader, end) == (cluster.leader(), cluster.log_end(follower))
        assert "partition-clients: frames lost: " in heal("partition-clients", cluster, leader)
        assert end + 1 == produce(cluster, 1)
