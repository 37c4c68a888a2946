"""Nodes reach each other as the wire of their target says that senders are found."""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest

from harness import limits
from harness.cleanup.process import until
from harness.environment.node_links import NodeLinks, open_node_links, open_service_links, service_hosts
from harness.fabric.fabric import Fabric
from harness.launch import Address
from harness.model import UsageError
from harness.target.wire import Between, LinkKind, Sender, Wire
from tests.fabric.nodes import LOOPBACK, WIRE
from tests.fabric.toy import ToyWire

LISTENS = {name: Address(host=LOOPBACK, port=number) for number, name in enumerate("ABC", start=1)}
PAIRS = [*permutations("ABC", 2)]


def opened(wire: Wire | None) -> tuple[dict[str, Address], dict[str, dict[str, Address]]]:
    """Return the address that each node advertises, and where it reaches each other node."""
    places: Any = {name: SimpleNamespace(internal_outside=address) for name, address in LISTENS.items()}
    with Fabric(LOOPBACK, lambda _: None, target="toy", wire=wire) as fabric:
        for number, name in enumerate(LISTENS, start=1):
            fabric.add_node(name, number)
        links = open_node_links(fabric, places)
    return (
        {name: each.advertised for name, each in links.items()},
        {name: dict(each.peers) for name, each in links.items()},
    )


def test_node_advertises_one_address_of_the_links_where_frames_say_who_sent_them() -> None:
    advertised, peers = opened(WIRE)
    assert {"A": {}, "B": {}, "C": {}} == peers
    assert 3 == len({*advertised.values(), *LISTENS.values()}) - 3


def test_each_pair_has_an_address_of_its_own_where_the_address_says_who_sent_it() -> None:
    for wire in (ToyWire(), None):
        advertised, peers = opened(wire)
        assert LISTENS == advertised
        assert {"A": {"B", "C"}, "B": {"A", "C"}, "C": {"A", "B"}} == {name: {*of} for name, of in peers.items()}
        assert 6 == len({address for of in peers.values() for address in of.values()} - {*LISTENS.values()})


# --- by hosts --------------------------------------------------------------------------------------------------
class HostWire(ToyWire):
    """The toy's frames between nodes that resolve each other's hosts; the first link is for clients too."""

    links: Sequence[LinkKind] = (
        LinkKind(name="serve", between=Between.NODES, sender=Sender.HOST, with_clients=True),
        LinkKind(name="copy", between=Between.NODES, sender=Sender.HOST),
    )


class InternalWire(ToyWire):
    """The same with a first link at which nodes listen for nodes alone."""

    links: Sequence[LinkKind] = (LinkKind(name="copy", between=Between.NODES, sender=Sender.HOST),)


class ByHosts:
    """Three nodes that listen on loopback, and their links."""

    def __init__(self, stack: ExitStack, wire: Wire) -> None:
        self._stack = stack
        self.clients = {name: self.listening() for name in LISTENS}
        self.internal = {name: self.listening() for name in LISTENS}
        self.fabric = stack.enter_context(Fabric(LOOPBACK, lambda _: None, target="toy", wire=wire))
        for number, name in enumerate(LISTENS, start=1):
            self.fabric.add_node(name, number)

    def listening(self) -> Address:
        """Return the address of a listener, whose port nobody else takes on loopback meanwhile."""
        server = self._stack.enter_context(socket.create_server((LOOPBACK, 0)))
        return Address(host=LOOPBACK, port=server.getsockname()[1])

    def opens(self, services: Mapping[str, Mapping[str, Address]]) -> Mapping[str, NodeLinks]:
        places: Any = {
            name: SimpleNamespace(client_outside=self.clients[name], internal_outside=self.internal[name])
            for name in LISTENS
        }
        return open_node_links(self.fabric, places, services)

    def reaches(self, address: Address, src: str, dst: str) -> bool:
        """Dial an address and stay, so that numbers only rise; return whether it is of that link."""
        before = self.fabric.connections(src, dst)
        self._stack.enter_context(socket.create_connection((address.host, address.port)))
        return until(lambda: self.fabric.connections(src, dst) == before + 1, limits.CONDITION_WAIT_S_MAX)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def test_each_pair_has_a_host_of_loopback_with_the_receiver_s_own_port(stack: ExitStack) -> None:
    nodes = ByHosts(stack, HostWire())
    links = nodes.opens({})
    assert nodes.internal == {name: each.advertised for name, each in links.items()}
    found = {(src, dst): links[src].peers[dst] for src, dst in PAIRS}
    for (src, dst), address in found.items():
        first, second, *pair = address.host.split(".")
        assert (("127", "1"), nodes.clients[dst].port) == ((first, second), address.port)
        assert 2 == len({*pair})
        assert address == links[dst].reached[src]
        assert address.host == nodes.fabric.host_of(src, dst)
    assert len(PAIRS) == len({address.host for address in found.values()})
    assert all({*LISTENS} - {name} == {*each.peers} == {*each.reached} for name, each in links.items())


