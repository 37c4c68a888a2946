"""
Draws what disturbs a rolling upgrade: faults of brokers and links that a cluster of any version from `kip279` on
must survive without a loss.

The version that is spoken meanwhile is an older one, with bugs of its own, and a run must not be a finding for
what that one does whether anything is upgraded or not. So two things are not done here:

- no broker comes back before its session has ended: up to 2.1 a controller does not see it gone (KAFKA-1120);
- no message is held, doubled or delayed, and no broker is cut off from the metadata alone: up to 2.0.1 a leader
  and a follower need not know that they speak of two epochs (KIP-320). So, until then, no broker loses its session
  beside another's loss of power: it would go on fetching behind the records that its leader has lost, in the old
  epoch, while that leads again, and be let into the ISR with them.

Each disturbance undoes itself; what it leaves behind the `settle` after it undoes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Final

from harness.scenario.steps import Act, Cut, Heal, Inject, Pass

# How long a broker is away, stands still, or is cut off.
AWAY_MS: Final = (30.0, 160.0)
# How long a controller needs to see that a session has ended, and to have another replica lead.
SEEN_MS: Final = (40.0, 80.0)
RESTART: Final = "restart"


def passing(chance: Random, low: float, high: float) -> Pass:
    """Return a pass of so many milliseconds."""
    return Pass(Decimal(f"{chance.uniform(low, high):.1f}"))


def gone(fault: str, name: str) -> list[Act]:
    """Return the steps that take a broker down, so that every controller sees it go; a stop ends its session."""
    down = Inject(fault, (name,))
    return [down] if fault == "stop" else [down, Inject("expire", (name,))]


def is_unheard_loss(acts: Sequence[Act]) -> bool:
    """Return True if a broker loses its power while another one, which is up, loses its session."""
    faults = [act for act in acts if isinstance(act, Inject)]
    crashed = {act.nodes for act in faults if act.fault in ("kill", "power-loss")}
    expired = {act.nodes for act in faults if act.fault == "expire"}
    return any(act.fault == "power-loss" for act in faults) and not expired <= crashed


def _crash(chance: Random, name: str, fault: str) -> list[Act]:
    seen, away = passing(chance, *SEEN_MS), passing(chance, *AWAY_MS)
    return [*gone(fault, name), seen, away, Inject(RESTART, (name,))]


def _kill(chance: Random, nodes: Sequence[str]) -> list[Act]:
    return _crash(chance, chance.choice(nodes), "kill")


def _power_loss(chance: Random, nodes: Sequence[str]) -> list[Act]:
    return _crash(chance, chance.choice(nodes), "power-loss")


def _pause(chance: Random, nodes: Sequence[str]) -> list[Act]:
    name = (chance.choice(nodes),)
    return [Inject("pause", name), passing(chance, *AWAY_MS), Inject("resume", name)]


def _expire(chance: Random, nodes: Sequence[str]) -> list[Act]:
    return [Inject("expire", (chance.choice(nodes),)), passing(chance, *SEEN_MS)]


def _depose(chance: Random, nodes: Sequence[str]) -> list[Act]:
    del nodes  # whoever is controller then
    return [Inject("depose-controller", ("controller",)), passing(chance, *SEEN_MS)]


def _elect(chance: Random, nodes: Sequence[str]) -> list[Act]:
    return [Inject("elect", (chance.choice(nodes),)), passing(chance, *SEEN_MS)]


def _cut(chance: Random, nodes: Sequence[str]) -> list[Act]:
    if len(nodes) < 2:
        return []
    src, dst = chance.sample(nodes, 2)
    both_ways, close = chance.choice((False, True)), chance.choice((False, True))
    return [Cut(src, both_ways, dst, close), passing(chance, *AWAY_MS), Heal(src, dst)]


# Each with the faults that it is made of, and how often it comes.
DISTURBANCES: Final[Mapping[str, tuple[Callable[[Random, Sequence[str]], list[Act]], frozenset[str], float]]] = {
    "kill": (_kill, frozenset({"kill", "expire", RESTART}), 3.0),
    "power-loss": (_power_loss, frozenset({"power-loss", "expire", RESTART}), 2.0),
    "pause": (_pause, frozenset({"pause", "resume"}), 2.0),
    "expire": (_expire, frozenset({"expire"}), 1.5),
    "depose-controller": (_depose, frozenset({"depose-controller"}), 1.0),
    "elect": (_elect, frozenset({"elect"}), 2.0),
    "cut": (_cut, frozenset(), 2.0),
}


def disturbance(
    chance: Random, nodes: Sequence[str], replicas: Sequence[str], faults: Collection[str]
) -> list[Act]:
    """
    Return the steps of one disturbance of these nodes, made of these faults.

    Args:
        replicas: those of the main partition, which may be elected.
    """
    able = [name for name, (_, made_of, _) in DISTURBANCES.items() if made_of <= {*faults}]
    name = chance.choices(able, [DISTURBANCES[each][2] for each in able])[0]
    some = [each for each in nodes if each in replicas] if name == "elect" else nodes
    return DISTURBANCES[name][0](chance, some) if some else []
