"""Opens the links of a run's nodes, as the target's wire says that their senders are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.fabric.fabric import Fabric
from harness.launch import Address, Place
from harness.target.wire import CLIENTS, METADATA, Between, Sender


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLinks:
    """
    Where others reach a node.

    Attributes:
        advertised: the address that it tells everybody; its own if each pair has an address.
        peers: node -> where this one reaches it, if each pair has an address.
    """

    advertised: Address
    peers: Mapping[str, Address]


def open_node_links(
    fabric: Fabric, ids: Mapping[str, int], places: Mapping[str, Place]
) -> Mapping[str, NodeLinks]:
    """
    Let the fabric know these nodes, and open the first kind of links between nodes that the wire has.

    Args:
        ids: node -> its number in what frames say.
    """
    for name, number in ids.items():
        fabric.add_node(name, number)
    listens = {name: place.internal_outside for name, place in places.items()}
    if fabric.sender(Between.NODES) is Sender.FRAMES:
        return {
            name: NodeLinks(advertised=fabric.add_link(Between.NODES, address, dst=name), peers={})
            for name, address in listens.items()
        }
    return {
        name: NodeLinks(
            advertised=listens[name],
            peers={
                other: fabric.add_link(Between.NODES, address, src=name, dst=other)
                for other, address in listens.items()
                if other != name
            },
        )
        for name in listens
    }


def open_metadata_links(fabric: Fabric, name: str, servers: Sequence[Address]) -> tuple[Address, ...]:
    """Return where a node reaches each server of the metadata."""
    return tuple(fabric.add_link(Between.METADATA, server, src=name, dst=METADATA) for server in servers)


def open_client_link(fabric: Fabric, name: str, place: Place) -> Place:
    """Return the node's place with an address for clients that can be cut off."""
    address = fabric.add_link(Between.CLIENTS, place.client_outside, src=CLIENTS, dst=name)
    return replace(place, client_outside=address)
