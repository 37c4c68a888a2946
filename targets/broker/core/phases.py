"""
The follower's phases and the table of all legal transitions.

    TRUNCATING --CUT--> FETCHING --CUT--> FETCHING          FENCED and FAILED wait for the next leader
        ^--CUT_PARTLY--'  as long as the walk goes on (KIP-279)
Source:  Kafka Replication Design V3, C and G; KIP-279; KIP-320; Kafka's AbstractFetcherThread.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from targets.broker.core.state import Phase, Replica


class Turn(StrEnum):
    """An event that moves a follower between phases."""

    FOLLOW = "is to follow a leader"
    KEEP = "is to follow the same leader in a newer epoch"
    CUT = "was cut to the leader's log"
    CUT_PARTLY = "was cut, and asks once more"
    OUT_OF_RANGE = "asked for an offset that the leader lacks"
    FENCED = "was fenced by its leader"
    DISORDER = "was given records that do not fit its log"


MOVES: Final[Mapping[Phase, Mapping[Turn, Phase]]] = {
    Phase.TRUNCATING: {
        Turn.FOLLOW: Phase.TRUNCATING,
        Turn.KEEP: Phase.TRUNCATING,
        Turn.CUT: Phase.FETCHING,
        Turn.CUT_PARTLY: Phase.TRUNCATING,
        Turn.OUT_OF_RANGE: Phase.FETCHING,
        Turn.FENCED: Phase.FENCED,
    },
    Phase.FETCHING: {
        Turn.FOLLOW: Phase.TRUNCATING,
        Turn.KEEP: Phase.FETCHING,
        Turn.CUT: Phase.FETCHING,
        Turn.OUT_OF_RANGE: Phase.FETCHING,
        Turn.FENCED: Phase.FENCED,
        Turn.DISORDER: Phase.FAILED,
    },
    # KIP-320: a fenced fetcher waits for a new command, even when the leader is the same.
    Phase.FENCED: {Turn.FOLLOW: Phase.TRUNCATING},
    # Also the phase of a replica that never followed.
    Phase.FAILED: {Turn.FOLLOW: Phase.TRUNCATING, Turn.KEEP: Phase.FAILED},
}


def move(replica: Replica, turn: Turn) -> None:
    """
    Move a follower to its next phase.

    Raises:
        AssertionError: the transition is not legal, so the core has a bug.
    """
    moves = MOVES[replica.phase]
    if turn not in moves:
        legal = ", ".join(each.name for each in moves)
        raise AssertionError(f"{replica.tp}: follower is {replica.phase.name}, met {turn.name}; expected {legal}")
    replica.phase = moves[turn]
