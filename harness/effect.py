"""
What faults do to nodes, and how timelines shade it: data that a fault declares and that its history ops carry.

Runner, random schedules, checkers and timelines read effects, never names of faults; so a new fault needs no line
in any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from harness.events import Injection
from harness.model import HistoryError, Op


class Effect(StrEnum):
    """
    What a fault does to a node.

    The first ones last until they are undone, and are undone in this order: a node that is cut off could not
    register when it starts, and a wrong clock or a lost disk must be right again before it starts. The others are
    over at once; a fault without any effect proves nothing when it bites.
    """

    CUT_OFF = "cut-off-from-zookeeper"
    CLOCK_WRONG = "clock-wrong"
    DISK_GONE = "disk-gone"
    PAUSED = "paused"
    DOWN = "down"
    POWER_LOST = "power-lost"

    SESSION_ENDED = "session-ended"
    OFFICE_LOST = "office-lost"
    LEADER_MOVED = "leader-moved"
    LOG_CUT = "log-cut"
    NONE = "none"

    @property
    def lasts(self) -> bool:
        """Whether it lasts until it is undone."""
        return self in LASTING

    @property
    def is_down(self) -> bool:
        """Whether the node has no process."""
        return self in DOWN

    @property
    def leaves_zookeeper(self) -> bool:
        """Whether the node loses its registration, at once or when its session ends."""
        return self.is_down or self in (Effect.CUT_OFF, Effect.SESSION_ENDED)

    @property
    def ends_when_node_returns(self) -> bool:
        """Whether undoing it waits for the node to register, so that the node may be to blame when it fails."""
        return self.is_down or self is Effect.CUT_OFF


DOWN: Final = frozenset({Effect.DOWN, Effect.POWER_LOST})
LASTING: Final = DOWN | {Effect.CUT_OFF, Effect.CLOCK_WRONG, Effect.DISK_GONE, Effect.PAUSED}


class Band(StrEnum):
    """How a timeline shades a fault: until the node is back, goes on, returns, or is healed; or a mere mark."""

    DOWN = "down"
    PAUSED = "paused"
    ZOMBIE = "zombie"
    IMPAIRED = "impaired"
    MARK = "mark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nature:
    """
    What a fault does, as its ops in a history say it.

    Attributes:
        effect: what it does to its nodes.
        heals: the effects that it ends on its nodes; empty for a fault that undoes none.
        band: how timelines shade it.
    """

    effect: Effect = Effect.NONE
    heals: frozenset[Effect] = frozenset()
    band: Band = Band.MARK

    def as_fields(self) -> Mapping[str, Any]:
        """Return the fields that every event of the fault has (harness.events.Injection)."""
        heals = tuple(effect.value for effect in Effect if effect in self.heals)
        return {"effect": self.effect.value, "band": self.band.value, "heals": heals or None}


# A fault's old name -> its name. Scenarios, schedules and options are read with either, for one release.
RENAMED_FAULTS: Final[Mapping[str, str]] = {"resign": "depose-controller"}

# Runs that are older than the keys above name their faults only.
_OLDER: Final[Mapping[str, Nature]] = {
    "kill": Nature(effect=Effect.DOWN, band=Band.DOWN),
    "stop": Nature(effect=Effect.DOWN, band=Band.DOWN),
    "power-loss": Nature(effect=Effect.POWER_LOST, band=Band.DOWN),
    "pause": Nature(effect=Effect.PAUSED, band=Band.PAUSED),
    "zombie": Nature(effect=Effect.CUT_OFF, band=Band.ZOMBIE),
    "restart": Nature(heals=DOWN),
    "start": Nature(heals=DOWN),
    "resume": Nature(heals=frozenset({Effect.PAUSED})),
    "return": Nature(heals=frozenset({Effect.CUT_OFF})),
    "expire": Nature(effect=Effect.SESSION_ENDED),
    "resign": Nature(effect=Effect.OFFICE_LOST),
    "elect": Nature(effect=Effect.LEADER_MOVED),
    "delete-active-segment": Nature(effect=Effect.LOG_CUT),
}


def nature_of(op: Op) -> Nature:
    """
    Return what the fault of a nemesis op does.

    Raises:
        HistoryError: the op names an effect or a band that does not exist.
    """
    fault = op.event
    if not isinstance(fault, Injection) or not fault.effect:
        return _OLDER.get(op.f, Nature())
    try:
        return Nature(
            effect=Effect(fault.effect),
            heals=frozenset(map(Effect, fault.heals or ())),
            band=Band(fault.band or Band.MARK),
        )
    except ValueError as error:
        raise HistoryError(f"op {op.index}: {op.f}: {error}; expected one of harness/effect.py") from error
