"""
Patterns: sequences of several moves, some of them optional, that follow the traces of the specification.

    flip      leadership moves away and returns while one replica does not learn of it, because its commands
              are held or it is cut off from the metadata; the first leader has records that the second lacks
    laggard   a replica outside the ISR lags when a leader is elected whose high watermark lags too
    recall    a leader answers a follower's question about an epoch, and truncates its log before that arrives
    relapse   a follower that has not learned the last high watermark follows another leader, and is elected itself
    fork      all nodes lose power, and the one that lost most leads first
    undo      a leader cuts what it wrote in several epochs, and a power loss undoes the cut; in wide runs only

A pattern has no moves that harness/random_schedule/generate.py could not draw by itself. It makes likely what
would otherwise take thousands of schedules.

A fetch that waits for records is answered as soon as there are some. So a pattern holds fetch answers to keep
records from a follower, and a follower is silent only after its waiting fetch has ended.

Source:  the bugs behind the rules of KIP-320: KAFKA-6880, KAFKA-7128, KAFKA-7164, KAFKA-7786.
         Scenarios 1 (relapse) and 2 (fork) of KIP-101.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from random import Random
from typing import Final, TypeAlias

from harness.scenario.steps import Act, Hold, Inject, Release
from harness.target.wire import ANY, Word

COMMAND: Final = Word.COMMAND.value
FETCH: Final = Word.FETCH.value
QUESTION: Final = Word.EPOCH_QUESTION.value

# The leader, the replica that leads in between, and the replica that is left behind.
Roles: TypeAlias = tuple[str, str, str]


class Wish(Enum):
    """A placeholder that the generator turns into a step: it draws the time, names the records, picks the hold."""

    PASS = "time for an election"
    PASS_FETCH = "time for a waiting fetch to end"
    PRODUCE_ALL = "records that all acknowledge"
    PRODUCE_ONE = "records that the leader acknowledges"
    RELEASE_ONE = "the release of one hold"
    NEW_CONTROLLER = "another controller, under which each leader stays, in a newer epoch"


Pattern: TypeAlias = Callable[[Random, Roles], Iterator[Act | Wish]]


def flip(chance: Random, roles: Roles) -> Iterator[Act | Wish]:
    """Yield the steps in which leadership moves away and returns, and one replica does not learn of it."""
    leader, other, behind = roles
    late = chance.random() < 0.8
    if late:
        # The first leader and the replica left behind have these records; the next leader does not.
        yield Hold("answers", FETCH, other, leader)
        yield Wish.PRODUCE_ONE
        yield Wish.PASS
    silent = chance.random() < 0.5
    if silent:
        yield Hold("requests", FETCH, behind, ANY)
        yield Wish.PASS_FETCH
    away, back = _behind(chance, behind)
    yield away
    yield from _some(chance, Wish.PASS)
    yield Inject("elect", (other,))
    yield Wish.PASS
    yield from _some(chance, Wish.PRODUCE_ALL, Wish.PASS)
    if late:
        yield Release(FETCH, other, leader, "answers")
    yield Inject("elect", (leader,))
    yield Wish.PASS
    yield from _some(chance, Wish.PRODUCE_ALL, Wish.PASS)
    if silent and chance.random() < 0.5:
        yield Release(FETCH, behind, ANY, "requests")
        yield from _some(chance, Wish.PASS_FETCH)
    yield back
    yield Wish.PASS
    yield from _some(chance, Wish.PRODUCE_ALL, Wish.PASS)


def laggard(chance: Random, roles: Roles) -> Iterator[Act | Wish]:
    """Yield the steps in which a replica outside the ISR meets a new leader whose high watermark lags."""
    leader, other, behind = roles
    yield Hold("requests", FETCH, behind, leader)
    gone, back = chance.choice((("kill", "restart"), ("zombie", "return")))
    yield Inject(gone, (behind,))
    yield Wish.PASS
    yield Inject(back, (behind,))
    yield Wish.PASS
    yield Wish.PRODUCE_ALL
    yield Wish.PASS
    # The old leader follows so slowly that the new leader's high watermark waits for it.
    fetches = Hold("requests", FETCH, leader, ANY)
    slow = chance.choice((None, Hold("requests", COMMAND, ANY, leader), fetches, fetches))
    if slow is not None:
        yield slow
    yield Inject("elect", (other,))
    yield Wish.PASS
    yield from _some(chance, Inject("elect", (behind,)), Wish.PASS)
    yield Wish.RELEASE_ONE


def recall(chance: Random, roles: Roles) -> Iterator[Act | Wish]:
    """Yield the steps in which the answer about an epoch is out of date when it arrives."""
    leader, other, behind = roles
    yield Hold("answers", FETCH, other, leader)
    yield Wish.PRODUCE_ONE
    yield Wish.PASS
    yield Hold("answers", QUESTION, behind, ANY)
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
    yield Release(FETCH, other, leader, "answers")
    yield Inject("elect", (leader,))
    yield Wish.PASS
    yield from _some(chance, Wish.PRODUCE_ALL)
    yield back
    yield Wish.PASS
    yield Release(QUESTION, behind, ANY, "answers")
    yield Wish.PASS


def relapse(chance: Random, roles: Roles) -> Iterator[Act | Wish]:
    """Yield the steps in which a follower truncates committed records it did not know as such, and then leads."""
    leader, other, behind = roles
    yield Wish.PRODUCE_ALL
    yield Wish.PASS
    # The answer to the waiting fetch would carry the high watermark; later fetches must not arrive either.
    yield Hold("answers", FETCH, behind, leader)
    yield Hold("requests", FETCH, behind, ANY)
    yield Inject("elect", (other,))
    yield from _some(chance, Wish.PASS)
    yield Inject("elect", (behind,))
    yield Wish.PASS
    yield from _some(chance, Wish.PRODUCE_ALL, Wish.PASS)
    yield Release(FETCH, behind, leader, "answers")
    yield Release(FETCH, behind, ANY, "requests")
    yield Wish.PASS


def fork(chance: Random, roles: Roles) -> Iterator[Act | Wish]:
    """Yield the steps of a power loss after which a replica leads that lacks records another one has on disk."""
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


def undo(chance: Random, roles: Roles) -> Iterator[Act | Wish]:
    """Yield the steps in which records of several epochs, which only their leader had, are cut and come back."""
    leader, other, behind = roles
    for name in (other, behind):
        yield Hold("answers", FETCH, name, leader)
    yield Wish.PRODUCE_ONE
    for _ in range(chance.randint(2, 3)):
        yield Wish.NEW_CONTROLLER
        yield Wish.PASS
        yield Wish.PASS
        yield Wish.PRODUCE_ONE
    yield Wish.PASS
    yield Inject("flush", (leader,))
    yield Inject("elect", (other,))
    yield Wish.PASS
    yield from _some(chance, Wish.PRODUCE_ALL)
    for name in (other, behind):
        yield Release(FETCH, name, leader, "answers")
    yield Wish.PASS
    yield from _some(chance, Wish.PRODUCE_ALL, Wish.PASS)
    yield Inject("power-loss", (leader,))
    yield Inject("restart", (leader,))
    yield Wish.PASS


def _behind(chance: Random, name: str) -> tuple[Act, Act]:
    """Return a step that keeps a replica from learning of elections, and the step that undoes it."""
    if chance.random() < 0.5:
        return Inject("zombie", (name,)), Inject("return", (name,))
    return Hold("requests", COMMAND, ANY, name), Release(COMMAND, ANY, name, "requests")


def _some(chance: Random, *steps: Act | Wish) -> Iterator[Act | Wish]:
    yield from (step for step in steps if chance.random() < 0.6)


PATTERNS: Final[dict[str, Pattern]] = {
    "flip": flip,
    "laggard": laggard,
    "recall": recall,
    "relapse": relapse,
    "fork": fork,
}
# Of wide runs alone: without them the schedules of one partition are what they were.
WIDE_PATTERNS: Final[dict[str, Pattern]] = {"undo": undo}
