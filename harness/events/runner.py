"""What the runner says of a run, and what the collector could not read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from harness.events.base import Event, OpType, key


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup(Event):
    """The first line: everything that was drawn and chosen for the run."""

    PROCESS: ClassVar[str] = "runner"

    scenario: str
    protocol: str
    changes: tuple[str, ...] | None = field(
        default=None, metadata=key("rule=value: what makes a mutant of the protocol")
    )
    rules: Mapping[str, str] = field(metadata=key("the value of each rule"))
    host: str
    target: str
    seed: int
    random: bool | None = field(default=None, metadata=key("the schedule is random"))
    again: str | None = field(default=None, metadata=key("the command that repeats the run"))
    schedule: str | None = field(default=None, metadata=key("the steps, as a file has them"))
    power_tier: str = field(metadata=key("`none`, `loop` or `watermark`"))
    nodes: Mapping[str, int] = field(metadata=key("each node's broker id"))
    replicas: tuple[str, ...] = field(metadata=key("names of nodes"))
    topic: str
    partition: int
    records: Mapping[str, tuple[str, ...]] = field(metadata=key("the values of each group of records, as `m1`"))
    min_isr: int
    unclean: bool = field(metadata=key("whether a leader may be elected from outside the ISR"))
    message_format: str | None = field(default=None, metadata=key("`with_epochs` or `without_epochs`"))
    sends_once: bool | None = field(default=None, metadata=key("the client sends no record again"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Event):
    """A step of the scenario. In a random schedule a step that did not come about is `info`."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INVOKE, OpType.OK, OpType.FAIL, OpType.INFO)
    PROCESS: ClassVar[str] = "runner"

    line: int = field(metadata=key("the scenario's own line number; 0 for setting the cluster up"))
    text: str
    narrative: str = field(metadata=key("the comment above it"))
    error: str = field(default="", metadata=key("on fail, and on info where it was tried"))
    skipped: str = field(default="", metadata=key("on info: why it made no sense"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited(Event):
    """A node that no fault took down was not there, or ended again when it was started before the final reads."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.FAIL,)
    PROCESS: ClassVar[str] = "runner"

    node: str
    error: str = field(metadata=key("its last words"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Healed(Event):
    """All faults are undone and all replicas run; on fail, what is not so."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.OK, OpType.FAIL)
    PROCESS: ClassVar[str] = "runner"

    missing: str = field(default="", metadata=key("on fail"))
    waited: bool | None = field(
        default=None, metadata=key("on fail: whether until the time was up; false where nothing could come of it")
    )

    unhealed: tuple[str, ...] | None = field(
        default=None,
        metadata=key("on fail: fault and node of each that the harness could not undo; the run is then unknown"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Event):
    """The last line of a complete history, except for what nodes still say while they are taken down."""

    PROCESS: ClassVar[str] = "runner"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerNote(Event):
    """Something of a node that was not kept."""

    PROCESS: ClassVar[str] = "runner"

    node: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineUnreadable(Event):
    """A node sent a line that could not be read, so that the run cannot be judged."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.FAIL,)
    PROCESS: ClassVar[str] = "collector"

    error: str = field(metadata=key("the line's beginning, and what was expected"))
