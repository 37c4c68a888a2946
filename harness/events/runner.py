"""Events of the runner about a run, and of the collector about lines that it could not read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from harness.events.base import Event, OfPartition, OpType, key

# How nodes lose power: not at all, by a page cache that is really lost, by files that are cut, or as simulated.
POWER_TIERS: Final = ("none", "loop", "watermark", "sim")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup(Event):
    """The first line: everything that was drawn and chosen for the run."""

    PROCESS: ClassVar[str] = "runner"

    version: str | None = field(default=None, metadata=key("of Fencepost, as `0.1.0`; absent in older histories"))
    scenario: str
    protocol: str
    changes: tuple[str, ...] | None = field(
        default=None, metadata=key("rule=value: what makes a mutant of the protocol")
    )
    rules: Mapping[str, str] = field(metadata=key("the value of each rule"))
    traits: Mapping[str, str] | None = field(
        default=None,
        metadata=key(
            "the value of each trait of the target, which the checkers ask: what its evidence can be; absent in "
            "older histories"
        ),
    )
    host: str
    target: str
    seed: int
    random: bool | None = field(default=None, metadata=key("true for a random schedule"))
    again: str | None = field(default=None, metadata=key("the command that repeats the run"))
    schedule: str | None = field(default=None, metadata=key("the text of the schedule, as in a scenario file"))
    power_tier: str = field(metadata=key("`none`, `loop` or `watermark`"))
    nodes: Mapping[str, int] = field(metadata=key("each node's broker id"))
    replicas: tuple[str, ...] = field(metadata=key("names of nodes"))
    topic: str
    partition: int
    records: Mapping[str, tuple[str, ...]] = field(metadata=key("the values of each group of records, as `m1`"))
    min_isr: int
    unclean: bool = field(metadata=key("whether a leader may be elected from outside the ISR"))
    replica_lag_ms: int | None = field(
        default=None,
        metadata=key("how long a follower may lag and stay in the ISR; absent if longer than a run"),
    )
    delete_retention_ms: int | None = field(
        default=None, metadata=key("how long compaction keeps a tombstone; absent if longer than a run")
    )
    retains: bool | None = field(
        default=None, metadata=key("true if brokers delete the oldest files of a log by their age or its size")
    )
    message_format: str | None = field(default=None, metadata=key("`with_epochs` or `without_epochs`"))
    sends_once: bool | None = field(default=None, metadata=key("the client sends no record again"))
    idempotent: tuple[str, ...] | None = field(
        default=None,
        metadata=key("the producers whose records are sent again and must be there once; absent for none"),
    )
    untold: tuple[str, ...] | None = field(
        default=None,
        metadata=key("the producers that are not told at which offset a record was acknowledged; absent for none"),
    )
    partitions: int = field(
        default=1, metadata=key("how many partitions of the topic there are, from `partition` on; absent for one")
    )
    must_play: tuple[int, ...] | None = field(
        default=None, metadata=key("lines of the steps that this replay must not skip, or it proves nothing")
    )
    further: Mapping[str, tuple[str, ...]] | None = field(
        default=None, metadata=key("the replicas of each other partition, by its name, as `orders-0`")
    )
    churned: tuple[str, ...] | None = field(
        default=None,
        metadata=key("the topics that clients delete and create again; rules of partitions skip them"),
    )
    removed: tuple[str, ...] | None = field(
        default=None,
        metadata=key("the partitions that an operator removes, as `orders-1`; rules of partitions skip them"),
    )
    deletes_later: bool | None = field(
        default=None,
        metadata=key(
            "true if the delete of a topic may take effect after it was acknowledged; in older histories alone: "
            "now it is a trait"
        ),
    )
    services: tuple[str, ...] | None = field(
        default=None,
        metadata=key("the processes of services, which are no nodes, where the schedule may hit them"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed(Event):
    """A node that is down follows another protocol from its next start on; its disk stays."""

    PROCESS: ClassVar[str] = "runner"

    node: str = field(metadata=key("its name"))
    protocol: str = field(
        metadata=key("as `kip101`, or `kip320@kip101` for a program that speaks as an older one")
    )
    rules: Mapping[str, str] = field(metadata=key("the value of each rule"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Event):
    """A step of the scenario. In a random schedule a failed or skipped step is `info`."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INVOKE, OpType.OK, OpType.FAIL, OpType.INFO)
    PROCESS: ClassVar[str] = "runner"

    line: int = field(metadata=key("the line number in the scenario; 0 for setting up the cluster"))
    text: str
    narrative: str = field(metadata=key("the comment above it"))
    error: str = field(default="", metadata=key("on fail, and on info if it was tried"))
    skipped: str = field(default="", metadata=key("on info: why it was not applicable"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleStopped(OfPartition):
    """The live check saw a violation, so the schedule ended here; the checkers judge the run like any other."""

    PROCESS: ClassVar[str] = "runner"

    rule: str = field(metadata=key("a rule of the live check, as in checkers.md"))
    offsets: tuple[tuple[int, int], ...] = field(metadata=key("[first, end) ranges that it is about"))
    sentence: str
    proof: tuple[int, ...] = field(metadata=key("indexes of the ops that show it"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited(Event):
    """A node ended although no fault took it down, or ended again when it was started before the final reads."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.FAIL,)
    PROCESS: ClassVar[str] = "runner"

    node: str
    error: str = field(metadata=key("why, as far as it said so, and the last lines that it printed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Healed(Event):
    """All faults are undone and the cluster is whole; on fail, it is not."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.OK, OpType.FAIL)
    PROCESS: ClassVar[str] = "runner"

    missing: str = field(default="", metadata=key("on fail: what is missing"))
    waited: bool | None = field(
        default=None, metadata=key("on fail: true if the time was up; false if waiting had become pointless")
    )

    unhealed: tuple[str, ...] | None = field(
        default=None,
        metadata=key("on fail: fault and node of each fault that could not be undone; the run is then unknown"),
    )
    outside: tuple[str, ...] | None = field(
        default=None, metadata=key("on fail: partition and node of each replica that runs and is not in the ISR")
    )
    said: tuple[str, ...] | None = field(
        default=None,
        metadata=key("on fail: partition and node, and what the node says of its part in the partition"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Event):
    """The last op of a complete history, except for events that nodes emit while they are taken down."""

    PROCESS: ClassVar[str] = "runner"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerNote(Event):
    """Something of a node could not be kept, such as its logs."""

    PROCESS: ClassVar[str] = "runner"

    node: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineUnreadable(Event):
    """A node sent a line that could not be read, so that the run is unknown."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.FAIL,)
    PROCESS: ClassVar[str] = "collector"

    error: str = field(metadata=key("the line's beginning, and what was expected"))
