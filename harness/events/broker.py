"""What brokers report of themselves, as they send it, or print it; brokers are named by id."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.events.base import Event, OfPartition, key


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Event):
    """A new process of this node."""

    id: int
    pid: int
    protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerNote(Event):
    """A checkpoint of the data directory that could not be read."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready(Event):
    """The start-up reading of ZooKeeper is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered(OfPartition):
    """A replica's log as it was found at start."""

    log_end_offset: int
    clean: bool
    cut_bytes: int
    reason: str = field(
        metadata=key(
            "`clean`, `torn`, `zeros`, `length`, `magic`, `crc`, `disorder` or `below-log-start`; then `+` and a "
            "word for every checkpoint that could not be read"
        )
    )
    epochs: tuple[tuple[int, int], ...] = field(metadata=key("epoch and start offset"))
    high_watermark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered(Event):
    """The node is registered."""

    taken_over: bool = field(metadata=key("an old registration of this node was replaced"))
    czxid: int | None = field(default=None, metadata=key("distinguishes this registration from all others"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOffice(Event):
    """The node took the controller's office, or left it."""

    epoch: int = field(metadata=key("the controller's own"))
    active: bool = field(metadata=key("it took office"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Elected(OfPartition):
    """The controller's decision is written: who leads."""

    leader: int = field(metadata=key("id; -1 for none"))
    epoch: int
    isr: tuple[int, ...] = field(metadata=key("ids"))
    unclean: bool = field(metadata=key("from outside the ISR"))
    saw: tuple[tuple[int, int], ...] | None = field(
        default=None, metadata=key("id and czxid of those that were registered when the decision was made")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandDropped(Event):
    """A command was dropped by the controller: a broker that answers nothing has too many waiting."""

    broker: int = field(metadata=key("id"))
    queued: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader(OfPartition):
    """The node leads."""

    epoch: int
    log_end_offset: int
    high_watermark: int
    isr: tuple[int, ...] = field(metadata=key("ids"))
    resumed: bool | None = field(default=None, metadata=key("it leads again in its old epoch"))
    unclean: bool | None = field(default=None, metadata=key("in older histories"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower(OfPartition):
    """The node follows."""

    epoch: int
    leader: int = field(metadata=key("id"))
    log_end_offset: int
    high_watermark: int
    kept: bool | None = field(
        default=None, metadata=key("it goes on fetching from the leader that it had, and cuts nothing")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(OfPartition):
    """Records were appended."""

    base: int
    end: int
    epoch: int
    role: str = field(metadata=key("`leader` or `follower`"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate(OfPartition):
    """The log was cut, or was found to need no cut."""

    start: int = field(metadata=key("where the log ended before", name="from"))
    to: int
    end: int = field(metadata=key("where the log ends after it"))
    reason: str = field(
        metadata=key("`high-watermark`, `epoch-answer`, `no-epoch-information`, `out-of-range` or `full`")
    )
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HighWatermark(OfPartition):
    """The high watermark moved."""

    to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChanged(OfPartition):
    """The leader changed the ISR."""

    isr: tuple[int, ...] = field(metadata=key("ids"))
    zk_version: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced(OfPartition):
    """The node's leader refused it as one of an older epoch; it waits for the next command."""

    epoch: int
    leader: int = field(metadata=key("id"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaiting(OfPartition):
    """The node came back, reads that it leads this epoch, and waits for a newer one."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck(OfPartition):
    """The replica cannot go on following."""

    reason: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped(OfPartition):
    """The replica was deleted here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush(Event):
    """A file of the data directory is durable up to a length."""

    path: str = field(metadata=key("relative to the data directory"))
    length: int = field(metadata=key("in bytes"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed(OfPartition):
    """A flush that the replica asked for is complete."""

    upto: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(OfPartition):
    """The epoch checkpoint was replaced."""

    what: str = field(metadata=key("`epochs`"))
    content: tuple[tuple[int, int], ...] = field(metadata=key("epoch and start offset"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed(OfPartition):
    """A line of a node's log, where nodes report nothing themselves; of each node and kind the first 200."""

    what: str = field(metadata=key("`truncate`, `stuck`, `fenced` or `exiting`"))
    line: str
    to: int | None = field(default=None, metadata=key("where a log was cut to"))
