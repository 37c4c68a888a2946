"""
A broker's failure whose decision was refused is decided again, about that partition alone, and before its return.

Broker 1 is the controller and 3 leads; 2 leaves, and is back before all of what follows is written.
Source:  KIP-380; Kafka, ReplicaStateMachine.removeReplicasFromIsr, which repeats for what was refused alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import pytest

from targets.broker.core.assignments import encode_assignment
from targets.broker.core.messages import NO_TOPIC_ID, LeaderAndIsrRequest, TopicPartition
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Together
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
    ZkDone,
    ZkMulti,
    ZkOp,
    ZkResult,
    broker_path,
    encode_registration,
    encode_state,
    leader_and_isr_path,
    partition_path,
    topic_id_path,
    topic_path,
)
from tests.broker.core.bench import Bench, MemoryZk, registration

T0, T1, U0, V0 = (TopicPartition(*each) for each in (("t", 0), ("t", 1), ("u", 0), ("v", 0)))
BACK: Final = 202  # the session in which 2 is back


def controller(protocol: str, zk: MemoryZk | None = None) -> Bench:
    """Return the controller of t, two partitions on 3 and 2, and of u on 2 alone."""
    bench = Bench(protocol, zk=zk, together=Together(writes_together_max=1))
    for broker in (2, 3):
        register(bench, broker, session=100 + broker)
    bench.zk.put(topic_path("t"), encode_assignment({0: (3, 2), 1: (3, 2)}))
    bench.zk.put(topic_path("u"), encode_assignment({0: (2,)}))
    bench.start(session=5)
    for send in bench.sent():
        bench.answer(None, to=send)
    return bench


def register(bench: Bench, broker: int, session: int) -> None:
    bench.zk.put(broker_path(broker), encode_registration(registration(broker)), owner=session)


def let_in(zk: MemoryZk, tps: Iterable[TopicPartition], *, with_id: bool = True) -> None:
    """Have the leader 3 write an ISR in which 2 is."""
    for tp in tps:
        found = zk.state(tp)
        topic_id = found.topic_id if with_id else NO_TOPIC_ID
        zk.put(leader_and_isr_path(tp), encode_state(replace(found, isr=(3, 2), topic_id=topic_id)))


def leave(bench: Bench) -> None:
    """Have 2 leave, register, and be in each ISR again, while what follows for the first partition is held."""
    bench.hold(leader_and_isr_path(T0), writes=True)
    bench.zk.close_session(102)
    bench.fire(BROKER_IDS)
    register(bench, 2, session=BACK)
    let_in(bench.zk, (T0, T1))


def elected(bench: Bench, since: int) -> list[tuple[str, int, int, list[int]]]:
    """Return what was decided: topic, partition, leader, ISR."""
    values = bench.observed("elected", bench.effects[since:])
    return [(value["topic"], value["partition"], value["leader"], list(value["isr"])) for value in values]


def to_2(bench: Bench, since: int) -> list[LeaderAndIsrRequest]:
    """Return what broker 2 was commanded."""
    sent = [send.request for send in bench.sent(bench.effects[since:]) if send.to == 2]
    return [request for request in sent if isinstance(request, LeaderAndIsrRequest)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_failure_is_decided_again_about_the_partition_whose_write_was_refused_and_no_other(protocol: str) -> None:
    """In the other partition 2 is in the ISR again, and rightly so."""
    bench = controller(protocol)
    since = len(bench.effects)
    leave(bench)
    assert [("t", 1, 3, [3]), ("u", 0, -1, [2])] == elected(bench, since)
    since = len(bench.effects)
    bench.release()
    assert [("t", 0, 3, [3])] == elected(bench, since)
    bench.pass_ms(1)
    assert [("t", 0, 3, [3]), ("u", 0, 2, [2])] == elected(bench, since)
    assert ((3,), (3, 2)) == (bench.zk.state(T0).isr, bench.zk.state(T1).isr)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_broker_has_returned_once_its_failure_is_decided_about_every_partition(protocol: str) -> None:
    """Until then it neither leads, where it is the only one left, nor is it told of anything."""
    bench = controller(protocol)
    leave(bench)
    since = len(bench.effects)
    bench.release(then_hold=True)
    bench.pass_ms(1)
    assert ([], []) == (elected(bench, since), to_2(bench, since))
    bench.release()
    assert [("t", 0, 3, [3]), ("u", 0, 2, [2])] == elected(bench, since)
    told = to_2(bench, since)
    assert {(T0, (3,)), (T1, (3, 2))} <= {(each.tp, each.isr) for each in told[0].partitions}


class Eager(MemoryZk):
    """A ZooKeeper in which the leader 3, of an older release, lets 2 in at once, and leaves the topic's id out."""

    eager = False

    def ask(self, op: ZkOp, session: int) -> ZkResult:
        result = super().ask(op, session)
        if self.eager and isinstance(op, ZkMulti) and result == ZkDone():
            let_in(self, [tp for tp in (T0, T1) if self.state(tp).isr == (3,)], with_id=False)
        return result


def test_leaders_that_leave_out_ids_do_not_keep_who_is_back_from_leading() -> None:
    """
    What each of them wrote without its topic's id refuses the next decision about it once.

    Seed 4346: after each refusal the failure of 2 was decided again about all, by which another one was refused.
    """
    bench = controller("kip380", zk := Eager())
    leave(bench)
    let_in(zk, [T1], with_id=False)
    zk.eager = True
    bench.release()
    for _ in range(9):
        bench.pass_ms(1)
    assert (2, (2,)) == (zk.state(U0).leader, zk.state(U0).isr)
    assert [(1, (3, 2))] * 2 == [(zk.state(tp).leader_epoch, zk.state(tp).isr) for tp in (T0, T1)]


def test_who_was_gone_when_a_first_state_was_refused_is_in_that_state_once_it_is_back() -> None:
    """Nothing was lost of what nobody has had; and what stands in the way of a first state may stay for long."""
    bench = controller("kip380")
    bench.hold(leader_and_isr_path(V0), writes=True)
    bench.zk.put(topic_path("v"), encode_assignment({0: (3, 2)}))
    bench.fire(BROKER_TOPICS)
    bench.zk.put(partition_path(V0))
    bench.zk.close_session(102)
    bench.fire(BROKER_IDS)
    bench.release(then_hold=True)
    bench.pass_ms(1)
    bench.zk.put(topic_id_path(V0, bench.zk.nodes[topic_path("v")].czxid))
    register(bench, 2, session=BACK)
    since = len(bench.effects)
    bench.release()
    bench.pass_ms(1)
    assert [("v", 0, 3, [3, 2])] == [each for each in elected(bench, since) if each[0] == "v"]
