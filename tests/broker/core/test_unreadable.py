"""
Whatever stands in ZooKeeper that cannot be read is named, left out, and stops nothing else.

Source:  Kafka Replication Design V3, Paths; C 3 and E 4 delete replicas, but only of what is known to be gone.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from targets.broker.core.assignments import (
    Assignment,
    decode_assignment,
    decode_topic,
    encode_assignment,
    encode_topic,
)
from targets.broker.core.events import ZkAsk
from targets.broker.core.messages import (
    DeleteTopicsRequest,
    ErrorCode,
    LeaderAndIsrRequest,
    MetadataRequest,
    MetadataResponse,
    TopicErrors,
    TopicPartition,
)
from targets.broker.core.wishes import Wishes, encode_wishes
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
    CONTROLLER_EPOCH,
    ELECTIONS,
    NodeError,
    ZkExists,
    encode_registration,
    leader_and_isr_path,
    partition_path,
    topic_path,
)
from tests.broker.core.bench import TP, Bench, answers, log_of, recovery, registration
from tests.broker.core.cluster import Cluster

NONSENSE = [
    b"",
    b"\xff",
    b"[]",
    b"null",
    b"7",
    b'{"partitions": 3}',
    b'{"partitions": {"x": [1]}}',
    b"[" * 100_000,
]


def named(bench: Bench) -> list[str]:
    return [str(seen["path"]) for seen in bench.observed("unreadable-metadata")]


def one() -> Bench:
    bench = Bench("kip380")
    bench.start(session=5)
    return bench


@pytest.mark.parametrize("data", [*NONSENSE, b'{"partitions": {"-1": [1]}}', b'{"partitions": {"0": [-2]}}'])
def test_topic_that_cannot_be_read_is_named_once_and_others_get_leaders(data: bytes) -> None:
    bench = one()
    bench.zk.put(topic_path("a"), data)
    bench.zk.put(topic_path("b"), encode_assignment({0: (1,)}))
    bench.fire(BROKER_TOPICS)
    bench.fire(BROKER_TOPICS)
    assert [topic_path("a")] == named(bench)
    assert 1 == bench.zk.state(TopicPartition("b", 0)).leader
    bench.zk.put(topic_path("a"), encode_assignment({0: (1,)}))
    bench.fire(BROKER_TOPICS)
    assert 1 == bench.zk.state(TopicPartition("a", 0)).leader


def test_topic_of_more_partitions_than_a_topic_may_have_is_named_and_holds_up_no_other() -> None:
    """docs/limits.md, topic_partitions_max: a client is refused it, and somebody who writes by hand is, too."""
    bench = one()
    bench.zk.put(topic_path("a"), encode_assignment(dict.fromkeys(range(60_000), (1,))))
    bench.zk.put(topic_path("b"), encode_assignment({0: (1,)}))
    before = len(bench.effects)
    bench.fire(BROKER_TOPICS)
    asks = [ask for ask in bench.effects[before:] if isinstance(ask, ZkAsk)]
    assert [topic_path("a")] == named(bench)
    (seen,) = bench.observed("unreadable-metadata")
    assert "60000, expected at most 10000 (topic_partitions_max)" in str(seen["error"])
    assert [TopicPartition("b", 0)] == list(bench.broker.state.controller.assignments)
    assert len(asks) < 20, "it is not read partition by partition"
    bench.zk.put(topic_path("a"), encode_assignment({0: (1,)}))
    bench.fire(BROKER_TOPICS)
    assert 1 == bench.zk.state(TopicPartition("a", 0)).leader


def test_registration_that_no_session_owns_is_no_broker() -> None:
    """Written by hand, it would never go: the broker would be alive for ever."""
    bench = one()
    bench.zk.put(f"{BROKER_IDS}/8", encode_registration(registration(8)))
    for _ in range(2):
        bench.fire(BROKER_IDS)
    assert [f"{BROKER_IDS}/8 owner"] == named(bench)
    assert [1] == list(bench.broker.state.controller.live)


def test_mark_that_a_topic_lacks_is_named_once_and_the_topic_begins_without_it() -> None:
    """A node that was copied by hand names a mark that nobody has made, and first states check it."""
    bench, path = one(), topic_path("a")
    has = Assignment(replicas={0: (1,), 1: (1,)}, made="7-1")
    bench.zk.put(path, encode_topic(has))
    bench.zk.put(topic_path("b"), encode_assignment({0: (1,)}))
    bench.fire(BROKER_TOPICS)
    bench.pass_ms(5_000)
    assert [f"{path}/made-7-1"] == named(bench)
    (seen,) = bench.observed("unreadable-metadata")
    path_of_mark = f"{path}/made-7-1"
    reads = [ask.ops[:1] for ask in bench.effects if isinstance(ask, ZkAsk)]
    looks = reads.count((ZkExists(path=path_of_mark),))
    assert 1 == looks, "there is nothing to look at once it was named"
    assert 'Delete "made" from it' in str(seen["error"]) and f'{path} has "made": "7-1"' in str(seen["error"])
    assert 1 == bench.zk.state(TopicPartition("b", 0)).leader
    bench.zk.put(path, encode_topic(replace(has, made="")))
    bench.pass_ms(1_000)
    assert [1, 1] == [bench.zk.state(TopicPartition("a", partition)).leader for partition in has.replicas]


@pytest.mark.parametrize(
    "wishes", [Wishes(moves={TopicPartition("a", 0): (2,)}), Wishes(removals=(TopicPartition("a", 1),))]
)
def test_what_an_operator_wants_of_a_topic_that_lacks_its_mark_stops_nothing_else(wishes: Wishes) -> None:
    bench, has = one(), Assignment(replicas={0: (1,), 1: (1,)}, made="7-1")
    bench.zk.put(topic_path("a"), encode_topic(has))
    bench.zk.put(topic_path("b"), encode_assignment({0: (1,)}))
    bench.zk.put(ELECTIONS, encode_wishes(wishes))
    bench.fire(BROKER_TOPICS)
    bench.pass_ms(5_000)
    assert [f"{topic_path('a')}/made-7-1"] == named(bench)
    assert 1 == bench.zk.state(TopicPartition("b", 0)).leader and ELECTIONS not in bench.zk.nodes
    assert has == decode_topic(bench.zk.nodes[topic_path("a")].data)


def test_mark_that_went_with_its_topic_is_not_named() -> None:
    bench, path = one(), topic_path("a")
    bench.zk.put(path, encode_topic(Assignment(replicas={0: (1,)}, made="7-1")))
    bench.hold(f"{path}/made-7-1")
    bench.fire(BROKER_TOPICS)
    for _ in range(20):  # until what is held is the look at the mark
        if bench.held and isinstance(bench.held[0].ops[0], ZkExists):
            break
        bench.release(then_hold=True)
        bench.pass_ms(1)
    assert isinstance(bench.held[0].ops[0], ZkExists)
    bench.zk.remove(path)
    bench.zk.put(path, encode_topic(Assignment(replicas={0: (1,)}, made="7-2")))
    bench.release()
    assert [] == named(bench)


@pytest.mark.parametrize("name", ["a b", "x" * 250, "ä", ".."])
def test_name_that_no_topic_can_have_is_left_out(name: str) -> None:
    """A broker would make a directory of it, and end where the disk refuses that."""
    bench = one()
    bench.zk.put(f"{BROKER_TOPICS}/{name}", encode_assignment({0: (1,)}))
    bench.zk.put(topic_path("b"), encode_assignment({0: (1,)}))
    bench.fire(BROKER_TOPICS)
    assert [f"{BROKER_TOPICS}/{name}"] == named(bench)
    assert [TopicPartition("b", 0)] == list(bench.broker.state.controller.assignments)


@pytest.mark.parametrize("name", ["", "x", "-1", "01", "²", "1 "])
def test_registration_that_names_no_broker_is_left_out(name: str) -> None:
    bench = one()
    bench.zk.put(topic_path("b"), encode_assignment({0: (1,)}))
    bench.zk.put(f"{BROKER_IDS}/{name}x"[:-1] or BROKER_IDS, b"{}", owner=9)
    bench.fire(BROKER_IDS)
    assert 1 == bench.zk.state(TopicPartition("b", 0)).leader
    assert {1} == set(bench.broker.state.controller.live)


def test_registration_that_cannot_be_read_is_no_address_for_clients() -> None:
    bench = one()
    bench.zk.put(f"{BROKER_IDS}/2", b"nonsense", owner=9)
    bench.fire(BROKER_IDS)
    (answer,) = answers(bench.request(MetadataRequest(topics=None)))
    assert isinstance(answer, MetadataResponse)
    assert [1] == [broker.broker_id for broker in answer.brokers]


@pytest.mark.parametrize("data", NONSENSE)
def test_state_that_cannot_be_read_is_not_written_over_and_its_replica_stays(data: bytes) -> None:
    cluster = Cluster("kip380", brokers=(3, 1, 2))
    cluster.create("t", replicas=(1, 2))
    cluster.create("u", replicas=(1, 2))
    cluster.zk.put(leader_and_isr_path(TP), data)
    cluster.expire(cluster.benches[1].session)
    assert data == cluster.zk.nodes[leader_and_isr_path(TP)].data
    assert 2 == cluster.zk.state(TopicPartition("u", 0)).leader
    cluster.crash(3)  # the next controller reads it, too
    cluster.start(1)
    assert TP in cluster.benches[1].broker.state.replicas and TP in cluster.benches[2].broker.state.replicas


@pytest.mark.parametrize("protocol", ["hw", "kip380"])
def test_replicas_of_a_topic_that_cannot_be_read_stay_whoever_starts_or_takes_office(protocol: str) -> None:
    """INIT deletes what it does not name (V3 C 3): of such a topic nobody knows what it would have to name."""
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create("t", replicas=(1, 2))
    cluster.produce(1, 3)
    whole = cluster.zk.nodes[topic_path("t")].data
    cluster.zk.put(topic_path("t"), b"nonsense")
    cluster.settle()
    cluster.crash(3)  # another controller
    cluster.crash(2)
    cluster.start(2)
    cluster.start(3)
    assert [3, 3] == [cluster.benches[each].broker.state.replicas[TP].log.end_offset for each in (1, 2)]
    cluster.zk.put(topic_path("t"), whole)
    cluster.create("v", replicas=(1,))
    cluster.pass_ms(1_000)
    assert [3, 3] == [cluster.benches[each].broker.state.replicas[TP].log.end_offset for each in (1, 2)]


@pytest.mark.parametrize("protocol", ["hw", "kip380"])
def test_topic_that_the_controller_knows_and_cannot_read_any_more_is_not_deleted(protocol: str) -> None:
    """The controller in office stops what is gone since its last reading."""
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create("t", replicas=(1, 2))
    cluster.produce(1, 3)
    whole = cluster.zk.nodes[topic_path("t")].data
    for data in (b"nonsense", whole):
        cluster.zk.put(topic_path("t"), data)
        cluster.create(f"u{len(data)}", replicas=(1,))  # upon which it reads
        assert [3, 3] == [cluster.benches[each].broker.state.replicas[TP].log.end_offset for each in (1, 2)]
    assert [topic_path("t")] == named(cluster.benches[3])
    assert [3] == [result.base_offset for result in cluster.produce(1, 1)]


def test_init_is_made_up_for_once_all_can_be_read_again() -> None:
    bench = Bench("kip380")
    bench.zk.put(topic_path("a"), b"nonsense")
    bench.start(session=5)
    requests = [send.request for send in bench.sent() if isinstance(send.request, LeaderAndIsrRequest)]
    assert not any(request.is_init for request in requests)
    bench.zk.put(topic_path("a"), encode_assignment({0: (1,)}))
    bench.fire(BROKER_TOPICS)
    inits = [send.request for send in bench.sent() if getattr(send.request, "is_init", False)]
    assert 1 == len(inits) and not bench.broker.state.controller.owed_init


def test_controllers_epoch_that_cannot_be_read_ends_no_broker() -> None:
    bench = Bench("kip380")
    bench.zk.put(CONTROLLER_EPOCH, b"many")
    bench.start(session=5)
    assert [CONTROLLER_EPOCH] == named(bench)
    controller = bench.broker.state.controller
    assert (True, 1, b"1") == (controller.active, controller.epoch, bench.zk.nodes[CONTROLLER_EPOCH].data)


def test_id_that_something_unreadable_has_taken_ends_that_broker_alone() -> None:
    bench = Bench("kip380")
    bench.zk.put(f"{BROKER_IDS}/1", b"nonsense", owner=9)
    bench.start(session=5)
    (reason,) = [effect.reason for effect in bench.effects if type(effect).__name__ == "Exit"]
    assert "broker id 1: registered by node None" in reason


def test_topic_without_a_state_and_with_strange_nodes_below_it_can_be_deleted() -> None:
    bench = one()
    bench.zk.put(topic_path("t"), encode_assignment({0: (1,), 1: (1,), 2: (1,)}))
    bench.fire(BROKER_TOPICS)
    for path in [path for path in bench.zk.nodes if path.startswith(partition_path(TopicPartition("t", 1)) + "/")]:
        bench.zk.remove(path)
    bench.zk.put(f"{topic_path('t')}/strange/below")
    (answer,) = answers(bench.request(DeleteTopicsRequest(topics=("t",), timeout_ms=1)))
    assert isinstance(answer, TopicErrors) and [("t", ErrorCode.NONE, "")] == list(answer.errors)
    assert not [path for path in bench.zk.nodes if path.startswith(topic_path("t"))]


def test_broker_that_starts_beside_an_unreadable_topic_keeps_its_log() -> None:
    bench = Bench("kip380")
    bench.zk.put(f"{BROKER_IDS}/2", encode_registration(registration(2)), owner=102)
    bench.zk.put(topic_path("t"), b"{}")
    log = log_of((0, 2))
    bench.start((log, recovery(log)), session=5)
    assert not log.deleted and TP in bench.broker.state.replicas


def test_error_says_what_the_node_holds_and_what_was_expected() -> None:
    with pytest.raises(NodeError, match=r"b'\{\}': expected JSON with partitions.*KeyError"):
        decode_assignment(b"{}")
