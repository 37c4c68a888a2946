"""
Our broker's state in ZooKeeper is read as it stands there, by code of its own, and requests are as it takes them.

The bytes are written by hand from the design, or were recorded below `/` of a running cluster. The last tests hold
the layout equal to the broker's codec, also in which values neither reads: who of the two is wrong is not said.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import pytest

from targets.broker.core import assignments, zookeeper
from targets.broker.core.messages import TopicPartition
from targets.broker.core.wishes import Wishes, decode_wishes, encode_wishes
from targets.broker.core.zookeeper import ZkNode
from targets.broker_target import layout
from targets.kafka_family.zookeeper.layout import Layout, StateNode

REQUESTS: Final = "/admin/elections"
# Recorded: before topics had an identity, and with it.
STATE: Final = b'{"leader_epoc": 3, "leader": 2, "ISR": [3, 2], "controller_epoch": 1}'
STATE_WITH_ID: Final = b'{"leader_epoc": 1, "leader": 2, "ISR": [1, 2], "controller_epoch": 1, "topic_id": 82}'
TOPIC: Final = b'{"partitions": {"0": [1, 2], "1": [2, 1]}}'
MOVING: Final = (
    b'{"partitions": {"0": [1, 2, 3], "1": [2, 1]}, '
    b'"moves": {"0": {"from": [1, 2], "to": [3, 2]}}, "made": "62-27"}'
)
ADDED_AGAIN: Final = b'{"partitions": {"0": [1, 2], "1": [2, 3]}, "once": 2, "ids": {"1": 36}, "made": "13-30"}'
LEAVING: Final = b'{"elections": [], "leaving": [1]}'
# Recorded after `elect`, `move` and `remove`, over what a broker that ends had asked for.
ASKED: Final = (
    b'{"elections": [{"topic": "log", "partition": 0, "leader": 2}], '
    b'"moves": [{"topic": "log", "partition": 0, "replicas": [1, 2]}], '
    b'"leaving": [1], "removals": [{"topic": "log", "partition": 1}]}'
)


class Nodes(dict[str, bytes]):
    """ZooKeeper, for an operator."""

    def read(self, path: str) -> bytes | None:
        return self.get(path)

    def update(self, path: str, change: Callable[[bytes | None], bytes]) -> None:
        self[path] = change(self.get(path))


def state(data: bytes) -> StateNode:
    return layout.partition_state(data, 4)


def test_paths_are_the_designs() -> None:
    """Source: Kafka Replication Design V3, Paths."""
    general: Layout = layout
    assert "/controller" == general.controller_path()
    assert "/brokers/ids/7" == general.registration_path(7)
    assert "/brokers/topics/log" == general.topic_path("log")
    assert "/brokers/topics/log/3/leaderAndISR" == general.partition_path("log", 3)
    assert REQUESTS == general.elections_path()


def test_controller_is_a_broker_s_id() -> None:
    assert 3 == layout.controller_id(b"3")
    with pytest.raises(ValueError, match="invalid literal"):
        layout.controller_id(b"{}")


@pytest.mark.parametrize(
    ("data", "leader", "epoch", "isr"),
    [
        pytest.param(STATE, 2, 3, (3, 2), id="recorded"),
        pytest.param(STATE_WITH_ID, 2, 1, (1, 2), id="recorded-with-topic-id"),
        pytest.param(b'{"ISR":[],"leader":-1,"leader_epoc":0,"controller_epoch":0}', -1, 0, (), id="no-leader"),
        pytest.param(b'{"leader_epoc":2147483646,"leader":0,"ISR":[0],"controller_epoch":9}', 0, 2**31 - 2, (0,)),
    ],
)
def test_partition_s_state_is_read_with_its_node_s_version(
    data: bytes, leader: int, epoch: int, isr: tuple[int, ...]
) -> None:
    for version in (0, 5):
        expected = StateNode(leader=leader, leader_epoch=epoch, isr=isr, version=version)
        assert expected == layout.partition_state(data, version)


@pytest.mark.parametrize(
    ("data", "replicas"),
    [
        pytest.param(TOPIC, {0: (1, 2), 1: (2, 1)}, id="recorded"),
        pytest.param(MOVING, {0: (1, 2, 3), 1: (2, 1)}, id="recorded-moving"),
        pytest.param(ADDED_AGAIN, {0: (1, 2), 1: (2, 3)}, id="recorded-added-again"),
        pytest.param(b'{"partitions":{}}', {}, id="no-partition"),
    ],
)
def test_topic_s_replicas_are_read_in_their_order(data: bytes, replicas: dict[int, tuple[int, ...]]) -> None:
    assert replicas == layout.assignment(data)


@pytest.mark.parametrize(
    ("read", "data", "said"),
    [
        (layout.assignment, b"{}", r"b'\{\}': expected JSON with partitions, .* \(KeyError: 'partitions'\)"),
        (layout.assignment, b'{"partitions": {"0": [true]}}', "True, expected a whole number from 0"),
        (state, STATE[:-1], "expected JSON with leader, leader_epoc, ISR"),
        (state, STATE.replace(b"3,", b"2147483647,", 1), "expected a whole number from 0 to 2147483646"),
    ],
)
def test_what_cannot_be_read_says_what_is_there_and_what_was_expected(
    read: Callable[[bytes], object], data: bytes, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        read(data)


def test_requests_stand_beside_what_a_leaving_broker_asked_for() -> None:
    nodes = Nodes({REQUESTS: LEAVING})
    assert f"broker 2 asked for at {REQUESTS}" == layout.elect(nodes, "log", 0, 2)
    assert f"replicas [1, 2] of log-0 asked for at {REQUESTS}" == layout.move(nodes, "log", 0, [1, 2])
    assert f"removal of log-1 asked for at {REQUESTS}" == layout.remove(nodes, "log", [1])
    assert {REQUESTS: ASKED} == nodes


def test_election_takes_the_place_of_others_and_the_rest_stays() -> None:
    nodes = Nodes({REQUESTS: ASKED})
    layout.elect(nodes, "other", 1, 3)
    elections = [{"topic": "other", "partition": 1, "leader": 3}]
    assert {**json.loads(ASKED), "elections": elections} == json.loads(nodes[REQUESTS])


def test_partition_is_to_have_what_was_asked_for_last() -> None:
    nodes = Nodes()
    assert () == layout.wanted(nodes, "log", 0)
    nodes[layout.topic_path("log")] = TOPIC
    assert [(1, 2), ()] == [layout.wanted(nodes, "log", partition) for partition in (0, 2)]
    nodes[layout.topic_path("log")] = MOVING
    assert [(3, 2), (2, 1)] == [layout.wanted(nodes, "log", partition) for partition in (0, 1)]
    nodes[REQUESTS] = ASKED
    assert [(1, 2), (2, 1)] == [layout.wanted(nodes, "log", partition) for partition in (0, 1)]


# --- equal to the broker's codec ------------------------------------------------------------------------------
ODD: Final = [
    *(None, True, 0, -1, -2, 2**31 - 2, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 1.0, 2.5, float("inf"), float("nan")),
    *("", "2", " 2 ", "x", "7-8", "7-8\n", "7-", [], [1], [-1], ["1"], [[]], [None], {}, {"0": [1]}, {"x": [1]}),
    *(
        {"1": 5},
        {"9": {"from": [1], "to": [2]}},
        {"0": {"from": [1], "to": "2"}},
        {"topic": "log", "partition": "1"},
    ),
]
KEYS: Final = ("x", "", "-1", "01", " 1", "1_0", "2147483648", "partition", "topic")
BYTES: Final = (
    b"",
    b"3",
    b"null",
    b"[]",
    b'""',
    b"{}",
    b"\xff",
    b"[" * 100_000,
    b"9" * 5_000,
    "{}".encode("utf-16"),
)


def altered(data: bytes) -> Iterator[bytes]:
    """Return JSON as it is, with each value lost or odd, with each name odd, and cut at each byte."""
    yield from (data, *BYTES, *(data[:end] for end in range(len(data))))
    whole = json.loads(data)
    for path in list(_paths(whole)):
        for change in (*(("value", odd) for odd in ODD), *(("name", key) for key in KEYS), ("lost", None)):
            one = copy.deepcopy(whole)
            there = one
            for step in path[:-1]:
                there = there[step]
            _change(there, path[-1], *change)
            yield json.dumps(one).encode()
    yield json.dumps({**whole, "more": 1}, indent=1).encode()


def _paths(whole: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    steps = whole if isinstance(whole, dict) else range(len(whole)) if isinstance(whole, list) else ()
    for step in steps:
        yield (*path, step)
        yield from _paths(whole[step], (*path, step))


def _change(there: Any, step: Any, how: str, odd: Any) -> None:
    if how == "value":
        there[step] = odd
    else:
        was = there.pop(step)
        if how == "name" and isinstance(there, dict):
            there[odd] = was


def or_error(read: Callable[[bytes], object], data: bytes) -> object:
    """Return what is read, ValueError if it cannot be."""
    try:
        return read(data)
    except ValueError:
        return ValueError


def broker_s_state(data: bytes) -> StateNode:
    found = zookeeper.decode_state(ZkNode(data=data, version=4, owner=0, czxid=0))
    return StateNode(leader=found.leader, leader_epoch=found.leader_epoch, isr=found.isr, version=4)


def broker_s_wanted(data: bytes) -> list[tuple[int, ...]]:
    found = assignments.decode_topic(data)
    now = {**found.replicas, **{partition: move.target for partition, move in found.moves.items()}}
    return [now.get(partition, ()) for partition in range(3)]


def wanted(data: bytes) -> list[tuple[int, ...]]:
    nodes = Nodes({layout.topic_path("log"): data})
    return [layout.wanted(nodes, "log", partition) for partition in range(3)]


@pytest.mark.parametrize(
    ("data", "ours", "broker_s"),
    [
        pytest.param(STATE, state, broker_s_state, id="state"),
        pytest.param(STATE_WITH_ID, state, broker_s_state, id="state-with-topic-id"),
        pytest.param(MOVING, layout.assignment, assignments.decode_assignment, id="moving"),
        pytest.param(ADDED_AGAIN, layout.assignment, assignments.decode_assignment, id="added-again"),
        pytest.param(MOVING, wanted, broker_s_wanted, id="wanted"),
    ],
)
def test_broker_reads_the_same_and_refuses_the_same(
    data: bytes, ours: Callable[[bytes], object], broker_s: Callable[[bytes], object]
) -> None:
    read = [(each, or_error(broker_s, each), or_error(ours, each)) for each in altered(data)]
    assert [] == [each for each in read if each[1] != each[2]]
    refused = sum(theirs is ValueError for _, theirs, _ in read)
    assert 0 < refused < len(read)


TP: Final = TopicPartition("t", 2)
REMOVED: Final = (TP, TopicPartition("t", 1))


def several() -> bytes:
    """Return requests of each kind that the broker would have written otherwise: twice, and in no order."""
    raw = json.loads(ASKED)
    for kind in ("elections", "moves", "removals"):
        raw[kind] += [{**raw[kind][0], "topic": "\u00e9\ud800"}, {**raw[kind][0], "leader": 3}]
    raw["leaving"] = [1, 8, 1]
    return json.dumps(raw).encode()


@pytest.mark.parametrize(
    ("ours", "broker_s"),
    [
        pytest.param(
            lambda nodes: layout.elect(nodes, *TP, 3),
            lambda there: encode_wishes(replace(decode_wishes(there), elections={TP: 3})),
            id="elect",
        ),
        pytest.param(lambda nodes: layout.move(nodes, *TP, [3, 1]), Wishes(moves={TP: (3, 1)}).beside, id="move"),
        pytest.param(
            lambda nodes: layout.remove(nodes, "t", [2, 1]), Wishes(removals=REMOVED).beside, id="remove"
        ),
    ],
)
def test_requests_are_the_bytes_that_the_broker_would_have_written(
    ours: Callable[[Nodes], str], broker_s: Callable[[bytes | None], bytes]
) -> None:
    written = set[bytes]()
    for there in (None, *altered(several())):
        nodes = Nodes() if there is None else Nodes({REQUESTS: there})
        ours(nodes)
        assert (there, broker_s(there)) == (there, nodes[REQUESTS])
        written.add(nodes[REQUESTS])
    assert len(written) > 100


def test_wish_that_the_broker_reads_is_what_a_partition_is_to_have() -> None:
    found = set[tuple[int, ...]]()
    for there in altered(several()):
        moves = decode_wishes(there).moves
        asked = [layout.wanted(Nodes({REQUESTS: there}), "log", partition) for partition in range(2)]
        assert (there, [moves.get(TopicPartition("log", partition), ()) for partition in range(2)]) == (
            there,
            asked,
        )
        found.update(asked)
    assert len(found) > 5


def test_broker_has_the_same_paths() -> None:
    for topic, partition in (("log", 0), ("a.b_c-d", 12)):
        tp = TopicPartition(topic, partition)
        assert zookeeper.leader_and_isr_path(tp) == layout.partition_path(topic, partition)
        assert zookeeper.topic_path(topic) == layout.topic_path(topic)
    assert zookeeper.broker_path(4) == layout.registration_path(4)
    assert (zookeeper.CONTROLLER, zookeeper.ELECTIONS) == (layout.controller_path(), layout.elections_path())
