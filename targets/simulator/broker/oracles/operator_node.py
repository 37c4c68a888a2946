"""
The operator's node: who asks for something drops nothing that others asked for, and who takes it out does it.

What stands in the node is read here anew, as it was written. The controller alone takes: first reassignments,
which it notes with their topics in the same write, then the partitions that are to go, and at last elections and
brokers that leave. What cannot be done is left out, as nobody waits for an answer: of a topic that the write does
not touch, the controller may have read that it is not there, though by then it is there again.
Source:  Kafka Replication Design V3, Paths 5 and 6, F; targets/broker/core/wishes.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from targets.broker.core.messages import TopicPartition

# A topic's partitions, and what each has or is to have; None for a topic of which nothing is known.
Placed = Callable[[str], Mapping[int, frozenset[tuple[int, ...]]] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What stands in the node."""

    elections: Mapping[TopicPartition, int] = field(default_factory=dict)
    moves: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    leaving: frozenset[int] = frozenset()
    removals: frozenset[TopicPartition] = frozenset()


def read_asked(data: bytes | None) -> Asked:
    """Return what a node holds, None for no node; nothing if that cannot be read."""
    try:
        raw = json.loads(data or b"{}")
        return Asked(
            elections={_tp(one): one["leader"] for one in raw.get("elections", ())},
            moves={_tp(one): tuple(one["replicas"]) for one in raw.get("moves", ())},
            leaving=frozenset(raw.get("leaving", ())),
            removals=frozenset(map(_tp, raw.get("removals", ()))),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return Asked()


def _tp(one: Mapping[str, object]) -> TopicPartition:
    return TopicPartition(str(one["topic"]), int(str(one["partition"])))


def dropped(was: Asked, now: Asked) -> Iterator[tuple[TopicPartition | None, str]]:
    """Yield what somebody who asked for more has dropped; an election may take the place of another one."""
    for tp in was.moves.keys() - now.moves.keys():
        yield tp, f"drops the move of {tp}, which another operator asked for"
    yield from _kept(was, now)
    for tp in sorted(was.removals - now.removals):
        yield tp, f"drops the removal of {tp}, which another operator asked for"


def taken(was: Asked, now: Asked, placed: Placed) -> Iterator[tuple[TopicPartition | None, str]]:
    """
    Yield what the controller took out of the node and did not do, or took along with what it did.

    Args:
        placed: the topics as they stand after the write, None for one that the write does not touch.
    """
    if not was.moves and not was.removals:
        return  # elections and who leaves: its reading decides about them
    for tp in was.elections:
        if was.elections[tp] != now.elections.get(tp):
            yield tp, f"takes the election of {tp} out with something else, and decides nothing about it"
    yield from _kept(was, now)
    for tp, wanted in was.moves.items():
        places = placed(tp.topic) or {}
        if wanted and len({*wanted}) == len(wanted) and wanted not in places.get(tp.partition, {wanted}):
            yield tp, f"takes out that {tp} is to be moved to {list(wanted)}, and does not note it with the topic"
    for tp in sorted(was.removals - now.removals):
        there = sorted(placed(tp.topic) or ())
        above = [number for number in there[1:] if number >= tp.partition]
        if tp.partition in above and all(TopicPartition(tp.topic, each) in was.removals for each in above):
            yield tp, f"takes out that {tp} is to be removed, and does not remove it"


def _kept(was: Asked, now: Asked) -> Iterator[tuple[None, str]]:
    if gone := sorted(was.leaving - now.leaving):
        yield None, f"drops that brokers {gone} are leaving"
