"""Faults that part nodes from the metadata: the services of a run that they may touch, and how they are undone."""

from __future__ import annotations

from harness.ability import Ability
from harness.cluster import link_fault
from harness.cluster.cluster import Cluster
from harness.cluster.interfaces import Services
from harness.effect import ON_METADATA
from harness.model import PreconditionError


def services_of(cluster: Cluster, what: str) -> Services:
    """
    Return the run's own services.

    Raises:
        PreconditionError: the run shares them with others, which a fault of them would hit too.
    """
    if cluster.services is None:
        raise PreconditionError(f"{what}: the run shares its services with others; expected services of its own")
    return cluster.services


def end(cluster: Cluster, name: str) -> str:
    """
    Let services serve again, heal its link; the probe is that all of them serve, or that it is registered.

    Raises:
        PreconditionError: there is nothing to undo, or a node that runs does not reach the metadata in time.
    """
    faults = [found for found in cluster.in_force if found.effect in ON_METADATA and found.node == name]
    if not faults:
        raise PreconditionError(f"{name} reaches the metadata; expected a fault that parts it from them")
    seen: list[str] = []
    cut = [found for found in faults if isinstance(found.handle, link_fault.LinkRules)]
    if len(cut) < len(faults) and cluster.services is not None and cluster.services.lacking():
        seen.append(cluster.services.mend())
    seen += (link_fault.lift(cluster, found) for found in cut)
    still = cluster.down | cluster.paused | cluster.zombies
    seen += (_registered(cluster, found.node) for found in cut if found.node not in still)
    return "; ".join(seen)


def _registered(cluster: Cluster, name: str) -> str:
    """Wait until a node that was cut off has its connections, and is a member; return what was seen of that."""
    view = cluster.metadata
    shows = not cluster.lacks(Ability.MEMBERS)
    links = [link for link in link_fault.to_metadata(cluster, name) if link[0] == name]

    def is_back() -> bool:
        return all(cluster.fabric.connections(*link) for link in links) and (
            not shows or view.incarnation(name) != 0
        )

    cluster.await_(is_back, lambda: f"{name} is connected to the metadata{' and registered' if shows else ''}")
    return f"{name} is registered in session 0x{view.incarnation(name):x}" if shows else f"{name} is connected"
