"""Effects: what a driver must do after a step of the core, in order; and the fields of the links' events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from harness.events import Event
from harness.fabric.core.lanes import Connection, Frame
from harness.fabric.core.rules import Hold, Pattern, Seen


@dataclass(frozen=True, slots=True)
class Pass:
    """Forward the frame; if its `end` is set, forward the end of the sending side."""

    frame: Frame


@dataclass(frozen=True, slots=True)
class Lose:
    """The frame is lost; judge the next one of its lane."""

    frame: Frame


@dataclass(frozen=True, slots=True)
class Later:
    """Judge the lane again at this time."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class Held:
    """Add the frame to the hold; follows its Record, so that the history has it before waiting threads wake."""

    hold: Hold
    seen: Seen


@dataclass(frozen=True, slots=True)
class Over:
    """Tell the hold that it was released or dropped."""

    hold: Hold


@dataclass(frozen=True, slots=True)
class Reset:
    """Reset both sides of the connection."""

    connection: Connection


@dataclass(frozen=True, slots=True)
class Wake:
    """Judge every lane again."""


@dataclass(frozen=True, slots=True)
class Record:
    """Write an event into the history."""

    event: Event


Effect: TypeAlias = Pass | Lose | Later | Held | Over | Reset | Wake | Record


def rule_fields(pattern: Pattern) -> dict[str, Any]:
    """Return a rule as the fields of an event (harness.events.LinkRule, Heal)."""
    return {
        "link": (pattern.src, pattern.dst),
        "api": pattern.api,
        "direction": pattern.direction.value,
        "from_offset": pattern.from_offset,
        "topic": pattern.topic,
    }


def frame_fields(seen: Seen) -> dict[str, Any]:
    """Return a frame as the fields of an event (harness.events.OfFrame); a fetch has its highest offset."""
    return {
        "link": seen.link,
        "api": seen.api,
        "direction": seen.direction.value,
        "offset": max((offset for _, offset in seen.offsets), default=None),
    }
