"""Simulated clients: which broker they ask, what they record, and which outcomes stay unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness.model import OpType, PreconditionError
from harness.target.clients import Client
from targets.broker.core.messages import ProduceRequest, TopicPartition
from targets.broker.core.zookeeper import CONTROLLER, broker_path, decode_state, leader_and_isr_path
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.world import World
from targets.simulator.zookeeper import ops
from tests.simulator.worlds import TOPIC, TP, WAIT_S, Ops, boot, cluster, leads, state

ABOUT = {"topic": TOPIC, "partition": 0, "name": "m1", "acks": -1, "codec": "none"}


class Stage:
    """A cluster with replicas on A and B, its client, and its history."""

    def __init__(self, **settings: Any) -> None:
        self.ops = Ops()
        self.world: World = cluster(sink=self.ops, **settings)
        self.client = SimClient(self.world)

    def outcomes(self) -> list[tuple[str, str, Mapping[str, Any]]]:
        """Return (process, type, value) of every client op."""
        found = [op for op in self.ops.found if op[0].value == "client"]
        return [(process, type_.value, value) for _, process, type_, _, value in found]

    def last(self) -> tuple[OpType, Any]:
        """Return the type and the error (or offset) of the last client op."""
        _, _, type_, _, value = next(op for op in reversed(self.ops.found) if op[0].value == "client")
        return type_, value.get("error", value.get("offset"))


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_client_is_what_the_runner_needs(stage: Stage) -> None:
    client: Client = stage.client
    assert [0] == client.produce(TOPIC, 0, "m1", ["a"], acks=-1)


def test_record_is_told_before_and_after_with_its_offset(stage: Stage) -> None:
    stage.client.produce(TOPIC, 0, "m1", ["m1.0", "m1.1"], acks=-1)
    told = [{**ABOUT, "value": f"m1.{n}"} for n in range(2)]
    log = stage.world.nodes["A"].disk.replica_log(*TP)
    assert log is not None
    stored = [digest for batch in log.batches for _, digest, _ in batch.records]
    assert [
        ("client-1", "invoke", {**told[0], "digest": stored[0]}),
        ("client-1", "invoke", {**told[1], "digest": stored[1]}),
        ("client-1", "ok", {**told[0], "offset": 0}),
        ("client-1", "ok", {**told[1], "offset": 1}),
    ] == stage.outcomes()


def test_records_sent_singly_lie_in_batches_of_their_own(stage: Stage) -> None:
    assert [0, 1, 2] == stage.client.produce(TOPIC, 0, "m1", ["a", "b", "c"], acks=1, singly=True, codec="zstd")
    log = stage.world.nodes["A"].disk.replica_log(*TP)
    assert log is not None
    assert [(0, 0, "zstd"), (1, 1, "zstd"), (2, 2, "zstd")] == [(b.base, b.last, b.codec) for b in log.batches]
    assert ["invoke", "ok"] * 3 == [type_ for _, type_, _ in stage.outcomes()]


def test_acks_0_is_no_more_than_sent(stage: Stage) -> None:
    assert [] == stage.client.produce(TOPIC, 0, "m1", ["a"], acks=0)
    assert (OpType.OK, None) == stage.last()
    stage.world.run(0.1)
    assert 1 == stage.world.nodes["A"].disk.logs[TP].end_offset


@pytest.mark.parametrize(("acks", "type_"), [(1, OpType.FAIL), (-1, OpType.INFO)])
def test_refusal_by_who_does_not_lead_is_sure_unless_the_isr_was_waited_for(
    stage: Stage, acks: int, type_: OpType
) -> None:
    with pytest.raises(PreconditionError, match="0 of 1 records acknowledged; NOT_LEADER_OR_FOLLOWER"):
        stage.client.produce(TOPIC, 0, "m1", ["a"], acks=acks, via="B")
    assert (type_, "NOT_LEADER_OR_FOLLOWER") == stage.last()


def test_refusal_for_too_small_an_isr_is_sure() -> None:
    stage = Stage(settings={"min_isr": 3})
    with pytest.raises(PreconditionError, match="NOT_ENOUGH_REPLICAS"):
        stage.client.produce(TOPIC, 0, "m1", ["a"], acks=-1)
    assert OpType.FAIL is stage.last()[0]


def test_answer_that_is_lost_with_its_connection_leaves_the_record_open(stage: Stage) -> None:
    stage.world.links.cut("B", "A")
    sent = stage.client.begin_produce(TOPIC, 0, "m1", ["a"], acks=-1)
    stage.world.run(0.1)
    stage.world.nodes["A"].kill()
    assert stage.world.until(lambda: sent.done, WAIT_S)
    with pytest.raises(PreconditionError, match="connection lost"):
        sent.result()
    assert OpType.INFO is stage.last()[0]


def test_answer_that_does_not_come_in_time_leaves_the_record_open(stage: Stage) -> None:
    stage.world.nodes["A"].pause()
    with pytest.raises(PreconditionError, match="no answer"):
        stage.client.produce(TOPIC, 0, "m1", ["a"], acks=-1, timeout_s=1.0)
    assert OpType.INFO is stage.last()[0]


def test_broker_says_that_time_is_out_before_the_client_stops_listening(stage: Stage) -> None:
    stage.world.links.cut("B", "A")
    began = stage.world.clock.now_ns
    with pytest.raises(PreconditionError, match="REQUEST_TIMED_OUT"):
        stage.client.produce(TOPIC, 0, "m1", ["a"], acks=-1, timeout_s=1.0)
    assert (OpType.INFO, True) == (stage.last()[0], stage.world.clock.now_ns - began < 1e9)


def test_leader_that_refuses_connections_was_sent_nothing(stage: Stage) -> None:
    stage.world.nodes["A"].kill()
    with pytest.raises(PreconditionError, match="A: connection refused"):
        stage.client.produce(TOPIC, 0, "m1", ["a"], acks=-1)
    assert OpType.FAIL is stage.last()[0]


def test_client_waits_for_a_leader_and_gives_up_when_there_is_none(stage: Stage) -> None:
    for name in ("A", "B"):
        stage.world.nodes[name].kill()
        stage.world.zookeeper.expire(stage.world.zookeeper.session_of(broker_path(stage.world.ids[name])))
        stage.world.run(0.1)
    assert -1 == state(stage.world).leader
    with pytest.raises(PreconditionError, match="has no leader"):
        stage.client.produce(TOPIC, 0, "m1", ["a"], acks=-1, timeout_s=1.0)
    assert OpType.FAIL is stage.last()[0]
    sent = stage.client.begin_produce(TOPIC, 0, "m2", ["b"], acks=-1)
    boot(stage.world, "B")
    assert stage.world.until(lambda: sent.done, WAIT_S)
    assert [0] == sent.result()


def test_none_is_sent_after_one_that_was_not_acknowledged(stage: Stage) -> None:
    stage.world.nodes["A"].kill()
    with pytest.raises(PreconditionError, match="0 of 3"):
        stage.client.produce(TOPIC, 0, "m1", ["a", "b", "c"], acks=-1, singly=True)
    assert ["invoke", "fail"] == [type_ for _, type_, _ in stage.outcomes()]


def test_nothing_is_sent_twice_whatever_the_leader_says(stage: Stage) -> None:
    sends = []
    stage.world.watchers.append(
        lambda _name, event, _effects: (
            sends.append(1) if isinstance(getattr(event, "request", None), ProduceRequest) else None
        )
    )
    with pytest.raises(PreconditionError):
        stage.client.produce(TOPIC, 0, "m1", ["a"], acks=1, via="B")
    stage.world.run(1.0)
    assert 1 == len(sends)


def test_produce_under_way_has_no_result_yet(stage: Stage) -> None:
    sent = stage.client.begin_produce(TOPIC, 0, "m1", ["a"], acks=-1)
    with pytest.raises(PreconditionError, match="still in progress"):
        sent.result()


def test_read_gives_what_is_below_the_high_watermark_and_no_more(stage: Stage) -> None:
    stage.client.produce(TOPIC, 0, "m1", ["a", "b"], acks=-1)
    stage.world.links.cut("B", "A")
    stage.client.produce(TOPIC, 0, "m2", ["c"], acks=1)
    assert [(0, "a"), (1, "b")] == stage.client.read_all(TOPIC, 0)
    place = {"topic": TOPIC, "partition": 0}
    assert [
        ("client-3", "invoke", place),
        ("client-3", "ok", {**place, "records": [[0, "a"], [1, "b"]], "high_watermark": 2}),
    ] == stage.outcomes()[-2:]


def test_read_of_an_empty_log_ends(stage: Stage) -> None:
    assert [] == stage.client.read_all(TOPIC, 0)


def test_read_goes_on_with_the_next_leader(stage: Stage) -> None:
    stage.client.produce(TOPIC, 0, "m1", ["a"], acks=-1)
    stage.world.run(0.2)  # B receives the high watermark
    stage.world.nodes["A"].kill()
    read = stage.client.begin_read(TOPIC, 0)
    stage.world.run(0.2)
    assert not read.done
    stage.world.zookeeper.expire(stage.world.zookeeper.session_of(broker_path(1)))
    assert stage.world.until(lambda: read.done, WAIT_S)
    assert (True, [(0, "a")]) == (leads(stage.world, "B"), read.records)


def test_read_that_does_not_come_so_far_fails_and_says_how_far_it_came(stage: Stage) -> None:
    with pytest.raises(PreconditionError, match="NOT_LEADER_OR_FOLLOWER at 0; came to 0 of None"):
        stage.client.read_all(TOPIC, 0, via="B")
    assert OpType.FAIL is stage.last()[0]


def test_read_up_to_a_high_watermark_within_a_batch_fails_before_that_batch(stage: Stage) -> None:
    stage.client.produce(TOPIC, 0, "m1", ["a"], acks=-1)
    stage.world.links.cut("B", "A")
    stage.client.produce(TOPIC, 0, "m2", ["b", "c"], acks=1)
    leader = stage.world.nodes["A"].process
    assert leader is not None
    leader.broker.state.replicas[TP].high_watermark = 2
    with pytest.raises(PreconditionError, match="nothing at 1; came to 1 of 2"):
        stage.client.read_all(TOPIC, 0)
    assert {"position": 1, "high_watermark": 2}.items() <= stage.outcomes()[-1][2].items()


def test_topic_that_is_there_already_is_refused(stage: Stage) -> None:
    with pytest.raises(PreconditionError, match=r"create topic log on \[1\]: TOPIC_ALREADY_EXISTS"):
        stage.client.create_topic(TOPIC, [1])


def test_topic_of_several_partitions_gets_the_brokers_of_each(stage: Stage) -> None:
    stage.client.create_topic("orders", [1, 2], [2])
    nodes = stage.world.zookeeper.tree.nodes
    paths = [leader_and_isr_path(TopicPartition("orders", at)) for at in range(2)]
    assert stage.world.until(lambda: all(path in nodes for path in paths), WAIT_S)
    found = [decode_state(nodes[path]) for path in paths]
    assert [(1, {1, 2}), (2, {2})] == [(state.leader, set(state.isr)) for state in found]


def test_topic_waits_for_a_controller() -> None:
    world = cluster()
    world.links.hold("metadata-request", "*", "metadata", "request")
    world.zookeeper.tree.write((ops.Delete(path=CONTROLLER),), 0)
    client = SimClient(world)
    with pytest.raises(PreconditionError, match="has no leader"):
        client.create_topic("other", [1])
    world.links.release_all()
    client.create_topic("other", [1])


# --- settings of topics ----------------------------------------------------------------------------------------
FORMAT = "message.format.version"


def test_setting_is_changed_and_taken_up_by_every_node(stage: Stage) -> None:
    """Source: KIP-133."""
    stage.client.alter_topic(TOPIC, FORMAT, "0.10.2")
    told = {"topic": TOPIC, "setting": FORMAT, "to": "0.10.2"}
    assert [("client-1", "invoke", told), ("client-1", "ok", told)] == stage.outcomes()

    def taken() -> bool:
        found = [(process, value) for _, process, _, f, value in map(_named, stage.ops.found) if f == "format"]
        return sorted(process for process, value in found if value["to"] == 1) == ["A", "B"]

    assert stage.world.until(taken, WAIT_S)
    stage.client.produce(TOPIC, 0, "m1", ["a", "b"], acks=-1)
    log = stage.world.nodes["B"].disk.replica_log(*TP)
    assert log is not None
    assert [(0, 1, -1), (1, 1, -1)] == [(each.base, each.magic, each.epoch) for each in log.batches]


def _named(op: tuple[Any, ...]) -> tuple[Any, str, OpType, str, Mapping[str, Any]]:
    source, process, type_, f, value = op
    return source, process, type_, f, value


def test_setting_that_no_topic_can_have_is_refused(stage: Stage) -> None:
    with pytest.raises(PreconditionError, match=r"INVALID_REQUEST .*expected a release of Kafka"):
        stage.client.alter_topic(TOPIC, FORMAT, "0.9.0")
    assert OpType.FAIL is stage.last()[0]


def test_batch_that_does_not_fit_into_the_format_is_refused(stage: Stage) -> None:
    """Source: KIP-110: zstd needs message format 2."""
    stage.client.alter_topic(TOPIC, FORMAT, "0.10.2")
    stage.world.until(lambda: False, 1.0)
    with pytest.raises(PreconditionError, match="UNSUPPORTED_FOR_MESSAGE_FORMAT"):
        stage.client.produce(TOPIC, 0, "m1", ["a"], acks=-1, codec="zstd")
    log = stage.world.nodes["A"].disk.replica_log(*TP)
    assert log is not None
    assert not log.batches
    stage.client.produce(TOPIC, 0, "m2", ["a", "b"], acks=-1, codec="gzip")
    log = stage.world.nodes["A"].disk.replica_log(*TP)
    assert log is not None
    assert [(0, 1, "gzip")] == [(each.base, each.last, each.codec) for each in log.batches]
