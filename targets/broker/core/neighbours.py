"""
No two brokers have one address: whoever would be the second to register it ends, and names the first.

What is meant for one of the two would reach the other. A broker looks before it registers, and once more after it
has: of two that register at once, the later one finds the other. The second look is read in one turn with the
write, behind it: the list, and once more those that the first look has found, as one may have come back with
another address meanwhile. So only a broker that is new since then takes one more turn.
Source:  Kafka, KafkaServer.createBrokerInfo ("Configured end points … are already registered by broker").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    """
    The registrations of these other brokers are being read.

    Attributes:
        is_before: this broker's own is not written yet.
        old: what is under its id then.
    """

    brokers: tuple[int, ...]
    is_before: bool = False
    old: ZkNode | None = None


def look(core: Core) -> None:
    """Look whether another broker registered this one's address before it did."""
    if core.state.registered:
        core.ask(AwaitNeighbourNames(), ZkChildren(path=BROKER_IDS))


def read(core: Core, after: AwaitNeighbours) -> None:
    """Read the registrations of others, if there are any."""
    if after.brokers:
        core.ask(after, *gets(after.brokers))


def gets(brokers: Iterable[int]) -> tuple[ZkGet, ...]:
    """Return what reads the registrations of brokers."""
    return tuple(ZkGet(path=broker_path(broker)) for broker in brokers)


def on_look(core: Core, names: ZkResult, found: Mapping[int, ZkResult] | None = None) -> bool:
    """
    Read those registrations of a list that are not read yet; return False, and end, if one is in the way.

    Args:
        found: those that were read in one turn with the list, after this broker registered.
    """
    found = found or {}
    if not on_read(core, found):
        return False
    if names is ZkError.LOST:
        core.after_ms(("neighbours",), core.config.register_backoff_ms)
    else:
        read(core, AwaitNeighbours(brokers=tuple(each for each in others_of(core, names) if each not in found)))
    return True


def on_read(core: Core, found: Mapping[int, ZkResult]) -> bool:
    """Return False, and end, if another registration with this address is the older one."""
    if ZkError.LOST in found.values():
        core.after_ms(("neighbours",), core.config.register_backoff_ms)
    own = core.state.registration
    older = ((each, node) for each, node in found.items() if isinstance(node, ZkNode) and node.czxid < own)
    return not is_refused(core, older)


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