def test_links_of_every_kind_are_open_at_the_one_host_of_a_pair(stack: ExitStack) -> None:
    nodes = ByHosts(stack, HostWire())
    links = nodes.opens({})
    for src, dst in PAIRS:
        host = links[src].peers[dst].host
        for listening in (nodes.clients[dst], nodes.internal[dst]):
            assert nodes.reaches(Address(host=host, port=listening.port), src, dst)


def test_first_kind_may_be_where_nodes_listen_for_nodes_alone(stack: ExitStack) -> None:
    nodes = ByHosts(stack, InternalWire())
    links = nodes.opens({})
    ports = {(src, dst): links[src].peers[dst].port for src, dst in PAIRS}
    assert {(src, dst): nodes.internal[dst].port for src, dst in PAIRS} == ports


def test_service_s_process_is_reached_at_a_host_by_each_node_and_reaches_each_at_one(stack: ExitStack) -> None:
    nodes = ByHosts(stack, HostWire())
    listening = nodes.listening()
    reached = open_service_links(nodes.fabric, "boss-1", listening, LISTENS)
    links = nodes.opens({"boss-1": reached})
    hosts = service_hosts(nodes.fabric, "boss-1", LISTENS)
    assert {listening.port} == {address.port for address in reached.values()}
    for name, each in links.items():
        assert (reached[name], hosts[name]) == (each.peers["boss-1"], each.reached["boss-1"].host)
        assert nodes.reaches(each.peers["boss-1"], name, "boss-1")
        for port in (nodes.clients[name].port, nodes.internal[name].port):
            assert nodes.reaches(Address(host=hosts[name], port=port), "boss-1", name)
    every = [*hosts.values(), *(address.host for address in reached.values())]
    every += [links[src].peers[dst].host for src, dst in PAIRS]
    assert 12 == len(every) == len({*every})


@pytest.mark.parametrize("wire", [ToyWire(), WIRE, None])
def test_where_nodes_are_not_found_by_hosts_a_process_resolves_none(wire: Wire | None) -> None:
    with Fabric(LOOPBACK, lambda _: None, target="toy", wire=wire) as fabric:
        fabric.add_node("A", 1)
        fabric.add_end("boss-1")
        assert {} == service_hosts(fabric, "boss-1", ["A"])


@pytest.mark.parametrize("bound", ["10.0.0.1", "0.0.0.0", "::1", "172.17.0.1"])
def test_fabric_that_is_not_bound_on_loopback_has_no_hosts(bound: str) -> None:
    places: Any = {
        name: SimpleNamespace(client_outside=address, internal_outside=address)
        for name, address in LISTENS.items()
    }
    with Fabric(bound, lambda _: None, target="toy", wire=HostWire()) as fabric:
        for number, name in enumerate(LISTENS, start=1):
            fabric.add_node(name, number)
        says = (
            rf"^target toy: its nodes find each other by hosts .* and these listen on {bound}; expected the host"
        )
        asks: Collection[Any] = (
            lambda: open_node_links(fabric, places),
            lambda: open_service_links(fabric, "boss-1", LISTENS["A"], LISTENS),
            lambda: service_hosts(fabric, "boss-1", LISTENS),
        )
        for ask in asks:
            with pytest.raises(UsageError, match=says):
                ask()
