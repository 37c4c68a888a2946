"""The core's inputs (events) and outputs (effects); effects must be applied in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from targets.broker.core.log_port import LogPort, Recovery
from targets.broker.core.messages import Request, Response, TopicPartition
from targets.broker.core.zookeeper import ZkOp, ZkResult

# In place of a broker's id: a request names no receiver.
ANYBODY: Final = -1


# --- events ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The broker's process is up and its logs are open."""

    logs: tuple[tuple[LogPort, Recovery], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The source of a request, to address the answer: a connection and a number on it."""

    connection: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """
    A request from a client, a follower or the controller.

    Attributes:
        of_client: it came in on the clients' listener, where only clients may speak.
        meant_for: the broker that it names as its receiver, ANYBODY if it names none.
    """

    caller: Caller
    request: Request
    of_client: bool = False
    meant_for: int = ANYBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class Misdirected:
    """A connection whose first words, before any request to the core, name another broker as their receiver."""

    connection: int
    meant_for: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hungup:
    """A connection is closed: requests waiting on it get no answer."""

    connection: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The answer to a Send; None when it cannot come any more (connection refused, lost or timed out)."""

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
    """The armed time has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """A Flush completed: the log is durable up to here, if the generation is still the replica's."""

    tp: TopicPartition
    generation: int
    upto: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """The broker is to end, once others lead what it leads."""


Event: TypeAlias = (
    Start | Received | Misdirected | Hungup | Answered | ZkAnswered | ZkFired | ZkSession | Tick | Flushed | Leave
)


# --- effects -----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Send the response to the caller."""

    to: Caller
    response: Response


@dataclass(frozen=True, slots=True, kw_only=True)
class HangUp:
    """Close a connection without an answer; reason: why, "" if that was said before. Hungup follows."""

    connection: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send a request to another broker; `channel` separates a fetcher's requests from a controller's commands."""

    to: int
    tag: int
    channel: str
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkAsk:
    """Run these operations on ZooKeeper, in order."""

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
    """Send a Tick at this time (ns, the driver's clock); replaces the time armed before."""

    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observe:
    """Emit an event to the history, at once and unbuffered (docs/history.md, source broker)."""

    f: str
    value: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """End the process, with the reason why this broker must not continue."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """End the process cleanly: it was asked to, and has left."""


Effect: TypeAlias = Answer | HangUp | Send | ZkAsk | WriteHighWatermarks | Flush | Arm | Observe | Exit | Left
