"""
No two brokers have one address: whoever would be the second to register it ends, and names the first.

What is meant for one of the two would reach the other. A broker looks before it registers, and once more after it
has: of two that register at once, the later one finds the other.
Source:  Kafka, KafkaServer.createBrokerInfo ("Configured end points … are already registered by broker").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from targets.broker.core import readable
from targets.broker.core.events import Exit
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    Registration,
    ZkChildren,
    ZkError,
    ZkGet,
    ZkNames,
    ZkNode,
    ZkResult,
    broker_path,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitNeighbourNames:
    """The list of all registrations is being read, after this broker's own was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitNeighbours:
    """The registrations of these other brokers are being read."""

    brokers: tuple[int, ...]


def look(core: Core) -> None:
    """Look whether another broker registered this one's address before it did."""
    if core.state.registered:
        core.ask(AwaitNeighbourNames(), ZkChildren(path=BROKER_IDS))


def on_names(core: Core, result: ZkResult) -> None:
    """Read the registrations of the others next."""
    others = others_of(core, result)
    if result is ZkError.LOST:
        core.after_ms(("neighbours",), core.config.register_backoff_ms)
    elif others:
        core.ask(AwaitNeighbours(brokers=others), *(ZkGet(path=broker_path(broker)) for broker in others))


def on_read(core: Core, continuation: AwaitNeighbours, results: tuple[ZkResult, ...]) -> None:
    """End if another registration with this address is the older one."""
    if ZkError.LOST in results:
        core.after_ms(("neighbours",), core.config.register_backoff_ms)
        return
    nodes = zip(continuation.brokers, results, strict=True)
    own = core.state.registration
    is_refused(core, ((each, node) for each, node in nodes if isinstance(node, ZkNode) and node.czxid < own))


def others_of(core: Core, names: ZkResult) -> tuple[int, ...]:
    """Return the ids of the other brokers in a list of all registrations."""
    found = readable.broker_ids(core, names.names) if isinstance(names, ZkNames) else ()
    return tuple(broker for broker in found if broker != core.config.broker_id)


def is_refused(core: Core, others: Iterable[tuple[int, ZkResult]]) -> bool:
    """Return True, and end this broker, if one of these registrations of others has one of its addresses."""
    mine = _addresses(core.config.registration)
    for broker, node in others:
        there = readable.read_registration(core, broker, node) if isinstance(node, ZkNode) else None
        shared = [] if there is None else [each for each in _addresses(there) if each in mine]
        if shared:
            host, port = shared[0]
            core.effects.append(
                Exit(
                    reason=f"broker id {core.config.broker_id}: its address {host}:{port} is registered by broker "
                    f"{broker}, expected one that no other broker has; change the address of one of the two, or "
                    f"delete {broker_path(broker)} if there is no such broker"
                )
            )
            return True
    return False


def _addresses(registration: Registration) -> tuple[tuple[str, int], tuple[str, int]]:
    return (
        (registration.host.lower(), registration.port),
        (registration.internal_host.lower(), registration.internal_port),
    )
