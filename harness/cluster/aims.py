"""
Aims: the word that a step has in place of nodes, and the nodes that it means when the step's turn comes.

What a fault does and whom it hits are separate: every fault can be aimed by every aim. The history has the nodes.
A fault that undoes others is aimed only at nodes on which one of these is in force.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Effect
from harness.model import PreconditionError

# One process of the run's services, which are no replicas: no other aim means any.
SERVICE: Final = "service"
# Only nodes that are down can suffer these.
_OF_THE_DOWN: Final = frozenset({Effect.LOG_CUT, Effect.DISK_LOST})

# The nodes that may be hit, and a source of choices -> the nodes that are hit.
_Pick = Callable[[Cluster, Sequence[str], Random], Sequence[str | None]]


def aimed(aim: str, cluster: Cluster, fault: Fault, chance: Random) -> tuple[str, ...]:
    """
    Return the nodes that an aim means now, in the order of the cluster's nodes.

    Args:
        fault: what will hit them; it decides which nodes come into question.
        chance: decides among nodes that the aim does not tell apart.

    Raises:
        PreconditionError: no node is meant: there is no leader, say, or the fault's effect is on none.
    """
    names = cluster.service_nodes if aim == SERVICE else tuple(cluster.ids)
    if fault.heals:
        in_question = cluster.in_force.nodes(fault.heals)
    elif fault.effect in _OF_THE_DOWN:
        in_question = cluster.down
    else:
        in_question = frozenset(names) - cluster.down
    able = [name for name in names if name in in_question]
    chosen = AIMS[aim](cluster, able, chance)
    found = tuple(name for name in able if name in chosen)
    if not found:
        among = ", ".join(able) or "no node"
        raise PreconditionError(f"{fault.name} {aim}: there is none now; expected one among {among}")
    return found


def _leader(cluster: Cluster, able: Sequence[str], chance: Random) -> Sequence[str | None]:
    """The leader that the metadata name."""
    del able, chance
    return (cluster.named.leader(),)


def _follower(cluster: Cluster, able: Sequence[str], chance: Random) -> Sequence[str | None]:
    """One of the replicas that do not lead."""
    leader = cluster.named.leader()
    return _one_of([name for name in _replicas(cluster, able) if name != leader], chance)


def _controller(cluster: Cluster, able: Sequence[str], chance: Random) -> Sequence[str | None]:
    """The controller that the metadata name."""
    del able, chance
    return (cluster.metadata.controller(),)


def _one(cluster: Cluster, able: Sequence[str], chance: Random) -> Sequence[str | None]:
    """One of all nodes, or of all processes of services."""
    del cluster
    return _one_of(able, chance)


def _minority(cluster: Cluster, able: Sequence[str], chance: Random) -> Sequence[str | None]:
    """Fewer than half of the replicas, but one at least."""
    return _some(cluster, able, chance, max(1, (len(cluster.named.replicas) - 1) // 2))


def _majority(cluster: Cluster, able: Sequence[str], chance: Random) -> Sequence[str | None]:
    """The fewest replicas that are more than half of them."""
    return _some(cluster, able, chance, len(cluster.named.replicas) // 2 + 1)


def _all(cluster: Cluster, able: Sequence[str], chance: Random) -> Sequence[str | None]:
    """All nodes."""
    del cluster, chance
    return able


def _last_in_isr(cluster: Cluster, able: Sequence[str], chance: Random) -> Sequence[str | None]:
    """The only member that the ISR has left."""
    del able, chance
    isr = cluster.named.isr()
    return tuple(isr) if len(isr) == 1 else ()


def _replicas(cluster: Cluster, able: Sequence[str]) -> list[str]:
    return [name for name in able if name in cluster.named.replicas]


def _some(cluster: Cluster, able: Sequence[str], chance: Random, count: int) -> Sequence[str]:
    replicas = _replicas(cluster, able)
    return chance.sample(replicas, min(count, len(replicas)))


def _one_of(names: Sequence[str], chance: Random) -> Sequence[str]:
    return (chance.choice(names),) if names else ()


def expanded(nodes: Sequence[str], cluster: Cluster) -> tuple[str, ...]:
    """Return the nodes that words mean: the name of a service means all processes of its kind."""
    kinds = {} if cluster.services is None else cluster.services.names
    return tuple(dict.fromkeys(name for word in nodes for name in kinds.get(word, (word,))))


AIMS: Final[Mapping[str, _Pick]] = {
    "leader": _leader,
    "follower": _follower,
    "controller": _controller,
    "one": _one,
    "minority": _minority,
    "majority": _majority,
    "all": _all,
    "last-in-isr": _last_in_isr,
    SERVICE: _one,
}
# What the system must show for an aim.
AIMS_NEED: Final[Mapping[str, tuple[Ability, ...]]] = {"controller": (Ability.CONTROLLER,)}
