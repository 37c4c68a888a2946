"""When a rule of the fabric, or a fault of the metadata, made late what nodes and the metadata tell each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from checkers.facts.fact import fact
from harness.effect import LASTING, ON_METADATA, nature_of
from harness.events import Delay, Heal, Hold, Injection, Release, Setup
from harness.model import Op, OpType, events_of

METADATA_REQUEST: Final = "metadata-request"
# In place of a node: each.
ANY: Final = "*"


class Silence(NamedTuple):
    """What a node, "*" for any, and the metadata tell each other comes late, from an index on until a time."""

    node: str
    since: int
    until_ns: int


@fact
def silences(ops: Sequence[Op]) -> list[Silence]:
    """Return the times in which what a node and the metadata tell each other was made late."""
    return [*_by_rules(ops), *(Silence(node, begun, end.time_ns) for node, begun, end in _unheard(ops))]


def unheard(ops: Sequence[Op], node: str, first: int, last: int) -> bool:
    """Return True if a fault kept a node and the metadata apart at some time between two indexes."""
    return any(each in (node, ANY) and begun < last and end.index > first for each, begun, end in _unheard(ops))


def services_hit(ops: Sequence[Op]) -> bool:
    """Return True if a fault hit a service, so that a write of any node may have been late."""
    return any(each == ANY for each, _, _ in _unheard(ops))


@fact
def _unheard(ops: Sequence[Op]) -> list[tuple[str, int, Op]]:
    """Return (node, index of the fault's beginning, op of its end) for each fault of the metadata."""
    begun: dict[str, int] = {}
    found: list[tuple[str, int, Op]] = []
    services = {name for _, setup in events_of(ops, Setup) for name in setup.services or ()}
    for op, fault in events_of(ops, Injection):
        nature = nature_of(op)
        for node in fault.nodes:
            # What a service does not answer, no node hears.
            effects = LASTING if node in services else ON_METADATA
            if nature.effect in effects:
                begun.setdefault(node, op.index)
            elif nature.heals & effects and op.type is not OpType.INVOKE and node in begun:
                found.append((node, begun.pop(node), op))
    found += [(node, since, ops[-1]) for node, since in begun.items()]
    return [(ANY if node in services else node, since, end) for node, since, end in found]


def _by_rules(ops: Sequence[Op]) -> list[Silence]:
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
        if rule.api == METADATA_REQUEST
    ]
