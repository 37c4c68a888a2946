"""What comes into the core (events) and what it wants done (effects), in the order in which it must happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from targets.broker.core.log_port import LogPort, Recovery
from targets.broker.core.messages import Request, Response, TopicPartition
from targets.broker.core.zookeeper import ZkOp, ZkResult


# --- events ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The broker's process is up and its logs are open."""

    logs: tuple[tuple[LogPort, Recovery], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asked, so that the answer finds its way back: a connection and a number on it."""

    connection: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request from a client, a follower or the controller."""

    caller: Caller
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Hungup:
    """A connection is gone: nothing that waits on it will be answered."""

    connection: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The answer to a Send, None when it cannot come any more (connection refused, lost or timed out)."""

    tag: int
    response: Response | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkAnswered:
    """The results of a ZkAsk, in its order, and the session in which they were made."""

    tag: int
    session: int
    results: tuple[ZkResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkFired:
    """A watch fired: read again."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkSession:
    """A new ZooKeeper session began (its id), or the old one is gone for good (0)."""

    session: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The time that was armed for has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """A Flush completed: the log is durable up to here, if the generation is still the replica's."""

    tp: TopicPartition
    generation: int
    upto: int


Event: TypeAlias = Start | Received | Hungup | Answered | ZkAnswered | ZkFired | ZkSession | Tick | Flushed


# --- effects -----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Send the response to whoever asked."""

    to: Caller
    response: Response


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Ask another broker; `channel` keeps a fetcher's questions apart from a controller's commands."""

    to: int
    tag: int
    channel: str
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkAsk:
    """Do these on ZooKeeper, in order."""

    tag: int
    ops: tuple[ZkOp, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteHighWatermarks:
    """Replace the high watermark checkpoint, durably."""

    high_watermarks: tuple[tuple[TopicPartition, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """Make a log durable up to its end; Flushed follows."""

    tp: TopicPartition
    generation: int
    upto: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Send a Tick at this time (ns, the driver's clock); replaces what was armed before."""

    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observe:
    """Tell the history, at once and unbuffered (docs/history.md, source broker)."""

    f: str
    value: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """End the process: this broker must not go on, and why."""

    reason: str


Effect: TypeAlias = Answer | Send | ZkAsk | WriteHighWatermarks | Flush | Arm | Observe | Exit
