"""
The leader epochs of a stream whose terms begin anew, so that they never fall.

A stream with one replica may have no Raft group. When it has more of them again, it has another group, or the same
one with an empty log, whose terms begin with 1. Who follows a stream while that changes says here how many epochs
it had before a group's first term; who reads the group's log adds as many to each term. A group's name is drawn at
random, and is no other's.

Source:  nats-server 2.15.3, jetstream_cluster.go, jsClusteredStreamUpdateRequest (groupNameForStream).
"""

from __future__ import annotations

from typing import Final

# What is kept, so that a process that plays for days does not grow.
_GROUPS_MAX: Final = 1_000

_before: Final[dict[str, int]] = {}


def begin(group: str, epochs: int) -> None:
    """Keep that a stream had so many epochs before a group's first term."""
    _before.pop(group, None)
    _before[group] = epochs
    while len(_before) > _GROUPS_MAX:
        del _before[next(iter(_before))]


def before(group: str) -> int:
    """Return how many epochs a stream had before a group's first term, 0 if none is known."""
    return _before.get(group, 0)
