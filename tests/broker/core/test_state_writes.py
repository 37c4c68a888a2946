"""
The controller's decisions on their way to ZooKeeper: many in one multi, and what becomes of one that is refused.

Source:  Kafka Replication Design V3, A: "Ideally we want to use ZK multi to do the reads and writes".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from targets.broker.core.assignments import Assignment, encode_assignment, encode_topic
from targets.broker.core.events import ZkAsk
from targets.broker.core.made import made_path
from targets.broker.core.messages import TopicPartition
from targets.broker.core.state import Together
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
    CONTROLLER_EPOCH,
    PartitionState,
    ZkGet,
    ZkMulti,
    ZkSet,
    broker_path,
    decode_state,
    encode_registration,
    encode_state,
    leader_and_isr_path,
    partition_path,
    topic_id_path,
    topic_path,
)
from targets.simulator.zookeeper.ops import Error
from tests.broker.core.bench import Bench, registration

MANY = 40


def controller_of_many(rules: str = "kip380", partitions: int = MANY, **together: Any) -> Bench:
    """Return broker 1 as controller; 2 leads every partition of topic t, which is on 2 and 1."""
    bench = Bench(rules, together=Together(**together))
    bench.zk.put(broker_path(2), encode_registration(registration(2)), owner=102)
    bench.zk.put(topic_path("t"), encode_assignment(dict.fromkeys(range(partitions), (2, 1))))
    bench.start(session=5)
    assert [(2, 0)] * partitions == leaders(bench, partitions)
    return bench


def leaders(bench: Bench, partitions: int = MANY) -> list[tuple[int, int]]:
    """Return leader and epoch of each partition, as ZooKeeper has them."""
    found = []
    for number in range(partitions):
        state = decode_state(bench.zk.nodes[leader_and_isr_path(TopicPartition("t", number))])
        found.append((state.leader, state.leader_epoch))
    return found


def writes(bench: Bench, since: int = 0) -> list[ZkMulti]:
    """Return the multis that write states."""
    asks = [effect for effect in bench.effects[since:] if isinstance(effect, ZkAsk)]
    multis = [op for ask in asks for op in ask.ops if isinstance(op, ZkMulti)]
    return [multi for multi in multis if any(part.path.endswith("leaderAndISR") for part in multi.ops)]


def lose_leader(bench: Bench) -> list[ZkMulti]:
    """End the session of broker 2, and return what the controller writes for it."""
    since = len(bench.effects)
    bench.zk.close_session(102)
    bench.fire(BROKER_IDS)
    return writes(bench, since)


def test_failover_of_many_partitions_is_one_write_with_one_check_of_the_controllers_epoch() -> None:
    """Source: Kafka Replication Design V3, discussion 1."""
    (multi,) = lose_leader(bench := controller_of_many())
    assert MANY == sum(isinstance(part, ZkSet) for part in multi.ops)
    assert [0] == [at for at, part in enumerate(multi.ops) if part.path == CONTROLLER_EPOCH]
    assert [(1, 1)] * MANY == leaders(bench)


@pytest.mark.parametrize(
    ("together", "multis"),
    [({"writes_together_max": 1}, MANY), ({"writes_together_max": 7}, 6), ({"writes_max": 10}, 4)],
    ids=["one each", "seven together", "ten in flight"],
)
def test_multi_holds_no_more_than_it_may(together: dict[str, int], multis: int) -> None:
    bench = controller_of_many(**together)
    found = lose_leader(bench)
    assert multis == len(found)
    assert [(1, 1)] * MANY == leaders(bench)


def test_multi_is_no_larger_than_zookeeper_takes_in_one_request() -> None:
    most = 1_500
    found = lose_leader(bench := controller_of_many(write_bytes_max=most))
    sizes = [sum(len(part.path) + len(getattr(part, "data", b"")) for part in multi.ops) for multi in found]
    assert 1 < len(sizes) < MANY and most / 3 < max(sizes) < most
    assert [(1, 1)] * MANY == leaders(bench)


def test_one_command_tells_each_broker_of_all_that_a_failover_decided() -> None:
    """V3, A.4: "For efficiency, we can put multiple commands in one RPC request"."""
    bench = controller_of_many()
    since = len(bench.effects)
    bench.answer(None, to=bench.sent()[0])
    lose_leader(bench)
    bench.pass_ms(500)
    told = [send.request for send in bench.sent(bench.effects[since:]) if send.to == 1]
    assert [MANY] == [len(request.partitions) for request in told]  # type: ignore[union-attr]


def test_of_a_refused_multi_all_is_written_but_what_was_refused_and_that_is_read_again() -> None:
    """A new controller has just read all states, and one leader changed its ISR since: only that is refused."""
    bench = Bench("kip380")
    has = Assignment(replicas=dict.fromkeys(range(MANY), (2, 1)), made="7-1")
    bench.zk.put(topic_path("t"), encode_topic(has))
    bench.zk.put(made_path("t", has.made))
    topic_id = bench.zk.nodes[topic_path("t")].czxid
    old = PartitionState(leader=2, leader_epoch=0, isr=(2, 1), controller_epoch=0, zk_version=0, topic_id=topic_id)
    for number in range(MANY):
        bench.zk.put(topic_id_path(TopicPartition("t", number), topic_id))
        bench.zk.put(leader_and_isr_path(TopicPartition("t", number)), encode_state(old))
    path = leader_and_isr_path(TopicPartition("t", 17))
    bench.hold(path, writes=True)
    bench.start(session=5)
    bench.zk.put(path, encode_state(old))
    bench.release()
    assert [(1, 1)] * 17 + [(2, 0)] + [(1, 1)] * (MANY - 18) == leaders(bench)
    bench.pass_ms(1)
    assert [(1, 1)] * MANY == leaders(bench)
    assert 0 == bench.broker.state.controller.writing


def test_refused_multi_of_states_that_were_not_read_for_it_is_decided_anew_from_what_is_read() -> None:
    """Each leader may have changed its ISR since, as after a broker's restart: halving would write each singly."""
    bench = controller_of_many()
    for number in range(MANY):
        path = leader_and_isr_path(TopicPartition("t", number))
        bench.zk.put(path, encode_state(decode_state(bench.zk.nodes[path])))
    assert 2 == len(lose_leader(bench))
    assert [(1, 1)] * MANY == leaders(bench)


