"""
A broker whose address another broker has registered ends, and says which and what to do.

Source:  Kafka, KafkaServer.createBrokerInfo ("Configured end points … are already registered by broker").
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from targets.broker.core.events import Effect, Exit, ZkAsk
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    Registration,
    ZkCreate,
    ZkGet,
    ZkMulti,
    broker_path,
    encode_registration,
)
from tests.broker.core.asks import occupied
from tests.broker.core.bench import Bench, registration
from tests.broker.core.cluster import Cluster

ME, OTHER = broker_path(1), broker_path(8)
MINE = registration(1)
# Another broker's registration that shares an address with this one's, and the one that is shared.
SHARED: dict[str, tuple[dict[str, Any], str]] = {
    "internal": ({"internal_host": MINE.internal_host, "internal_port": MINE.internal_port}, "127.0.0.1:9101"),
    "client": ({"host": MINE.host, "port": MINE.port}, "127.0.0.1:9001"),
    "client at internal": ({"host": MINE.internal_host, "port": MINE.internal_port}, "127.0.0.1:9101"),
    "internal at client": ({"internal_host": MINE.host, "internal_port": MINE.port}, "127.0.0.1:9001"),
}


def ends(effects: list[Effect]) -> list[str]:
    return [effect.reason for effect in effects if isinstance(effect, Exit)]


def with_address(shared: str) -> Registration:
    return replace(registration(8), **SHARED[shared][0])


def refusal(address: str = "127.0.0.1:9101") -> str:
    return (
        f"broker id 1: its address {address} is registered by broker 8, expected one that no other broker has; "
        "change the address of one of the two, or delete /brokers/ids/8 if there is no such broker"
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("owner", [6, 0], ids=["of a session", "by hand"])
def test_broker_whose_address_another_has_registered_ends_without_a_trace(protocol: str, owner: int) -> None:
    zk = occupied()
    zk.put(OTHER, encode_registration(with_address("internal")), owner=owner)
    bench = Bench(protocol, zk=zk)
    assert [refusal()] == ends(bench.start(session=7))
    assert ME not in zk.nodes
    assert [] == bench.observed("member")


@pytest.mark.parametrize("shared", SHARED)
def test_any_of_the_addresses_of_both_may_be_the_same(shared: str) -> None:
    zk = occupied()
    zk.put(OTHER, encode_registration(with_address(shared)), owner=6)
    assert [refusal(SHARED[shared][1])] == ends(Bench(zk=zk).start(session=7))


def test_names_of_hosts_are_the_same_in_any_case() -> None:
    zk = occupied()
    there = replace(registration(8), internal_host="BROKER-A", internal_port=9101)
    zk.put(OTHER, encode_registration(there), owner=6)
    bench = Bench(zk=zk)
    mine = replace(MINE, internal_host="broker-a")
    bench.broker.state.config = replace(bench.broker.state.config, registration=mine)
    assert [refusal("broker-a:9101")] == ends(bench.start(session=7))


@pytest.mark.parametrize("other", [registration(8), replace(registration(8), port=9101, host="127.0.0.2")])
def test_broker_with_an_address_of_its_own_registers(other: Registration) -> None:
    zk = occupied()
    zk.put(OTHER, encode_registration(other), owner=6)
    bench = Bench(zk=zk)
    assert [] == ends(bench.start(session=7))
    assert bench.broker.state.registered


@pytest.mark.parametrize("data", [b"", b"{}", b"no json"])
def test_registration_that_cannot_be_read_has_no_address(data: bytes) -> None:
    zk = occupied()
    zk.put(OTHER, data)
    bench = Bench(zk=zk)
    assert [] == ends(bench.start(session=7))
    assert bench.broker.state.registered


def test_broker_looks_again_in_every_session() -> None:
    bench = Bench(zk=occupied())
    assert [] == ends(bench.start(session=7))
    bench.zk.close_session(7)
    bench.connect(0)
    bench.zk.put(OTHER, encode_registration(with_address("internal")), owner=6)
    assert [refusal()] == ends(bench.connect(8))


def test_old_registration_of_this_broker_itself_is_no_obstacle() -> None:
    zk = occupied()
    zk.put(ME, encode_registration(MINE), owner=6)
    bench = Bench(zk=zk)
    assert [] == ends(bench.start(session=7))
    assert 7 == zk.nodes[ME].owner


def test_registration_takes_three_turns_of_zookeeper_however_many_others_there_are() -> None:
    """Whose id it is and who else is there; their addresses; the write, with all that is to be known after it."""
    zk = occupied()
    for broker in range(4, 9):
        zk.put(broker_path(broker), encode_registration(registration(broker)), owner=6)
    effects = Bench(zk=zk).start(session=7)
    asks = [effect.ops for effect in effects if isinstance(effect, ZkAsk)]
    about = [ops for ops in asks if BROKER_IDS in str(ops) and not isinstance(ops[0], ZkCreate)]
    assert [ZkGet, ZkGet, ZkMulti] == [type(ops[0]) for ops in about]


def test_of_two_that_register_at_once_the_later_one_ends() -> None:
    """Both have looked before either has registered."""
    bench = Bench(zk=occupied())
    bench.hold(ME, writes=True)
    bench.start(session=7)
    bench.zk.put(OTHER, encode_registration(with_address("internal")), owner=6)
    assert [refusal()] == ends(bench.release())


def test_registration_that_comes_later_is_that_brokers_to_refuse() -> None:
    bench = Bench(zk=occupied())
    bench.lose(ME, happened=True, writes=True)  # it has looked before, and looks again only after a while
    bench.start(session=7)
    bench.hold(BROKER_IDS)
    bench.pass_ms(500)
    bench.release(then_hold=True)
    assert bench.broker.state.registered
    bench.zk.put(OTHER, encode_registration(with_address("internal")), owner=6)
    effects = bench.release()
    assert [OTHER] == [op.path for each in effects if isinstance(each, ZkAsk) for op in each.ops]
    assert [] == ends(effects)
    assert bench.broker.state.registered


@pytest.mark.parametrize("address", ["internal", None], ids=["the same", "its own"])
def test_broker_that_comes_back_with_another_address_between_the_looks_is_read_again(address: str | None) -> None:
    bench = Bench(zk=occupied())
    bench.zk.put(OTHER, encode_registration(registration(8)), owner=6)
    bench.hold(ME, writes=True)
    bench.start(session=7)
    bench.zk.close_session(6)
    there = registration(8) if address is None else with_address(address)
    bench.zk.put(OTHER, encode_registration(there), owner=5)
    assert ([] if address is None else [refusal()]) == ends(bench.release())


@pytest.mark.parametrize("path", [BROKER_IDS, OTHER])
def test_look_whose_answer_was_lost_is_made_again(path: str) -> None:
    """Before the registration as after it."""
    for loss in range(4):
        zk = occupied()
        zk.put(OTHER, encode_registration(registration(8)), owner=6)
        bench = Bench(zk=zk)
        kept = bench.lose
        kept(path, happened=False)
        if loss % 2:
            kept(path, happened=False)
        bench.start(session=7)
        zk.put(OTHER, encode_registration(with_address("internal")), owner=6)
        assert [refusal()] == ends(bench.pass_ms(500) + bench.pass_ms(500))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_fourth_broker_with_a_copied_configuration_ends_and_the_cluster_loses_nothing(protocol: str) -> None:
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.produce(1, count=100)
    fourth = Bench(protocol, broker_id=8, zk=cluster.zk)
    fourth.broker.state.config = replace(fourth.broker.state.config, registration=MINE)
    (reason,) = ends(fourth.start(session=cluster.new_session()))
    assert reason.startswith("broker id 8: its address 127.0.0.1:9001 is registered by broker 1, expected one ")
    cluster.expire(fourth.session)
    cluster.pass_ms(3_000)
    assert not cluster.registered(8)
    assert [100, 100] == [cluster.replica(broker).log.end_offset for broker in (1, 2)]
