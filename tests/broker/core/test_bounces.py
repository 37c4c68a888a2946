"""Broker epochs (KIP-380): commands for an older registration are refused, and a replaced registration is seen."""

from __future__ import annotations

import pytest

from targets.broker.core.events import Hungup
from targets.broker.core.messages import (
    ErrorCode,
    LeaderAndIsr,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplica,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicPartition,
)
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Role
from targets.broker.core.zookeeper import BROKER_IDS, broker_path, leader_and_isr_path
from tests.broker.core.asks import occupied
from tests.broker.core.bench import TP, Bench, answers
from tests.broker.core.cluster import Cluster

SEEING = tuple(name for name, rules in PROTOCOLS.items() if rules.fence_broker_epoch)
L, F, N = Role.LEADER, Role.FOLLOWER, Role.NONE


def command(broker_epoch: int, *, leader: int = 1, epoch: int = 5) -> LeaderAndIsrRequest:
    state = LeaderAndIsr(tp=TP, leader=leader, leader_epoch=epoch, isr=(1, 2), zk_version=0, replicas=(1, 2))
    return LeaderAndIsrRequest(
        controller_id=9,
        controller_epoch=1,
        ack_timeout_ms=1,
        is_init=False,
        partitions=(state,),
        broker_epoch=broker_epoch,
    )


def stop(broker_epoch: int) -> StopReplicaRequest:
    return StopReplicaRequest(
        controller_id=9,
        controller_epoch=1,
        ack_timeout_ms=1,
        partitions=(StopReplica(tp=TP),),
        broker_epoch=broker_epoch,
    )


def errors(bench: Bench, request: LeaderAndIsrRequest | StopReplicaRequest) -> list[ErrorCode]:
    found = answers(bench.request(request))
    return [answer.error for answer in found if isinstance(answer, LeaderAndIsrResponse | StopReplicaResponse)]


def epochs_of(bench: Bench) -> dict[TopicPartition, int]:
    return {tp: replica.leader_epoch for tp, replica in bench.broker.state.replicas.items()}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_command_for_an_older_registration_is_refused_whole_by_rule(protocol: str) -> None:
    """Source: KIP-380: STALE_BROKER_EPOCH, and -1 stands for any."""
    bench = Bench(protocol, zk=occupied())
    bench.start(session=7)
    own = bench.zk.nodes[broker_path(1)].czxid
    assert own == bench.broker.state.registration
    refused = [ErrorCode.STALE_BROKER_EPOCH if protocol in SEEING else ErrorCode.NONE]
    assert refused == errors(bench, command(own - 1))
    assert ({} if protocol in SEEING else {TP: 5}) == epochs_of(bench)
    for number, epoch in ((own, 6), (-1, 8)):
        assert errors(bench, command(number, epoch=epoch)) == [ErrorCode.NONE]
        assert bench.replica.leader_epoch == epoch
    assert refused == errors(bench, stop(own - 1))
    assert (TP in bench.broker.state.replicas) == (protocol in SEEING)


@pytest.mark.parametrize("protocol", SEEING)
def test_registration_in_a_new_session_has_a_new_number(protocol: str) -> None:
    bench = Bench(protocol, zk=occupied())
    bench.start(session=7)
    first = bench.broker.state.registration
    bench.zk.close_session(7)
    bench.connect(0)
    assert bench.broker.state.registration == 0
    bench.connect(8)
    assert bench.broker.state.registration == bench.zk.nodes[broker_path(1)].czxid > first


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_controller_names_the_registration_that_it_saw_where_brokers_heed_it(protocol: str) -> None:
    """Source: KIP-380: LeaderAndIsr and StopReplica carry the broker epoch."""
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.delete("t")
    sent = [
        (send.to, send.request.broker_epoch)
        for send in cluster.benches[3].sent()
        if isinstance(send.request, LeaderAndIsrRequest | StopReplicaRequest)
    ]
    numbers = {broker: cluster.zk.nodes[broker_path(broker)].czxid for broker in (1, 2, 3)}
    assert len(sent) >= 4
    assert sent == [(to, numbers[to] if protocol in SEEING else -1) for to, _ in sent]