def test_reading_takes_only_the_states_that_may_have_changed() -> None:
    """Source: Kafka Replication Design V3, A 3.1: "the current ISR of P" is known, if it was read."""
    bench = controller_of_many()
    since = len(bench.effects)
    bench.zk.put(topic_path("u"), encode_assignment({0: (1,)}))
    bench.fire(BROKER_TOPICS)
    lose_leader(bench)
    assert {leader_and_isr_path(TopicPartition("u", 0))} == {*states_read(bench, since)}


def test_state_of_a_partition_whose_isr_a_dead_broker_may_have_joined_is_read() -> None:
    """Broker 2 was not in the ISR when the state was read last; the leader has let it in since."""
    bench = controller_of_many(partitions=2)
    bench.zk.close_session(102)
    bench.fire(BROKER_IDS)
    assert [(1, 1)] * 2 == leaders(bench, 2)
    bench.zk.put(broker_path(2), encode_registration(registration(2)), owner=202)
    bench.fire(BROKER_IDS)
    path = leader_and_isr_path(TopicPartition("t", 1))
    joined = replace(decode_state(bench.zk.nodes[path]), isr=(1, 2))
    bench.zk.put(path, encode_state(joined))
    bench.zk.close_session(202)
    bench.fire(BROKER_IDS)
    assert (1,) == decode_state(bench.zk.nodes[path]).isr


def states_read(bench: Bench, since: int) -> list[str]:
    """Return the paths of the states that were read."""
    asks = [effect for effect in bench.effects[since:] if isinstance(effect, ZkAsk)]
    ops = [op for ask in asks for op in ask.ops]
    return [op.path for op in ops if isinstance(op, ZkGet) and op.path.endswith("leaderAndISR")]


def test_multi_whose_answer_was_lost_is_announced_once_it_is_found_written() -> None:
    bench = controller_of_many()
    bench.lose(leader_and_isr_path(TopicPartition("t", 0)), happened=True, writes=True)
    since = len(bench.effects)
    lose_leader(bench)
    assert [] == bench.observed("elected", bench.effects[since:])
    bench.pass_ms(500)
    told = bench.observed("elected", bench.effects[since:])
    assert list(range(MANY)) == sorted(seen["partition"] for seen in told)
    assert [(1, 1)] * MANY == leaders(bench)


@pytest.mark.parametrize("rules", ["hw", "kip380"])
@pytest.mark.parametrize("left", [(), ("id-{id}",), ("something",)], ids=["nothing", "its id", "something else"])
def test_partition_path_without_a_state_gets_one(rules: str, left: tuple[str, ...]) -> None:
    """A controller looped each millisecond for ever, as it could not create the path that was there."""
    bench = Bench(rules)
    bench.start(session=5)
    bench.zk.put(topic_path("t"), encode_assignment({0: (1,), 1: (1,)}))
    topic_id = bench.zk.nodes[topic_path("t")].czxid
    bench.zk.put(partition_path(TopicPartition("t", 0)))
    for name in left:
        bench.zk.put(f"{partition_path(TopicPartition('t', 0))}/{name.format(id=topic_id)}")
    bench.fire(BROKER_TOPICS)
    bench.pass_ms(1)
    assert [(1, 0), (1, 0)] == leaders(bench, 2)
    assert not bench.broker.state.controller.refused


def test_first_state_that_is_refused_again_and_again_is_tried_after_a_back_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench("hw")
    bench.start(session=5)
    bench.zk.put(topic_path("t"), encode_assignment({0: (1,)}))
    monkeypatch.setattr(bench.zk, "write", lambda _parts, _session: Error.REFUSED)
    bench.fire(BROKER_TOPICS)
    bench.pass_ms(1)
    since = len(bench.effects)
    bench.pass_ms(400)
    assert [] == writes(bench, since)
    monkeypatch.undo()
    bench.pass_ms(100)
    assert [(1, 0)] == leaders(bench, 1)


def test_deposed_controller_writes_none_of_many() -> None:
    """KAFKA-6082: every write checks /controller_epoch."""
    bench = controller_of_many()
    bench.zk.seize(9)
    lose_leader(bench)
    assert [(2, 0)] * MANY == leaders(bench)


def test_state_of_an_older_topic_is_written_over() -> None:
    bench = Bench("kip380")
    bench.start(session=5)
    bench.zk.put(topic_path("t"), encode_assignment({0: (1,)}))
    old = PartitionState(leader=1, leader_epoch=7, isr=(1,), controller_epoch=1, zk_version=0, topic_id=1)
    bench.zk.put(partition_path(TopicPartition("t", 0)))
    bench.zk.put(leader_and_isr_path(TopicPartition("t", 0)), encode_state(old))
    bench.fire(BROKER_TOPICS)
    assert [(1, 0)] == leaders(bench, 1)
