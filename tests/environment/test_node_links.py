"""Nodes reach each other as the wire of their target says that senders are found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from harness.environment.node_links import open_node_links
from harness.fabric.fabric import Fabric
from harness.launch import Address
from harness.target.wire import Wire
from tests.fabric.nodes import LOOPBACK, WIRE
from tests.fabric.toy import ToyWire

LISTENS = {name: Address(host=LOOPBACK, port=number) for number, name in enumerate("ABC", start=1)}


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
