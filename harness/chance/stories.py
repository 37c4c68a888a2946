"""
Short stories of several moves, with parts that chance leaves out: the shapes of the specification's traces.

    flip      leadership goes away and comes back, and one replica hears nothing of it: its commands wait, or it is
              cut from ZooKeeper; the first leader had records that the second one lacks
    laggard   a replica out of the ISR is behind when a leader is elected whose high watermark is behind too
    recall    a follower's question is answered by a leader that is cut before the answer arrives
    relapse   a follower that has not heard of the last high watermark follows another, and is elected itself
    fork      all lose their power, and whoever lacks most leads first

Rules:   a story says nothing that the moves of harness/chance/draw.py could not say; it makes likely what takes
         thousands of schedules to come upon.
         A fetch that waits for records is answered first: what must not reach a follower is held as an answer, and
         a follower is silent only once its waiting fetch has ended.
Source:  what each rule of KIP-320 was made for: KAFKA-6880, KAFKA-7128, KAFKA-7164, KAFKA-7786.
         What KIP-101 was made for: its scenarios 1 (relapse) and 2 (fork).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final, TypeAlias

# The leader, the one that leads in between, and the one that is left behind.
Roles: TypeAlias = tuple[str, str, str]
Story: TypeAlias = Callable[[Random, Roles], Iterator[str]]

# What is not a step as it stands: time to be drawn (for an election; for a waiting fetch to end), records, a hold.
PASS: Final = "pass"
PASS_FETCH: Final = "pass fetch"
PRODUCE_ALL: Final = "produce all"
PRODUCE_ONE: Final = "produce 1"
RELEASE_ONE: Final = "release one"


def flip(chance: Random, roles: Roles) -> Iterator[str]:
    """Give the steps of a leadership that goes and comes back behind a replica's back."""
    leader, other, behind = roles
    late = chance.random() < 0.8
    if late:
        # What the first leader has, and the one left behind too, but not the next leader.
        yield f"hold answers Fetch {other} -> {leader}"
        yield PRODUCE_ONE
        yield PASS
    silent = chance.random() < 0.5
    if silent:
        yield f"hold requests Fetch {behind} -> *"
        yield PASS_FETCH
    away, back = _behind(chance, behind)
    yield away
    yield from _some(chance, PASS)
    yield f"elect {other}"
    yield PASS
    yield from _some(chance, PRODUCE_ALL, PASS)
    if late:
        yield f"release answers Fetch {other} -> {leader}"
    yield f"elect {leader}"
    yield PASS
    yield from _some(chance, PRODUCE_ALL, PASS)
    if silent and chance.random() < 0.5:
        yield f"release requests Fetch {behind} -> *"
        yield from _some(chance, PASS_FETCH)
    yield back
    yield PASS
    yield from _some(chance, PRODUCE_ALL, PASS)


def laggard(chance: Random, roles: Roles) -> Iterator[str]:
    """Give the steps of a replica out of the ISR that finds a new leader with a high watermark that is behind."""
    leader, other, behind = roles
    yield f"hold requests Fetch {behind} -> {leader}"
    gone, back = chance.choice((("kill", "restart"), ("zombie", "return")))
    yield f"{gone} {behind}"
    yield PASS
    yield f"{back} {behind}"
    yield PASS
    yield PRODUCE_ALL
    yield PASS
    # So slow to follow that the new leader's high watermark waits for it.
    slow = chance.choice(("", f"LeaderAndIsr * -> {leader}", f"Fetch {leader} -> *", f"Fetch {leader} -> *"))
    if slow:
        yield f"hold requests {slow}"
    yield f"elect {other}"
    yield PASS
    yield from _some(chance, f"elect {behind}", PASS)
    yield RELEASE_ONE


def recall(chance: Random, roles: Roles) -> Iterator[str]:
    """Give the steps of a truncation answer that is old when it arrives."""
    leader, other, behind = roles
    yield f"hold answers Fetch {other} -> {leader}"
    yield PRODUCE_ONE
    yield PASS
    yield f"hold answers OffsetForLeaderEpoch {behind} -> *"
    yield f"kill {behind}"
    yield f"restart {behind}"
    yield PASS
    away, back = _behind(chance, behind)
    yield away
    yield from _some(chance, PASS)
    yield f"elect {other}"
    yield PASS
    yield from _some(chance, PRODUCE_ALL)
    yield PASS
    yield f"release answers Fetch {other} -> {leader}"
    yield f"elect {leader}"
    yield PASS
    yield from _some(chance, PRODUCE_ALL)
    yield back
    yield PASS
    yield f"release answers OffsetForLeaderEpoch {behind} -> *"
    yield PASS


def relapse(chance: Random, roles: Roles) -> Iterator[str]:
    """Give the steps of a follower that cuts what is committed, having had no word of that, and leads."""
    leader, other, behind = roles
    yield PRODUCE_ALL
    yield PASS
    # The waiting fetch would be told of it; and whatever is asked after that does not arrive.
    yield f"hold answers Fetch {behind} -> {leader}"
    yield f"hold requests Fetch {behind} -> *"
    yield f"elect {other}"
    yield from _some(chance, PASS)
    yield f"elect {behind}"
    yield PASS
    yield from _some(chance, PRODUCE_ALL, PASS)
    yield f"release answers Fetch {behind} -> {leader}"
    yield f"release requests Fetch {behind} -> *"
    yield PASS


def fork(chance: Random, roles: Roles) -> Iterator[str]:
    """Give the steps of a power cut after which somebody leads whose disk lacks what another's has."""
    leader, _, behind = roles
    yield PRODUCE_ALL
    yield PASS
    yield f"flush {leader}"
    yield f"power-loss {' '.join(sorted(roles))}"
    last = [name for name in roles if name != behind]
    for name in (*last, behind):
        yield f"expire {name}"
        yield PASS
    yield f"restart {behind}"
    yield PASS
    yield PRODUCE_ALL
    yield from _some(chance, PRODUCE_ALL)
    yield PASS
    for name in last:
        yield f"restart {name}"
    yield PASS


def _behind(chance: Random, name: str) -> tuple[str, str]:
    """How a replica hears nothing of elections, and how it hears of them again."""
    if chance.random() < 0.5:
        return f"zombie {name}", f"return {name}"
    return f"hold requests LeaderAndIsr * -> {name}", f"release requests LeaderAndIsr * -> {name}"


def _some(chance: Random, *steps: str) -> Iterator[str]:
    yield from (step for step in steps if chance.random() < 0.6)


STORIES: Final[dict[str, Story]] = {
    "flip": flip,
    "laggard": laggard,
    "recall": recall,
    "relapse": relapse,
    "fork": fork,
}
