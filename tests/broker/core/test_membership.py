"""A broker in ZooKeeper: registration, take-over, sessions, and bounces that a controller sees or misses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from targets.broker.core.events import Effect, Exit, ZkFired
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Role
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    broker_path,
    decode_registration,
    encode_registration,
    leader_and_isr_path,
)
from tests.broker.core.asks import STRANGER, occupied
from tests.broker.core.bench import TP, Bench, MemoryZk, registration
from tests.broker.core.cluster import Cluster

ME = broker_path(1)
STATE = leader_and_isr_path(TP)
L, F, N = Role.LEADER, Role.FOLLOWER, Role.NONE
LATER = tuple(protocol for protocol in PROTOCOLS if protocol != "hw")


def taken_over(bench: Bench, effects: list[Effect] | None = None) -> list[bool]:
    """Return, for each registration that the broker recorded, whether it took over an older one."""
    return [bool(told["taken_over"]) for told in bench.observed("member", effects)]


def owner(bench: Bench) -> int:
    return bench.zk.nodes[ME].owner


# --- registration ----------------------------------------------------------------------------------------------
def test_first_broker_makes_the_standing_paths_and_registers() -> None:
    """Source: Kafka Replication Design V3, Paths 2."""
    bench = Bench()
    effects = bench.start(session=7)
    assert {BROKER_IDS, BROKER_TOPICS, CONTROLLER_EPOCH, ME} <= set(bench.zk.nodes)
    assert (decode_registration(bench.zk.nodes[ME].data), owner(bench)) == (registration(1), 7)
    assert [False] == taken_over(bench, effects)
    assert bench.broker.state.started


def test_broker_without_a_session_does_nothing_in_zookeeper() -> None:
    bench = Bench()
    bench.start()
    assert bench.zk.nodes == {}


def test_broker_takes_over_the_registration_that_its_own_node_left() -> None:
    """The old session is still open; a count of registrations cannot show that the broker was away."""
    zk = occupied()
    zk.put(ME, encode_registration(registration(1)), owner=6)
    bench = Bench(zk=zk)
    effects = bench.start(session=7)
    assert owner(bench) == 7
    assert [True] == taken_over(bench, effects)
    zk.close_session(6)
    assert ME in zk.nodes


def test_broker_gives_way_when_another_node_holds_its_id() -> None:
    zk = occupied()
    zk.put(ME, encode_registration(registration(1, node="elsewhere")), owner=6)
    bench = Bench(zk=zk)
    (end,) = [effect for effect in bench.start(session=7) if isinstance(effect, Exit)]
    assert end.reason == (
        "broker id 1: registered by node 'elsewhere', expected no node or 'node-1'; "
        "change the id of one of the two"
    )
    assert owner(bench) == 6
    assert bench.observed("member") == []


def test_old_registration_that_goes_while_it_is_taken_over_is_no_obstacle() -> None:
    zk = occupied()
    zk.put(ME, encode_registration(registration(1)), owner=6)
    bench = Bench(zk=zk)
    bench.hold(ME, writes=True)
    bench.start(session=7)
    zk.close_session(6)
    bench.release()
    assert (owner(bench), taken_over(bench)) == (7, [False])


@pytest.mark.parametrize("happened", [True, False])
def test_registration_whose_answer_was_lost_is_looked_at_again(happened: bool) -> None:
    """Source: Kafka Replication Design V3, Paths 2."""
    bench = Bench(zk=occupied())
    bench.lose(ME, happened=happened, writes=True)
    bench.start(session=7)
    assert bench.observed("member") == []
    bench.pass_ms(500)
    assert (owner(bench), taken_over(bench)) == (7, [False])


@pytest.mark.parametrize("path", ["/brokers", ME, BROKER_TOPICS, "/brokers/topics/t", STATE])
def test_start_up_goes_on_wherever_the_connection_was_lost(path: str) -> None:
    """Source: Kafka Replication Design V3, E 1 and 2."""
    bench = Bench(zk=occupied())
    bench.zk.put_state(2, 0, (1, 2))
    bench.lose(path, happened=False)
    bench.start(session=7)
    bench.pass_ms(500)
    assert bench.broker.state.started
    assert (bench.replica.role, len(bench.observed("ready"))) == (F, 1)


# --- sessions --------------------------------------------------------------------------------------------------
def test_broker_registers_again_when_its_session_ended() -> None:
    """Source: Kafka Replication Design V3, Paths 2."""
    bench = Bench(zk=occupied())
    bench.start(session=7)
    bench.zk.close_session(7)
    bench.connect(0)
    assert ME not in bench.zk.nodes
    effects = bench.connect(8)
    assert owner(bench) == 8
    assert bench.observed("ready", effects) == []


def test_office_that_was_won_before_the_standing_paths_were_there_is_kept() -> None:
    """Its session holds /controller: a broker that forgets it leaves the cluster without a controller for good."""
    bench = Bench(zk=occupied())
    bench.start(session=7)
    bench.zk.close_session(STRANGER)
    bench.zk.close_session(7)
    bench.connect(0)
    bench.lose("/brokers", happened=False)
    bench.connect(8)
    bench.fire(CONTROLLER)
    assert ME not in bench.zk.nodes
    assert bench.broker.state.controller.active
    bench.pass_ms(500)
    assert (owner(bench), bench.zk.nodes[CONTROLLER].owner) == (8, 8)
    assert bench.broker.state.controller.active


def test_lost_creation_of_the_standing_paths_is_not_repeated_without_a_session() -> None:
    bench = Bench(zk=occupied())
    bench.lose("/brokers", happened=False)
    bench.start(session=7)
    bench.connect(0)
    bench.hold("/brokers")
    bench.pass_ms(500)
    assert bench.held == []


def test_leader_whose_session_ended_still_believes_to_lead() -> None:
    """Source: Kafka Replication Design V3, discussion 3: only a command takes leadership away."""
    bench = Bench("hw", zk=occupied())
    bench.zk.put_state(1, 0, (1, 2))
    bench.start(session=7)
    bench.zk.close_session(7)
    bench.connect(0)
    assert bench.replica.role is L


def test_answer_of_an_older_session_registers_nobody() -> None:
    bench = Bench(zk=MemoryZk())
    bench.hold(ME, writes=True)
    bench.start(session=7)
    (old,) = bench.held
    bench.held = []
    bench.connect(8)
    assert bench.broker.state.registered is False
    bench.held.append(old)
    bench.release()
    assert (bench.broker.state.registered, owner(bench)) == (True, 8)
    assert len(bench.observed("member")) == 1


def test_only_a_broker_that_has_started_stands_for_controller() -> None:
    """Source: Kafka Replication Design V3, E before D: it must know what it holds before it decides for others."""
    zk = occupied()
    zk.remove("/controller")
    bench = Bench(zk=zk)
    bench.hold("/brokers/topics/t")
    bench.start(session=7)
    bench.step(ZkFired(path="/controller"))
    assert (bench.broker.state.registered, bench.observed("controller")) == (True, [])
    bench.release()
    assert [2] == [seen["epoch"] for seen in bench.observed("controller")]


# --- returning leaders -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("protocol", "epoch"), [("hw", 0), *((name, 1) for name in LATER if name != "kip380")])
def test_registration_that_appears_gives_what_the_broker_leads_a_new_epoch(protocol: str, epoch: int) -> None:
    """
    Source:  KIP-101, returning leaders: "if the controller receives a Broker Registration it will increment the
             Leader Epoch and propagate that value to the broker".

    The controller saw the leader disappear, but its decision never reached ZooKeeper; then the leader returns.
    """
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.benches[3].lose(STATE, happened=False, writes=True)
    cluster.expire(cluster.benches[1].session)
    assert (cluster.state().leader, cluster.state().leader_epoch) == (1, 0)
    cluster.benches[1].connect(cluster.new_session())
    cluster.settle()
    cluster.pass_ms(1_000)
    assert (cluster.state().leader, cluster.state().leader_epoch, cluster.state().isr) == (1, epoch, (1, 2))
    assert cluster.roles() == {1: (L, epoch), 2: (F, epoch)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_sole_member_of_the_isr_that_returns_leads_in_the_controllers_epoch(protocol: str) -> None:
    """Source: Kafka Replication Design V3, A 3.2: there was no leader meanwhile, so every protocol elects anew."""
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.crash(2)
    cluster.crash(1)
    cluster.start(1)
    assert (cluster.state().leader_epoch, cluster.roles()) == (3, {1: (L, 3)})


UNSEEING = [protocol for protocol, rules in PROTOCOLS.items() if not rules.fence_broker_epoch]


@pytest.mark.parametrize(
    ("protocol", "role", "epoch"), [(protocol, L if protocol == "hw" else N, 0) for protocol in UNSEEING]
)
def test_unseen_bounce_changes_nothing_and_the_controller_decides_nothing(
    protocol: str, role: Role, epoch: int
) -> None:
    """
    Source:  KAFKA-1120: the same id is registered at both readings. Under `hw` the leader resumes its epoch
             (V3 E.3.2); under KIP-101 it waits for a new one, which never comes.
    """
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    before = len(cluster.benches[3].observed("elected"))
    old = cluster.stop(1)
    cluster.start(1)
    cluster.expire(old)
    cluster.pass_ms(2_000)
    assert [True] == taken_over(cluster.benches[1])
    assert (cluster.state().leader_epoch, cluster.state().zk_version) == (0, 0)
    assert len(cluster.benches[3].observed("elected")) == before
    assert (cluster.replica(1).role, cluster.replica(1).leader_epoch) == (role, epoch)


@pytest.mark.parametrize("base", ["kip101", "kip320"])
def test_bounce_that_the_controller_sees_is_a_failure_then_a_start_up(base: str) -> None:
    """
    Source:  KIP-380: "it should be treated as a broker failure and then a broker startup"; KAFKA-1120. The leader
             that bounced leaves the ISR, the remaining replica leads, and it follows.
    """
    cluster = Cluster(replace(PROTOCOLS[base], fence_broker_epoch=True), brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    old = cluster.stop(1)
    cluster.start(1)
    assert [True] == taken_over(cluster.benches[1])
    assert (cluster.state().leader, cluster.state().leader_epoch) == (2, 1)
    assert cluster.roles() == {1: (F, 1), 2: (L, 1)}
    cluster.expire(old)
    cluster.pass_ms(1_000)
    assert (cluster.state().leader_epoch, cluster.state().isr) == (1, (2, 1))


@pytest.mark.parametrize(("sees", "epoch", "role"), [(False, 1, N), (True, 3, L)], ids=["kip320", "kip380"])
def test_bounce_of_the_only_replica_is_seen_and_it_leads_again(sees: bool, epoch: int, role: Role) -> None:
    """
    Source:  KAFKA-1120, KIP-380. The replica waits for a new epoch. If the bounce is seen, the partition has no
             leader in one reading and the replica leads again in the next; if not, that epoch never comes.
    """
    cluster = Cluster("kip380" if sees else "kip320", brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.crash(2)
    old = cluster.stop(1)
    cluster.start(1)
    cluster.expire(old)
    cluster.pass_ms(5_000)
    assert (cluster.state().leader_epoch, cluster.replica(1).role) == (epoch, role)
    assert [{"topic": "t", "partition": 0, "epoch": 1}] == cluster.benches[1].observed("awaiting")


def test_controller_that_was_faster_than_the_start_up_reading_is_not_awaited_for_ever() -> None:
    """The new epoch was written between the registration and the start-up reading: no newer one will come."""
    zk = occupied()
    zk.put_state(1, 3, (1, 2))
    bench = Bench("kip101", zk=zk)
    bench.hold(STATE)
    bench.start(session=7)
    version = zk.put_state(1, 4, (1, 2))
    bench.release()
    assert (bench.replica.role, bench.replica.leader_epoch, bench.replica.zk_version) == (L, 4, version)
    assert [False] == [seen["resumed"] for seen in bench.observed("leader")]


# --- scenario 3 --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("protocol", "epoch", "logs_equal"), [("hw", 0, False), *((protocol, 1, True) for protocol in LATER)]
)
def test_old_leader_that_returns_first_leads_in_a_new_epoch_and_the_logs_agree(
    protocol: str, epoch: int, logs_equal: bool
) -> None:
    """
    Source:  KIP-101, returning leaders: both lose power; the old leader, also controller, returns first without m2
             and accepts m3; the follower has m2. Under the old protocol epoch 0 is led twice: the logs diverge.
    """
    cluster = Cluster(protocol, brokers=(1, 2), high_watermark_checkpoint_ms=100)
    cluster.create(replicas=(1, 2))
    cluster.produce(1)
    cluster.produce(1)
    cluster.pass_ms(1_000)
    session, _ = cluster.stop(1), cluster.stop(2)
    cluster.lose_power(1, kept=1)
    cluster.expire(session)
    cluster.start(1)
    assert (cluster.state().leader, cluster.state().leader_epoch, cluster.state().isr) == (1, epoch, (1, 2))
    cluster.produce(1, 1, acks=1, crc=33)
    cluster.start(2)
    cluster.pass_ms(2_000)
    logs = [[(b.base_offset, b.crc) for b in cluster.replica(id).log.read(0, 9, 999)] for id in (1, 2)]
    assert logs[0] == [(0, 7), (1, 33)]
    assert logs_equal == (logs[0] == logs[1])
