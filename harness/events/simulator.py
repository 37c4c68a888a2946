"""Events of the simulator, recorded after the end of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from harness.events.base import Event, key


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleViolation(Event):
    """An oracle saw a violation of its rule at one step."""

    PROCESS: ClassVar[str] = "simulator"

    rule: str = field(metadata=key("as `committed` for the anomaly `oracle-committed`"))
    step: int
    nodes: tuple[str, ...] = field(metadata=key("names of nodes"))
    offset: int = field(metadata=key("-1 if it is about no offset"))
    sentence: str
    topic: str | None = field(
        default=None, metadata=key("absent in older histories, and if it is about no partition")
    )
    partition: int | None = field(default=None, metadata=key("as `topic`"))


@dataclass(frozen=True, slots=True, kw_only=True)
class World(Event):
    """How long the simulated world ran, and how many faults its metadata had."""

    PROCESS: ClassVar[str] = "simulator"

    steps: int
    virtual_ns: int
    metadata_faults_asked: int
    metadata_faults_bit: int
    coverage: Mapping[str, int] | None = field(
        default=None, metadata=key("how often the cores processed each kind of event, and had each kind of effect")
    )
