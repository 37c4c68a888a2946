"""When a rule of the fabric made late what nodes and ZooKeeper tell each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from checkers.facts.fact import fact
from harness.events import Delay, Heal, Hold, Release
from harness.model import Op, events_of

ZOOKEEPER: Final = "ZooKeeper"


class Silence(NamedTuple):
    """What a node, "*" for any, and ZooKeeper tell each other comes late, from an index on until a time."""

    node: str
    since: int
    until_ns: int


@fact
def silences(ops: Sequence[Op]) -> list[Silence]:
    """Return the times in which a rule of the fabric made late what a node and ZooKeeper tell each other."""
    ends: list[tuple[Op, Release | Heal]] = [*events_of(ops, Release), *events_of(ops, Heal)]
    return [
        Silence(
            rule.link[0],
            op.index,
            min(
                (
                    end.time_ns
                    for end, over in ends
                    if end.index > op.index
                    and (over.link, over.api, over.direction) == (rule.link, rule.api, rule.direction)
                ),
                default=ops[-1].time_ns,
            ),
        )
        for kind in (Hold, Delay)
        for op, rule in events_of(ops, kind)
        if rule.api == ZOOKEEPER
    ]
