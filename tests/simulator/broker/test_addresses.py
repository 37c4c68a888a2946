"""In the simulator, too, a registration may lead to another node, and clients are told from brokers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from targets.broker.core.messages import ErrorCode, FetchPartition, FetchRequest, FetchResponse
from targets.broker.core.zookeeper import CONTROLLER, broker_path, encode_registration
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.wire import WirePipe
from targets.simulator.broker.world import World, registration
from targets.simulator.engine.pipe import Frame, Pipe
from targets.simulator.zookeeper.ops import Create, Delete
from tests.kept import keep
from tests.simulator.worlds import TOPIC, TP, WAIT_S, Ops, cluster, leads, settled

PROTOCOLS = keep(("hw", "kip101", "kip279", "kip320", "kip380"), "hw", "kip380")
OPERATOR = 0  # no session
SESSION = 7  # of a program that registers what it likes
COUNT = 100


def with_records(protocol: str) -> World:
    """Return three brokers, C the controller, with records that A and B have."""
    world = cluster(protocol)
    SimClient(world).produce(TOPIC, 0, "m", [f"m{number}" for number in range(COUNT)], acks=-1)
    assert world.until(lambda: settled(world), WAIT_S)
    return world


def ends(world: World) -> dict[str, int]:
    return {name: world.nodes[name].disk.logs[TP].end_offset for name in ("A", "B")}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_registration_by_hand_with_another_brokers_address_costs_that_broker_nothing(protocol: str) -> None:
    """Source: Kafka Replication Design V3, C 3: the INIT for 8 would make A delete all its replicas."""
    world, ops = with_records(protocol), Ops()
    world.record_into(ops)
    copied = encode_registration(replace(registration("A"), node="D"))
    world.zookeeper.tree.write((Create(path=broker_path(8), data=copied, ephemeral=True),), SESSION)
    world.zookeeper.tree.write((Delete(path=CONTROLLER),), OPERATOR)
    world.run(3.0)
    named = [value["path"] for value in ops.of("unreadable-metadata", "A")]
    assert {broker_path(8)} == set(named)
    assert {"A": COUNT, "B": COUNT} == ends(world)
    assert leads(world, "A")
    SimClient(world).produce(TOPIC, 0, "n", ["n"], acks=-1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_registration_that_no_session_owns_is_no_broker(protocol: str) -> None:
    world, ops = with_records(protocol), Ops()
    world.record_into(ops)
    copied = encode_registration(replace(registration("A"), node="D"))
    world.zookeeper.tree.write((Create(path=broker_path(8), data=copied),), OPERATOR)
    world.run(3.0)
    assert {f"{broker_path(8)} owner"} == {value["path"] for value in ops.of("unreadable-metadata", "C")}
    assert [] == ops.of("unreadable-metadata", "A")
    assert {"A": COUNT, "B": COUNT} == ends(world)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_broker_whose_configuration_was_copied_ends(protocol: str) -> None:
    world = with_records(protocol)
    node = world.nodes["B"]
    node.kill()
    node.config = replace(node.config, registration=replace(registration("A"), node="B"))
    node.boot()
    assert world.until(lambda: node.process is None, WAIT_S)
    expected = f"broker id {node.config.broker_id}: its address a:9092 is registered by broker {world.ids['A']}, "
    assert node.ended.startswith(expected), node.ended


class Client:
    """An endpoint outside that keeps the answers that it gets."""

    def __init__(self) -> None:
        self.listening = True
        self.got: list[FetchResponse] = []

    def on_frame(self, _pipe: Pipe, _direction: int, frame: Frame) -> None:
        _, response = frame.body
        self.got.append(response)

    def on_end(self, pipe: Pipe) -> None:
        raise AssertionError(f"connection {pipe.number} ended; expected an answer")


@pytest.mark.parametrize(
    ("outside", "error"), [(True, ErrorCode.TOPIC_AUTHORIZATION_FAILED), (False, ErrorCode.NONE)]
)
def test_clients_connection_is_the_clients_listener(error: ErrorCode, *, outside: bool) -> None:
    world = with_records("kip380")
    client = Client()
    world.add_end("client", client)
    pipe = world.network.dial("client", "A", "client", WirePipe, outside=outside)
    part = FetchPartition(tp=TP, fetch_offset=0, max_bytes=1)
    asked = FetchRequest(replica_id=world.ids["B"], max_wait_ms=0, min_bytes=1, max_bytes=1, partitions=(part,))
    world.network.send(pipe, 0, (1, asked), asked, tag=1)
    assert world.until(lambda: bool(client.got), WAIT_S)
    (answer,) = client.got
    assert [error] == [result.error for result in answer.results]
