"""
The effects of faults on nodes, and how timelines shade them: a fault declares them, and its ops record them.

Runner, random schedules, checkers and timelines read effects, never the names of faults. So a new fault needs no
change in any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Final

from harness.events import Injection
from harness.model import HistoryError, Op


class Effect(StrEnum):
    """
    The effect of a fault on a node.

    The first group lasts until it is undone, in this order: a paused process does nothing, so it cannot register
    when its link is healed; the metadata must answer before a node registers, or is asked for anything; it can
    register at its start only if it is not cut off, and needs its clock and its disk; a move that goes on may wait
    for a node that is down, and the next move for its end. The other effects are momentary. A fault with no effect
    (NONE) proves nothing if it bites.
    """

    PAUSED = "paused"
    METADATA_LOST = "metadata-lost"
    METADATA_WEAK = "metadata-weak"
    PACKETS_IMPAIRED = "packets-impaired"
    LINKS_IMPAIRED = "links-impaired"
    PARTITIONED = "partitioned"
    CLIENTS_CUT = "cut-off-from-clients"
    CUT_OFF = "cut-off-from-metadata"
    CLOCK_WRONG = "clock-wrong"
    DISK_GONE = "disk-gone"
    DISK_SLOW = "disk-slow"
    DOWN = "down"
    POWER_LOST = "power-lost"
    PAGES_LOST = "pages-lost"
    MOVED_AWAY = "moved-away"

    SESSION_ENDED = "session-ended"
    OFFICE_LOST = "office-lost"
    LEADER_MOVED = "leader-moved"
    ANSWER_LOST = "answer-lost"
    LOG_CUT = "log-cut"
    DISK_LOST = "disk-lost"
    BIT_ROT = "bit-rot"
    NONE = "none"

    @property
    def lasts(self) -> bool:
        """Whether the effect lasts until it is undone."""
        return self in LASTING

    @property
    def is_down(self) -> bool:
        """Whether the node has no process."""
        return self in DOWN

    @property
    def leaves_the_cluster(self) -> bool:
        """Whether the node loses its membership, at once or when it has not been heard of for too long."""
        return self.is_down or self in (Effect.CUT_OFF, Effect.SESSION_ENDED)

    @property
    def ends_when_node_returns(self) -> bool:
        """Whether undoing it includes that the node registers, so that a failure may be the node's own."""
        return self.is_down or self is Effect.CUT_OFF


DOWN: Final = frozenset({Effect.DOWN, Effect.POWER_LOST, Effect.PAGES_LOST})
# After these effects a log may lack bytes that were written and not flushed.
UNFLUSHED_LOST: Final = frozenset({Effect.POWER_LOST, Effect.PAGES_LOST})
# The effects that may lawfully end a copy of a record.
LOSSY: Final = UNFLUSHED_LOST | {Effect.LOG_CUT, Effect.DISK_LOST, Effect.DISK_GONE, Effect.BIT_ROT}
# Frames of these nodes' links are lost, late or wait: what is not answered is excused, and nothing else.
ON_LINKS: Final = frozenset({Effect.PARTITIONED, Effect.LINKS_IMPAIRED, Effect.CLIENTS_CUT})
# Clients do not reach the node, or hardly: nobody can tell by asking it whether it serves.
UNREACHED: Final = frozenset({Effect.CLIENTS_CUT, Effect.PACKETS_IMPAIRED})
# The node does not reach the metadata, or not all of their servers: its membership ends by its timeout alone.
ON_METADATA: Final = frozenset({Effect.METADATA_LOST, Effect.METADATA_WEAK})
LASTING: Final = (
    DOWN
    | ON_LINKS
    | ON_METADATA
    | {
        Effect.CUT_OFF,
        Effect.CLOCK_WRONG,
        Effect.DISK_GONE,
        Effect.DISK_SLOW,
        Effect.MOVED_AWAY,
        Effect.PACKETS_IMPAIRED,
        Effect.PAUSED,
    }
)


class Band(StrEnum):
    """How a timeline shades a fault: until the node restarts, resumes, returns or is healed; or only a mark."""

    DOWN = "down"
    PAUSED = "paused"
    ZOMBIE = "zombie"
    IMPAIRED = "impaired"
    MARK = "mark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nature:
    """
    The properties of a fault that its ops record.

    Attributes:
        effect: its effect on its nodes.
        heals: the effects that it ends on its nodes; empty for a fault that undoes none.
        band: how timelines shade it.
    """

    effect: Effect = Effect.NONE
    heals: frozenset[Effect] = frozenset()
    band: Band = Band.MARK

    def as_fields(self) -> Mapping[str, Any]:
        """Return the fields of the fault's events (harness.events.Injection)."""
        heals = tuple(effect.value for effect in Effect if effect in self.heals)
        return {"effect": self.effect.value, "band": self.band.value, "heals": heals or None}


# A fault's old name -> its current name. Scenarios, schedules and options may have either, for one release.
RENAMED_FAULTS: Final[Mapping[str, str]] = {"resign": "depose-controller"}

# Older histories have only the names of faults, without effects.
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
    "flush": Nature(),
}


def is_known(fault: Injection) -> bool:
    """Whether the fault's effect is known: recorded with it, or by its name in older histories."""
    return bool(fault.effect) or fault.name in _OLDER


def nature_of(op: Op) -> Nature:
    """
    Return the properties of a nemesis op's fault.

    Raises:
        HistoryError: the op names an unknown effect or band.
    """
    fault = op.event
    if not isinstance(fault, Injection) or not fault.effect:
        return _OLDER.get(op.f, Nature())
    try:
        return _nature(fault.effect, fault.heals or (), fault.band or Band.MARK)
    except ValueError as error:
        raise HistoryError(f"op {op.index}: {op.f}: {error}; expected one of harness/effect.py") from error


@cache
def _nature(effect: str, heals: tuple[str, ...], band: str) -> Nature:
    return Nature(effect=Effect(effect), heals=frozenset(map(Effect, heals)), band=Band(band))
