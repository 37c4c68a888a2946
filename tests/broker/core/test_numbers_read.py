"""
Numbers in ZooKeeper that no message has a place for are unreadable: who would tell them to a broker would end.

So would each controller after it; and what a broker cannot read it refuses with all that stands beside it, for
ever.
Source:  Kafka Replication Design V3, Paths.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from targets.broker.core.assignments import encode_assignment
from targets.broker.core.messages import ErrorCode, LeaderAndIsrResponse, TopicPartition
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
    CONTROLLER_EPOCH,
    ELECTIONS,
    broker_path,
    encode_registration,
    leader_and_isr_path,
    topic_path,
)
from targets.broker.log import split_stored
from targets.broker.wire.codec import decode_request, encode_request, key_of
from targets.broker.wire.versions import peer_rows
from tests.broker.core.bench import TP, Bench, registration
from tests.broker.core.test_unreadable import named

ROWS: Final = peer_rows("kip380", PROTOCOLS["kip380"])
FAR: Final = 2**31  # the first that has no place among 32 bits
FARTHER: Final = 2**63
OTHER: Final = TopicPartition("b", 0)
STATE: Final = {"leader": 2, "leader_epoc": 3, "ISR": [1, 2], "controller_epoch": 1}


def tell_all(bench: Bench) -> None:
    """Have every request to a broker answered, written as bytes, and read as its receiver does."""
    told = 0
    while told < len(bench.sent()):
        send = bench.sent()[told]
        version = ROWS[key_of(send.request)].last
        frame = encode_request(send.request, version=version, correlation_id=send.tag, client_id="broker-1")
        assert send.request == decode_request(frame[4:], split_batches=split_stored, rows=ROWS).request
        if send.channel == "controller":
            bench.answer(LeaderAndIsrResponse(error=ErrorCode.NONE, errors=()), to=send)
        told += 1


@pytest.mark.parametrize(
    "node",
    [
        {"partitions": {"0": [1, FAR]}},
        {"partitions": {"0": [1, -1]}},
        {"partitions": {"0": "12"}},
        {"partitions": {"0": [1.5]}},
        {"partitions": {"0": [True]}},
        {"partitions": {"0": [1], str(FAR): [1]}},
        {"partitions": {"0": [1]}, "ids": {"0": FARTHER}},
        {"partitions": {"0": [1]}, "ids": {"0": -5}},
        {"partitions": {"0": [1]}, "once": -1},
        {"partitions": {"0": [1]}, "moves": {"0": {"from": [1], "to": [1, FAR]}}},
    ],
    ids=str,
)
def test_topic_whose_numbers_have_no_place_is_named_and_others_are_told(node: dict[str, Any]) -> None:
    bench = Bench("kip380")
    bench.start(session=5)
    bench.zk.put(topic_path("a"), json.dumps(node).encode())
    bench.zk.put(topic_path("b"), encode_assignment({0: (1,)}))
    bench.fire(BROKER_TOPICS)
    tell_all(bench)
    assert [topic_path("a")] == named(bench)
    assert 1 == bench.zk.state(OTHER).leader


@pytest.mark.parametrize(
    "field",
    [
        {"leader": FAR},
        {"leader": -2},
        {"leader_epoc": FAR - 1},
        {"leader_epoc": -1},
        {"ISR": [1, FAR]},
        {"ISR": [1, -1]},
        {"ISR": "12"},
        {"controller_epoch": FAR},
        {"topic_id": FARTHER},
        {"topic_id": -1},
    ],
    ids=str,
)
def test_state_whose_numbers_have_no_place_is_named_and_others_are_told(field: dict[str, Any]) -> None:
    bench = Bench("kip380")
    bench.zk.put(broker_path(2), encode_registration(registration(2)), owner=102)
    for tp, state in ((TP, STATE | field), (OTHER, STATE)):
        bench.zk.put(topic_path(tp.topic), encode_assignment({0: (1, 2)}))
        bench.zk.put(leader_and_isr_path(tp), json.dumps(state).encode())
    bench.start(session=5)
    tell_all(bench)
    assert [leader_and_isr_path(TP)] == named(bench)
    assert json.dumps(STATE | field).encode() == bench.zk.nodes[leader_and_isr_path(TP)].data
    assert 4 == bench.zk.state(OTHER).leader_epoch


@pytest.mark.parametrize("number", [FAR - 1, 10**30, -1])
def test_controllers_epoch_that_has_no_place_is_named_and_written_over(number: int) -> None:
    bench = Bench("kip380")
    bench.zk.put(CONTROLLER_EPOCH, str(number).encode())
    bench.start(session=5)
    assert [CONTROLLER_EPOCH] == named(bench) and bench.broker.state.controller.active
    assert b"1" == bench.zk.nodes[CONTROLLER_EPOCH].data


@pytest.mark.parametrize("name", [str(FAR), "9" * 5_000])
def test_broker_whose_id_has_no_place_is_left_out(name: str) -> None:
    bench = Bench("kip380")
    bench.start(session=5)
    bench.zk.put(f"{BROKER_IDS}/{name}", encode_registration(registration(1)), owner=9)
    bench.fire(BROKER_IDS)
    assert [f"{BROKER_IDS}/{name}"] == named(bench)
    assert {1} == set(bench.broker.state.controller.live)


@pytest.mark.parametrize(
    "field",
    [{"port": 70_000}, {"port": 0}, {"host": ""}, {"host": "x" * 40_000}, {"host": "\ud800"}, {"internal": "h"}],
)
def test_broker_that_nobody_can_reach_leads_nothing(field: dict[str, Any]) -> None:
    """Its clients would be sent to an address that is none, or no client would be answered about any broker."""
    bench = Bench("kip380")
    bench.zk.put(broker_path(2), encode_registration(registration(2)), owner=102)
    bench.zk.put(topic_path("b"), encode_assignment({0: (2, 1)}))
    bench.start(session=5)
    assert 2 == bench.zk.state(OTHER).leader
    there = json.loads(encode_registration(registration(2)))
    bench.zk.put(broker_path(2), json.dumps(there | field).encode(), owner=102)
    bench.fire(BROKER_IDS)
    assert [broker_path(2)] == named(bench)
    assert 1 == bench.zk.state(OTHER).leader
    bench.zk.put(broker_path(2), encode_registration(registration(2)), owner=102)
    bench.fire(BROKER_IDS)
    assert {1, 2} == set(bench.broker.state.controller.live)


@pytest.mark.parametrize(
    "data", [b"[", b"[]", b'{"elections": [{"topic": "b"}]}', b'{"leaving": "1", "removals": 7}']
)
def test_what_an_operator_wants_that_cannot_be_read_is_named_and_goes(data: bytes) -> None:
    bench = Bench("kip380")
    bench.start(session=5)
    bench.zk.put(ELECTIONS, data)
    bench.fire(ELECTIONS)
    assert [ELECTIONS] == named(bench)
    assert ELECTIONS not in bench.zk.nodes
