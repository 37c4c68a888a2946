"""The state in ZooKeeper, recorded when it changes. Nodes are named; null is none, or no node of the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from harness.events.base import Event, OfPartition, key


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsr(OfPartition):
    """The partition's state."""

    PROCESS: ClassVar[str] = "zookeeper"

    leader: str | None = field(metadata=key("name of a node"))
    epoch: int
    isr: tuple[str | None, ...] = field(metadata=key("names of nodes"))
    zk_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned(OfPartition):
    """The replicas that the partition has from now on; those before stand in the set-up, or in the last event."""

    PROCESS: ClassVar[str] = "zookeeper"

    replicas: tuple[str | None, ...] = field(metadata=key("names of nodes"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerNode(Event):
    """The current controller."""

    PROCESS: ClassVar[str] = "zookeeper"

    node: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Registrations(Event):
    """The registered nodes."""

    PROCESS: ClassVar[str] = "zookeeper"

    nodes: tuple[str | None, ...]
