"""What a target must bring for faults that machines inject: links, clients, clocks and logs of some kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from harness.ability import Ability
from harness.fabric.no_wire import NO_WIRE
from harness.target.logs import Rots, Segments
from harness.target.services import governed_by_links
from harness.target.target import Target
from harness.target.wire import Between


def why_lacking(target: Target, ability: Ability) -> str:
    """Return why a target has not what it takes, "" if it has, or if the machines alone decide."""
    has = _HAS.get(ability)
    return "" if has is None or has[0](target) else f"target {target.name}: {has[1]}"


def _links(between: Between) -> Callable[[Target], bool]:
    return lambda target: any(kind.between is between for kind in (target.wire or NO_WIRE).links)


def _reaches_metadata(target: Target) -> bool:
    return governed_by_links(target.services) or _links(Between.METADATA)(target)


def _shows_clocks(target: Target) -> bool:
    return target.clocks is not None


# Whether a target has it, and what it lacks otherwise.
_HAS: Final[Mapping[Ability, tuple[Callable[[Target], bool], str]]] = {
    Ability.METADATA_LINKS: (_reaches_metadata, "its wire has no links to the metadata"),
    Ability.CLIENT_LINKS: (_links(Between.CLIENTS), "its wire has no links from clients"),
    Ability.CLIENT_PROCESSES: (lambda target: target.clients.killable, "no client of it has a process of its own"),
    Ability.WALL_CLOCK: (_shows_clocks, "its nodes print no clocks"),
    Ability.CLOCKS: (_shows_clocks, "its nodes print no clocks"),
    Ability.BIT_ROT: (lambda target: isinstance(target.logs, Rots), "its logs have no byte to flip"),
    Ability.SEGMENTS: (lambda target: isinstance(target.logs, Segments), "its logs have no segments"),
}
# What faults need of a target, in the order in which it is listed.
BROUGHT: Final = tuple(_HAS)
