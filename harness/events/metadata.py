"""
The metadata that the system itself holds true, recorded when they change.

Nodes are named; null is none, or no node of the run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from harness.events.base import Event, OfPartition, key


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataState(OfPartition):
    """The partition's state."""

    PROCESS: ClassVar[str] = "metadata"

    leader: str | None = field(metadata=key("name of a node"))
    epoch: int
    isr: tuple[str | None, ...] = field(metadata=key("names of nodes"))
    version: int = field(metadata=key("rises with every change of the state"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned(OfPartition):
    """The replicas that the partition has from now on; those before stand in the set-up, or in the last event."""

    PROCESS: ClassVar[str] = "metadata"

    replicas: tuple[str | None, ...] = field(metadata=key("names of nodes"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerNamed(Event):
    """The node that is controller now."""

    PROCESS: ClassVar[str] = "metadata"

    node: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Members(Event):
    """The members of the cluster: the nodes that are registered now."""

    PROCESS: ClassVar[str] = "metadata"

    nodes: tuple[str | None, ...]
