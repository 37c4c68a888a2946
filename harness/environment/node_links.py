"""Opens the links of a run's nodes, as the target's wire says that their senders are found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from harness.fabric.fabric import Fabric
from harness.launch import Address, Place
from harness.target.wire import CLIENTS, METADATA, Between, Sender

NO_SERVICES: Final[Mapping[str, Mapping[str, Address]]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLinks:
    """
    Where others reach a node.

    Attributes:
        advertised: the address that it tells everybody; its own if each pair has an address.
        peers: node or service's process -> where this one reaches it, if each pair has an address.
        reached: node or service's process -> where that one reaches this node, if each pair has an address.
    """

    advertised: Address
    peers: Mapping[str, Address] = field(default_factory=dict)
    reached: Mapping[str, Address] = field(default_factory=dict)


def open_node_links(
    fabric: Fabric, places: Mapping[str, Place], services: Mapping[str, Mapping[str, Address]] = NO_SERVICES
) -> Mapping[str, NodeLinks]:
    """
    Open the first kind of links between nodes that the wire has; the fabric knows the nodes.

    Args:
        services: each linked service's process -> node -> where that node reaches it.
    """
    listens = {name: place.internal_outside for name, place in places.items()}
    if fabric.sender(Between.NODES) is Sender.FRAMES:
        return {
            name: NodeLinks(advertised=fabric.add_link(Between.NODES, address, dst=name))
            for name, address in listens.items()
        }
    reached = {
        name: {
            other: fabric.add_link(Between.NODES, address, src=other, dst=name)
            for other in (*listens, *services)
            if other != name
        }
        for name, address in listens.items()
    }
    return {
        name: NodeLinks(
            advertised=listens[name],
            peers={
                **{other: reached[other][name] for other in listens if other != name},
                **{process: found[name] for process, found in services.items()},
            },
            reached=reached[name],
        )
        for name in listens
    }


def open_service_links(
    fabric: Fabric, process: str, listening: Address, nodes: Iterable[str]
) -> dict[str, Address]:
    """Let the fabric know a service's process, and return where each node reaches it."""
    fabric.add_end(process)
    return {name: fabric.add_link(Between.NODES, listening, src=name, dst=process) for name in nodes}


def open_metadata_links(fabric: Fabric, name: str, servers: Sequence[Address]) -> tuple[Address, ...]:
    """Return where a node reaches each server of the metadata."""
    return tuple(fabric.add_link(Between.METADATA, server, src=name, dst=METADATA) for server in servers)


def open_client_link(fabric: Fabric, name: str, place: Place) -> Place:
    """Return the node's place with an address for clients that can be cut off."""
    address = fabric.add_link(Between.CLIENTS, place.client_outside, src=CLIENTS, dst=name)
    return replace(place, client_outside=address)
