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
    Open the links between nodes that the wire has: each kind if nodes are found by hosts, else the first.

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
            other: _open_pair(fabric, place, src=other, dst=name)
            for other in (*listens, *services)
            if other != name
        }
        for name, place in places.items()
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
    return {name: _open(fabric, listening, src=name, dst=process) for name in nodes}


def service_hosts(fabric: Fabric, process: str, nodes: Iterable[str]) -> dict[str, str]:
    """Return the host to which a service's process resolves each node; {} if nodes are not found by hosts."""
    if fabric.sender(Between.NODES) is not Sender.HOST:
        return {}
    return {name: fabric.host_of(process, name) for name in nodes}


def open_metadata_links(fabric: Fabric, name: str, servers: Sequence[Address]) -> tuple[Address, ...]:
    """Return where a node reaches each server of the metadata."""
    return tuple(fabric.add_link(Between.METADATA, server, src=name, dst=METADATA) for server in servers)


def _open_pair(fabric: Fabric, place: Place, *, src: str, dst: str) -> Address:
    """Return where one end reaches a node; by hosts that is the first kind's address, and the others are open."""
    if fabric.sender(Between.NODES) is not Sender.HOST:
        return _open(fabric, place.internal_outside, src=src, dst=dst)
    opened = []
    for kind in fabric.kinds(Between.NODES):
        listening = place.client_outside if kind.with_clients else place.internal_outside
        opened.append(_open(fabric, listening, src=src, dst=dst, listener=kind.name))
    return opened[0]


def _open(fabric: Fabric, listening: Address, *, src: str, dst: str, listener: str = "") -> Address:
    """Open a link to where an end listens; by hosts at the address to which the other one resolves its host."""
    by_host = fabric.sender(Between.NODES) is Sender.HOST
    at = Address(host=fabric.host_of(src, dst), port=listening.port) if by_host else None
    return fabric.add_link(Between.NODES, listening, src=src, dst=dst, listener=listener, at=at)


def open_client_link(fabric: Fabric, name: str, place: Place) -> Place:
    """Return the node's place with an address for clients that can be cut off."""
    address = fabric.add_link(Between.CLIENTS, place.client_outside, src=CLIENTS, dst=name)
    return replace(place, client_outside=address)
