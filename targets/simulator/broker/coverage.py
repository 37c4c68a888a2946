"""
Counts which events the cores of a world processed, and which effects they had: what a search has exercised.

A name is `received Fetch`, `answer NOT_ENOUGH_REPLICAS`, `observe truncate: epoch-answer` and so on. `REACHABLE`
has all names that a core could have, so that a search can say what it never reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, get_args

from harness.events import EVENTS, OpType, Printed, Source, Truncate
from harness.events.codec import decode
from targets.broker.core.events import (
    Answer,
    Answered,
    Arm,
    Effect,
    Event,
    Observe,
    Received,
    Send,
    ZkAnswered,
    ZkAsk,
    ZkSession,
)
from targets.broker.core.messages import ErrorCode, Request
from targets.broker.core.zookeeper import ZkError

# Without one of these a world does nothing: they say nothing about a search.
_ALWAYS: Final = (Arm, ZkAsk)
# Codes that no answer of the core has: the wire layer's own, and those that it only understands.
_NO_ANSWER: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
    }
)
# Observations that the driver makes, not the core.
_DRIVERS: Final = frozenset({"started", "ended", "flush", "note", "stuck"})


class Coverage:
    """The counts of one world; `note` is called at every step of every core, so it only counts."""

    def __init__(self) -> None:
        self._counts: Counter[Hashable] = Counter()

    def note(self, event: Event, effects: Sequence[Effect]) -> None:
        """Count an event and its effects."""
        counts = self._counts
        match event:
            case Received(request=request):
                counts["received", type(request)] += 1
            case Answered(response=response):
                counts["answered", type(response)] += 1
            case ZkAnswered(results=results):
                for result in results:
                    if isinstance(result, ZkError):
                        counts["zookeeper", result] += 1
            case ZkSession(session=session):
                counts["session", bool(session)] += 1
            case _:
                counts["event", type(event)] += 1
        for effect in effects:
            if isinstance(effect, Observe):
                counts["observe", effect.f, _reason(effect)] += 1
            elif isinstance(effect, Answer):
                for code in _errors(effect.response):
                    counts["answer", code] += 1
            elif isinstance(effect, Send):
                counts["send", type(effect.request)] += 1
            elif not isinstance(effect, _ALWAYS):
                counts["effect", type(effect)] += 1

    def named(self) -> Mapping[str, int]:
        """Return the counts by name, in the order of names."""
        return dict(sorted((_name(key), count) for key, count in self._counts.items()))


def _reason(effect: Observe) -> str | None:
    """Return why a log was truncated; None for any other observation."""
    if effect.f != "truncate":
        return None
    event = decode(Source.BROKER, effect.f, OpType.INFO, effect.value)
    return event.reason if isinstance(event, Truncate) else None


def _errors(response: Any) -> Iterator[ErrorCode]:
    """Yield the error codes of an answer other than NONE."""
    own = getattr(response, "error", ErrorCode.NONE)
    if own:
        yield own
    for part in getattr(response, "results", None) or getattr(response, "answers", None) or ():
        if part.error:
            yield part.error
    for _, code, *_ in getattr(response, "errors", ()):
        if code:
            yield code


def _name(key: Any) -> str:
    what, about, *more = key
    match what:
        case "received" | "send":
            return f"{what} {about.__name__.removesuffix('Request')}"
        case "answered":
            return f"answered {'nothing' if about is type(None) else about.__name__.removesuffix('Response')}"
        case "answer":
            return f"answer {about.name}"
        case "zookeeper":
            return f"zookeeper {about.name}"
        case "session":
            return "zookeeper session begun" if about else "zookeeper session over"
        case "observe":
            return f"observe {about}" if more[0] is None else f"observe {about}: {more[0]}"
    return f"{what} {about.__name__}"


def _reachable() -> Iterator[str]:
    for kind in get_args(Request):
        yield _name(("received", kind))
    for kind in get_args(Request):
        if kind.__name__.removesuffix("Request") in _BETWEEN_BROKERS:
            yield _name(("send", kind))
            yield f"answered {kind.__name__.removesuffix('Request')}"
    yield "answered nothing"
    for code in ErrorCode:
        if code not in _NO_ANSWER:
            yield _name(("answer", code))
    for error in ZkError:
        yield _name(("zookeeper", error))
    yield from ("zookeeper session begun", "zookeeper session over")
    for (source, f), event in EVENTS.items():
        if source is Source.BROKER and event is not Printed and f not in (*_DRIVERS, "truncate"):
            yield f"observe {f}"
    for reason in _REASONS:
        yield f"observe truncate: {reason}"
    for name in ("Flushed", "Hungup", "Start", "Tick", "ZkFired"):
        yield f"event {name}"
    for name in ("Exit", "Flush", "WriteHighWatermarks"):
        yield f"effect {name}"


_BETWEEN_BROKERS: Final = frozenset(
    {"Fetch", "ListOffsets", "OffsetForLeaderEpoch", "LeaderAndIsr", "StopReplica"}
)
_REASONS: Final = ("high-watermark", "epoch-answer", "no-epoch-information", "out-of-range", "full")
REACHABLE: Final = frozenset(_reachable())
