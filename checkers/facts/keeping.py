"""What is known of one replica and one promised record at a time, where brokers report nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from harness.model import Op


class Standing(Enum):
    """What is known of one replica and one record."""

    DUE = auto()  # it must have the record
    EXCUSED = auto()  # it need not have it
    GONE = auto()  # it had to have it, and is without it by no fault


class Why(Enum):
    """Why a replica need not have a record."""

    OUTSIDE = auto()  # it was not surely in the ISR
    POWER = auto()  # it lost its power
    DELETED = auto()  # the harness deleted it
    FOLLOWED = auto()  # it may have followed a leader that need not have it


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """
    A replica's standing from a time on.

    Attributes:
        op: what shows it: the fault, or the op that shows that the record is gone.
        begun: the index of the op from which on the replica surely had it, if it is due.
        leader: a leader that it may have followed since, and that need not have the record; "" if none.
        text: how it was without it, after the node's name, if it is gone.
    """

    since_ns: int
    standing: Standing
    op: Op | None = None
    why: Why | None = None
    begun: int = -1
    leader: str = ""
    text: str = ""
