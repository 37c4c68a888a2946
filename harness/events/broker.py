"""Events that brokers emit, or that are read from their printed lines; brokers are named by id."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.events.base import Event, OfPartition, key


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Event):
    """A process of this node started."""

    id: int
    pid: int
    protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Event):
    """The process ends by itself, since it must not continue: after a failed write or flush, for example."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerNote(Event):
    """A checkpoint of the data directory could not be read."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready(Event):
    """The node has read the metadata at its start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered(OfPartition):
    """A replica's log as the node found it at its start."""

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
class Member(Event):
    """The node became a member of the cluster: it registered."""

    taken_over: bool = field(metadata=key("it replaced an old membership of this node"))
    incarnation: int | None = field(default=None, metadata=key("distinguishes this membership from all others"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving(Event):
    """The node was asked to end, and has others lead its partitions first."""

    leads: int = field(metadata=key("how many partitions it leads that another member of the ISR can lead"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOffice(Event):
    """The node became controller, or resigned."""

    epoch: int = field(metadata=key("the controller epoch"))
    active: bool = field(metadata=key("it became controller"))


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficeDoubted(Event):
    """A controller found other metadata than it had written, and goes on, begins anew or resigns."""

    epoch: int = field(metadata=key("the controller epoch that it held"))
    found: int = field(metadata=key("the epoch in the metadata; -1 if it cannot be read"))
    why: str = field(metadata=key("what it found"))
    then: str = field(metadata=key("what it does"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Elected(OfPartition):
    """The controller wrote its decision of a leader to the metadata."""

    leader: int = field(metadata=key("id; -1 for none"))
    epoch: int
    isr: tuple[int, ...] = field(metadata=key("ids"))
    unclean: bool = field(metadata=key("from outside the ISR"))
    saw: tuple[tuple[int, int], ...] | None = field(
        default=None, metadata=key("id and incarnation of the members at the time of the decision")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandDropped(Event):
    """The controller forgot a deletion that a broker is to be told, because too many wait for it."""

    broker: int = field(metadata=key("id"))
    queued: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataUnreadable(Event):
    """An entry of the metadata is missing, or holds something else than it promises; the broker goes on."""

    path: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader(OfPartition):
    """The node leads."""

    epoch: int
    log_end_offset: int
    high_watermark: int
    isr: tuple[int, ...] = field(metadata=key("ids"))
    resumed: bool | None = field(default=None, metadata=key("it resumed leadership in its old epoch"))
    unclean: bool | None = field(default=None, metadata=key("in older histories"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower(OfPartition):
    """The node follows."""

    epoch: int
    leader: int = field(metadata=key("id"))
    log_end_offset: int
    high_watermark: int
    kept: bool | None = field(
        default=None, metadata=key("it keeps fetching from the same leader, and truncates nothing")
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
    """The log was truncated, or needed no truncation."""

    start: int = field(metadata=key("log end offset before", name="from"))
    to: int
    end: int = field(metadata=key("log end offset after"))
    reason: str = field(
        metadata=key(
            "`high-watermark`, `epoch-answer`, `no-epoch-information`, `out-of-range`, `full` or `corrupt`"
        )
    )
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStart(OfPartition):
    """The start of a log moved up: the records below it are deleted."""

    start: int = field(metadata=key("log start offset before", name="from"))
    to: int
    reason: str = field(
        metadata=key(
            "`delete-records`: a client asked for it; `leader`: the leader's log starts there; `retention-time` "
            "and `retention-size`: what is below is too old, or too much"
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TookFormat(OfPartition):
    """The node has taken up another message format for a topic: as leader it writes in it, in 2 with epochs."""

    to: int = field(metadata=key("1 or 2"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCleaned(OfPartition):
    """Compaction has left one record of each key in a part of the log."""

    upto: int = field(metadata=key("the offset before which that part ends"))
    size: int = field(metadata=key("how many bytes went"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrupt(OfPartition):
    """The node found a batch of its own log whose bytes are not what it had written; it serves it to nobody."""

    base: int = field(metadata=key("its first offset"))
    end: int = field(metadata=key("exclusive; the next offset if its header cannot be read"))
    path: str = field(metadata=key("of the file, relative to the data directory"))
    position: int = field(metadata=key("the batch's first byte in the file"))
    what: str = field(metadata=key("what is wrong with it"))
    role: str = field(metadata=key("`leader`, `follower` or `none`"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired(OfPartition):
    """A follower has put its leader's batch in the place of a damaged one: its log is again what it was."""

    base: int = field(metadata=key("the batch's first offset"))
    end: int = field(metadata=key("exclusive"))
    leader: int = field(metadata=key("id"))


@dataclass(frozen=True, slots=True, kw_only=True)
class HighWatermark(OfPartition):
    """The high watermark moved."""

    to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChanged(OfPartition):
    """The leader changed the ISR."""

    isr: tuple[int, ...] = field(metadata=key("ids"))
    version: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced(OfPartition):
    """The node's leader refused it because its epoch is old; it waits to learn of a newer one."""

    epoch: int
    leader: int = field(metadata=key("id"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaiting(OfPartition):
    """The node restarted, read in the metadata that it leads in this epoch, and waits for a newer one."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck(OfPartition):
    """The replica cannot go on following."""

    reason: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped(OfPartition):
    """The replica was deleted on this node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush(Event):
    """A file of the data directory is durable up to a length."""

    path: str = field(metadata=key("relative to the data directory"))
    length: int = field(metadata=key("in bytes"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed(OfPartition):
    """A flush that the replica asked for has completed."""

    upto: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(OfPartition):
    """The epoch checkpoint was replaced."""

    what: str = field(metadata=key("`epochs`"))
    content: tuple[tuple[int, int], ...] = field(metadata=key("epoch and start offset"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed(OfPartition):
    """A printed line of a node that emits no events; the first 200 of each node and kind are recorded."""

    what: str = field(metadata=key("`truncate`, `stuck`, `fenced`, `format`, `exiting`, `failed` or `skip`"))
    line: str
    to: int | None = field(
        default=None, metadata=key("the offset that a log was truncated to, or the number of the message format")
    )