@pytest.mark.parametrize("protocol", SEEING)
def test_command_on_its_way_to_an_older_life_does_not_reach_the_newer(protocol: str) -> None:
    """
    Source:  KAFKA-1120, KAFKA-7235. 1 leads, and a command to it is held while it bounces; the controller sees
             the bounce, and 2 leads. The old command would make 1 lead again without the records that it lost.
    """
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    number = cluster.zk.nodes[broker_path(1)].czxid
    old = cluster.stop(1)
    cluster.start(1)
    cluster.expire(old)
    assert (cluster.state().leader, cluster.roles()) == (2, {1: (F, 1), 2: (L, 1)})
    assert errors(cluster.benches[1], command(number, epoch=9)) == [ErrorCode.STALE_BROKER_EPOCH]
    assert cluster.roles()[1] == (F, 1)


@pytest.mark.parametrize("protocol", SEEING)
def test_follower_that_bounced_leaves_the_isr_and_comes_back_when_it_has_caught_up(protocol: str) -> None:
    """Source: KIP-380: a failure, then a start-up: the follower may have lost records that it had acknowledged."""
    cluster = Cluster(protocol, brokers=(3, 1, 2), high_watermark_checkpoint_ms=100)
    cluster.create(replicas=(1, 2))
    cluster.produce(1, crc=11)
    cluster.pass_ms(1_000)
    old = cluster.stop(2)
    cluster.lose_power(2, kept=0)
    cluster.start(2)
    cluster.expire(old)
    told = [value["isr"] for value in cluster.benches[3].observed("elected")]
    assert told == [[1, 2], [1]]
    cluster.pass_ms(2_000)
    assert (cluster.state().isr, cluster.replica(2).log.end_offset) == ((1, 2), 1)


@pytest.mark.parametrize("protocol", SEEING)
def test_bounce_that_is_seen_twice_is_decided_once(protocol: str) -> None:
    """
    The next reading finds the same registration as the last one: no broker came or went.

    Source: KIP-380; KAFKA-1120.
    """
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.expire(cluster.stop(1))
    cluster.start(1)
    version = cluster.state().zk_version
    for _ in range(3):
        cluster.benches[3].fire(BROKER_IDS)
        cluster.settle()
    assert version == cluster.state().zk_version


@pytest.mark.parametrize("protocol", SEEING)
@pytest.mark.parametrize("happened", [True, False])
def test_bounce_is_decided_though_the_first_decision_lost_its_connection(protocol: str, happened: bool) -> None:
    """
    Source:  KIP-380, KAFKA-1120. The controller sees a bounce once: if its write failed and was not repeated, 2
             would stay in the ISR without the records that it lost, and be elected.
    """
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.produce(1, crc=11)
    old = cluster.stop(2)
    cluster.lose_power(2, kept=0)
    cluster.benches[3].lose(leader_and_isr_path(TP), happened=happened, writes=True)
    cluster.start(2)
    cluster.expire(old)
    cluster.pass_ms(2_000)
    assert [[1, 2], [1]] == [value["isr"] for value in cluster.benches[3].observed("elected")]
    assert ((1, 2), 1) == (cluster.state().isr, cluster.replica(2).log.end_offset)


