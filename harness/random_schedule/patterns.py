"""
Short stories of several moves, with parts that chance leaves out: the shapes of the specification's traces.

    flip      leadership goes away and comes back, and one replica hears nothing of it: its commands wait, or it is
              cut from ZooKeeper; the first leader had records that the second one lacks
    laggard   a replica out of the ISR is behind when a leader is elected whose high watermark is behind too
    recall    a follower's question is answered by a leader that is cut before the answer arrives
    relapse   a follower that has not heard of the last high watermark follows another, and is elected itself
    fork      all lose their power, and whoever lacks most leads first

Rules:   a story says nothing that the moves of harness/random_schedule/generate.py could not say; it makes
likely what takes
         thousands of schedules to come upon.
         A fetch that waits for records is answered first: what must not reach a follower is held as an answer, and
         a follower is silent only once its waiting fetch has ended.
Source:  what each rule of KIP-320 was made for: KAFKA-6880, KAFKA-7128, KAFKA-7164, KAFKA-7786.
         What KIP-101 was made for: its scenarios 1 (relapse) and 2 (fork).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from random import Random
from typing import Final, TypeAlias

from harness.fabric.core.rules import ANY
from harness.scenario.steps import Act, Hold, Inject, Release

# The leader, the one that leads in between, and the one that is left behind.
Roles: TypeAlias = tuple[str, str, str]


class Wish(Enum):
    """What is not a step as it stands: time to be drawn, records to be named, a hold to be chosen."""

    PASS = "time for an election"
    PASS_FETCH = "time for a waiting fetch to end"
    PRODUCE_ALL = "records that all acknowledge"
    PRODUCE_ONE = "records that the leader acknowledges"
    RELEASE_ONE = "the release of one hold"


Story: TypeAlias = Callable[[Random, Roles], Iterator[Act | Wish]]


def flip(chance: Random, roles: Roles) -> Iterator[Act | Wish]:
    """Give the steps of a leadership that goes and comes back behind a replica's back."""
    leader, other, behind = roles
    late = chance.random() < 0.8
    if late:
        # What the first leader has, and the one left behind too, but not the next leader.
        yield Hold("answers", "Fetch", other, leader)
        yield Wish.PRODUCE_ONE
        yield Wish.PASS
    silent = chance.random() < 0.5
    if silent:
        yield Hold("requests", "Fetch", behind, ANY)
        yield Wish.PASS_FETCH
    away, back = _behind(chance, behind)
    yield away
    yield from _some(chance, Wish.PASS)
    yield Inject("elect", (other,))
    yield Wish.PASS
    yield from _some(chance, Wish.PRODUCE_ALL, Wish.PASS)
    if late:
        yield Release("Fetch", other, leader, "answers")
    yield Inject("elect", (leader,))
    yield Wish.PASS
    yield from _some(chance, Wish.PRODUCE_ALL, Wish.PASS)
    if silent and chance.random() < 0.5:
        yield Release("Fetch", behind, ANY, "requests")
        yield from _some(chance, Wish.PASS_FETCH)
    yield back
    yield Wish.PASS
    yield from _some(chance, Wish.PRODUCE_ALL, Wish.PASS)


def laggard(chance: Random, roles: Roles) -> Iterator[Act | Wish]:
    """Give the steps of a replica out of the ISR that finds a new leader with a high watermark that is behind."""
    leader, other, behind = roles
    yield Hold("requests", "Fetch", behind, leader)
    gone, back = chance.choice((("kill", "restart"), ("zombie", "return")))
    yield Inject(gone, (behind,))
    yield Wish.PASS
    yield Inject(back, (behind,))
    yield Wish.PASS
    yield Wish.PRODUCE_ALL
    yield Wish.PASS
    # So slow to follow that the new leader's high watermark waits for it.
    fetches = Hold("requests", "Fetch", leader, ANY)
    slow = chance.choice((None, Hold("requests", "LeaderAndIsr", ANY, leader), fetches, fetches))
    if slow is not None:
        yield slow
    yield Inject("elect", (other,))
    yield Wish.PASS
    yield from _some(chance, Inject("elect", (behind,)), Wish.PASS)
    yield Wish.RELEASE_ONE


def recall(chance: Random, roles: Roles) -> Iterator[Act | Wish]:
    """Give the steps of a truncation answer that is old when it arrives."""
    leader, other, behind = roles
    yield Hold("answers", "Fetch", other, leader)
    yield Wish.PRODUCE_ONE
    yield Wish.PASS
    yield Hold("answers", "OffsetForLeaderEpoch", behind, ANY)
    yield Inject("kill", (behind,))
    yield Inject("restart", (behind,))
    yield Wish.PASS
    away, back = _behind(chance, behind)
    yield away
    yield from _some(chance, Wish.PASS)
    yield Inject("elect", (other,))
    yield Wish.PASS
    yield from _some(chance, Wish.PRODUCE_ALL)
    yield Wish.PASS
    yield Release("Fetch", other, leader, "answers")
    yield Inject("elect", (leader,))
    yield Wish.PASS
    yield from _some(chance, Wish.PRODUCE_ALL)
    yield back
    yield Wish.PASS
    yield Release("OffsetForLeaderEpoch", behind, ANY, "answers")
    yield Wish.PASS


def relapse(chance: Random, roles: Roles) -> Iterator[Act | Wish]:
    """Give the steps of a follower that cuts what is committed, having had no word of that, and leads."""
    leader, other, behind = roles
    yield Wish.PRODUCE_ALL
    yield Wish.PASS
    # The waiting fetch would be told of it; and whatever is asked after that does not arrive.
    yield Hold("answers", "Fetch", behind, leader)
    yield Hold("requests", "Fetch", behind, ANY)
    yield Inject("elect", (other,))
    yield from _some(chance, Wish.PASS)
    yield Inject("elect", (behind,))
    yield Wish.PASS
    yield from _some(chance, Wish.PRODUCE_ALL, Wish.PASS)
    yield Release("Fetch", behind, leader, "answers")
    yield Release("Fetch", behind, ANY, "requests")
    yield Wish.PASS


def fork(chance: Random, roles: Roles) -> Iterator[Act | Wish]:
    """Give the steps of a power cut after which somebody leads whose disk lacks what another's has."""
    leader, _, behind = roles
    yield Wish.PRODUCE_ALL
    yield Wish.PASS
    yield Inject("flush", (leader,))
    yield Inject("power-loss", tuple(sorted(roles)))
    last = [name for name in roles if name != behind]
    for name in (*last, behind):
        yield Inject("expire", (name,))
        yield Wish.PASS
    yield Inject("restart", (behind,))
    yield Wish.PASS
    yield Wish.PRODUCE_ALL
    yield from _some(chance, Wish.PRODUCE_ALL)
    yield Wish.PASS
    for name in last:
        yield Inject("restart", (name,))
    yield Wish.PASS


def _behind(chance: Random, name: str) -> tuple[Act, Act]:
    """How a replica hears nothing of elections, and how it hears of them again."""
    if chance.random() < 0.5:
        return Inject("zombie", (name,)), Inject("return", (name,))
    return Hold("requests", "LeaderAndIsr", ANY, name), Release("LeaderAndIsr", ANY, name, "requests")


def _some(chance: Random, *steps: Act | Wish) -> Iterator[Act | Wish]:
    yield from (step for step in steps if chance.random() < 0.6)


STORIES: Final[dict[str, Story]] = {
    "flip": flip,
    "laggard": laggard,
    "recall": recall,
    "relapse": relapse,
    "fork": fork,
}