@pytest.mark.parametrize(("newer", "told"), [(0, [[1, 2], [1]]), (1, [[1, 2]])])
def test_decision_of_a_later_controller_that_is_alike_is_not_taken_for_ones_own(
    newer: int, told: list[list[int]]
) -> None:
    """Its write was lost, and so was its office, of which it has not heard: what it finds, another one wrote."""
    cluster = Cluster("kip380", brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    before = cluster.state()
    cluster.benches[3].lose(leader_and_isr_path(TP), happened=False, writes=True)
    cluster.crash(2)
    epoch = before.controller_epoch + newer
    cluster.zk.put_state(1, before.leader_epoch + 1, (1,), controller_epoch=epoch, topic_id=before.topic_id)
    if newer:
        cluster.zk.seize(epoch)
    cluster.pass_ms(2_000)
    assert told == [value["isr"] for value in cluster.benches[3].observed("elected")]


@pytest.mark.parametrize("protocol", SEEING)
def test_bounce_is_decided_though_somebody_else_wrote_first(protocol: str) -> None:
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    old = cluster.stop(2)
    cluster.benches[3].hold(leader_and_isr_path(TP), writes=True)
    cluster.start(2)
    cluster.expire(old)
    cluster.zk.put_state(1, 0, (1, 2))
    cluster.benches[3].release()
    cluster.settle()
    cluster.pass_ms(2_000)
    assert [[1, 2], [1]] == [value["isr"] for value in cluster.benches[3].observed("elected")]


@pytest.mark.parametrize("protocol", SEEING)
def test_bounce_is_seen_though_a_new_controllers_first_decision_was_not_written(protocol: str) -> None:
    """
    Source:  KIP-380; KafkaController keeps the epochs of the brokers that it has read, whatever its writes do.

    To a new controller every broker has just returned. It decides that again if the leader wrote first; if it
    forgot the registrations too, 1 would lead on without the record that it lost.
    """
    cluster = Cluster(protocol, brokers=(3, 4, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.produce(1, crc=11)
    cluster.benches[4].hold(leader_and_isr_path(TP), writes=True)
    cluster.crash(3)
    assert [4] == cluster.in_office
    cluster.zk.put_state(1, 0, (1, 2))
    cluster.benches[4].release()
    old = cluster.stop(1)
    cluster.lose_power(1, kept=0)
    cluster.start(1)
    cluster.expire(old)
    cluster.pass_ms(2_000)
    assert [[2]] == [value["isr"] for value in cluster.benches[4].observed("elected")]
    assert {1: (F, 1), 2: (L, 1)} == cluster.roles()
    assert [1, 1] == [cluster.replica(broker).log.end_offset for broker in (1, 2)]


@pytest.mark.parametrize("protocol", SEEING)
def test_bounce_is_seen_though_a_decision_about_the_return_before_it_was_not_written(protocol: str) -> None:
    """Source: KIP-380. 2 returned and is in the ISR of t again; only u, which it alone holds, is undecided."""
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.create("u", replicas=(2,))
    cluster.produce(1, crc=11)
    cluster.crash(2)
    cluster.benches[3].lose(leader_and_isr_path(TopicPartition("u", 0)), happened=False, writes=True)
    cluster.start(2)
    assert (1, 2) == cluster.state().isr
    old = cluster.stop(2)
    cluster.lose_power(2, kept=0)
    cluster.start(2)
    cluster.expire(old)
    cluster.pass_ms(2_000)
    told = [value["isr"] for value in cluster.benches[3].observed("elected") if value["topic"] == "t"]
    assert [[1, 2], [1], [1]] == told
    assert (2, L) == (cluster.state(TopicPartition("u", 0)).leader, cluster.roles(TopicPartition("u", 0))[2][0])


@pytest.mark.parametrize("protocol", SEEING)
def test_return_is_decided_again_about_the_partition_whose_write_failed_and_no_other(protocol: str) -> None:
    """New epochs of all others could make one more write fail, and so on without end."""
    cluster = Cluster(protocol, brokers=(3, 1))
    for topic in ("t", "u"):
        cluster.create(topic, replicas=(1,))
    cluster.crash(1)
    cluster.benches[3].lose(leader_and_isr_path(TopicPartition("u", 0)), happened=False, writes=True)
    cluster.start(1)
    cluster.pass_ms(2_000)
    told = [(value["topic"], value["leader"]) for value in cluster.benches[3].observed("elected")]
    assert [("t", 1), ("u", 1)] * 2 == [each for each in told if each[1] == 1]  # made, and after the return


@pytest.mark.parametrize("protocol", SEEING)
def test_leader_that_went_unwritten_and_came_back_has_failed(protocol: str) -> None:
    """As in test_membership's test of registrations that appear, but here the disappearance is not forgotten."""
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.benches[3].lose(leader_and_isr_path(TP), happened=False, writes=True)
    cluster.expire(cluster.benches[1].session)
    cluster.benches[1].connect(cluster.new_session())
    cluster.settle()
    cluster.pass_ms(1_000)
    assert (2, 1) == (cluster.state().leader, cluster.state().leader_epoch)
    assert {1: (F, 1), 2: (L, 1)} == cluster.roles()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_leader_that_was_read_to_be_gone_has_failed_though_the_write_about_that_was_refused(protocol: str) -> None:
    """
    Source:  Kafka, PartitionStateMachine.electLeaderForPartition: what is refused is elected again with the live
             brokers that the controller knows, and 1 is none until its registration is read. Found by seed 40413.
    """
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.produce(1, crc=11)
    cluster.benches[3].hold(leader_and_isr_path(TP), writes=True)
    cluster.expire(cluster.stop(1))
    before = cluster.state()
    cluster.zk.put_state(1, before.leader_epoch, (1, 2), topic_id=before.topic_id)
    cluster.lose_power(1, kept=0)
    cluster.start(1)
    cluster.benches[3].release()
    cluster.settle()
    cluster.pass_ms(2_000)
    assert [[1, 2], [2]] == [value["isr"] for value in cluster.benches[3].observed("elected")][:2]
    assert (F, L) == tuple(cluster.roles()[broker][0] for broker in (1, 2))
    assert [1, 1] == [cluster.replica(broker).log.end_offset for broker in (1, 2)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_command_waits_until_the_process_has_registered(protocol: str) -> None:
    """
    Source:  KafkaServer, which registers before it processes requests. A command for the previous process would
             make this one lead without the records that it lost, before it can compare registrations.
    """
    bench = Bench(protocol, zk=occupied())
    bench.hold(broker_path(1))
    bench.start(session=7)
    early = bench.request(command(1))
    assert answers(early) == []
    named = [answer.error for answer in answers(bench.release()) if isinstance(answer, LeaderAndIsrResponse)]
    assert [ErrorCode.STALE_BROKER_EPOCH if protocol in SEEING else ErrorCode.NONE] == named
    assert ({} if protocol in SEEING else {TP: 5}) == epochs_of(bench)


@pytest.mark.parametrize("protocol", SEEING)
def test_early_command_for_this_life_is_acted_on_and_one_whose_sender_hung_up_is_not(protocol: str) -> None:
    bench = Bench(protocol, zk=occupied())
    bench.hold(broker_path(1))
    bench.start(session=7)
    own = bench.zk.zxid + 1
    bench.request(command(own, epoch=5))
    bench.request(command(own, epoch=6))
    bench.step(Hungup(connection=2))
    released = answers(bench.release())
    assert [ErrorCode.NONE] == [answer.error for answer in released if isinstance(answer, LeaderAndIsrResponse)]
    assert (L, 5) == (bench.replica.role, bench.replica.leader_epoch)


@pytest.mark.parametrize("protocol", SEEING)
def test_epoch_that_was_decided_for_the_life_before_is_not_led_though_it_was_written_since(protocol: str) -> None:
    """
    A leader epoch written for the previous registration is not led before a command names the current one.

    The controller had read the old registration, and wrote after the new one was made. Without the wait, the
    broker would lead without the records that it lost.
    """
    zk = occupied()
    zk.put_state(2, 3, (1, 2))
    bench = Bench(protocol, zk=zk)
    bench.hold(leader_and_isr_path(TP))
    bench.start(session=7)
    zk.put_state(1, 4, (1, 2))
    bench.release()
    own = bench.broker.state.registration
    assert (N, [4]) == (bench.replica.role, [seen["epoch"] for seen in bench.observed("awaiting")])
    assert [ErrorCode.STALE_BROKER_EPOCH] == errors(bench, command(own - 1, epoch=4))
    assert N is bench.replica.role
    assert [ErrorCode.NONE] == errors(bench, command(own, epoch=4))
    assert (L, 4) == (bench.replica.role, bench.replica.leader_epoch)


def test_broker_that_was_told_to_lead_meanwhile_awaits_no_epoch_that_its_reading_names() -> None:
    """A command to this life came before the reading's answer; the next one comes as any other does."""
    zk = occupied()
    zk.put_state(1, 4, (1, 2))
    bench = Bench("kip380", zk=zk)
    bench.hold(leader_and_isr_path(TP))
    bench.start(session=7)
    zk.put_state(1, 5, (1, 2))
    own = bench.broker.state.registration
    assert [ErrorCode.NONE] == errors(bench, command(own, epoch=4))
    bench.release()
    assert [] == bench.observed("awaiting")
    assert (L, 4) == (bench.replica.role, bench.replica.leader_epoch)
    assert [ErrorCode.NONE] == errors(bench, command(own, epoch=5))
    assert (L, 5) == (bench.replica.role, bench.replica.leader_epoch)
