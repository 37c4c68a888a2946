"""
Faults: how a fault is injected, proven and undone, and its effect, as data.

A new fault is one file in `nemesis/` and one line in its table. Random schedules draw it by its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.ability import OF_DISKS, Ability
from harness.cluster.cluster import Cluster
from harness.cluster.in_force import FaultInForce
from harness.effect import Band, Effect, Nature
from harness.model import PreconditionError
from harness.target.traits import Traits


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """
    One fault, injected into one node.

    Attributes:
        doc: what the fault does, for docs/nemeses.md.
        inject: injects the fault and returns what was seen of it; raises PreconditionError if it could not.
        probe: returns "" while the fault is in force, otherwise what is seen instead. It is called after the
            injection, which did not bite unless it returns "", and after healing, which failed if it still
            returns "". None for a fault that `watch` proves, and for one that only undoes others: it is proven by
            their probes.
        watch: looks at the node before the injection, for a fault that is over at once. What it returns is called
            after the injection, and returns what is as it was before; "" if what the fault changes was changed.
        heal: undoes the fault and returns what was seen; raises PreconditionError if it could not. None for a
            fault that leaves nothing to undo. It is called before the final reads for every node on which the
            fault is still in force. If it is the `inject` of another fault of the table, the history names that
            fault.
        effect: what the fault does to its node.
        heals: the effects that it ends on its node, for a fault that undoes others.
        band: how timelines shade it.
        weight: how often random schedules draw it, relative to other moves, if no profile names it
            (harness/random_schedule/profile.py); 0 for a fault that is never drawn.
        everywhere: it hits all nodes of the run, whichever a step names: the metadata are lost to all, say.
        by_itself: the process does it, so a paused one cannot.
        why_not: returns why it is not applicable to a node now, beyond what its effects say; "" if it is. A random
            schedule skips it then, and says why.
        of_services: it can also hit a process of a service, which is a node that is no replica.
        from_services: a step may name the service that it parts nodes from, if they reach it by links of its own.
        needs: what a machine must be able to do for it, None for what every machine can. Where a machine cannot, a
            command that names the fault is refused, and a random schedule skips it; both say why.
    """

    name: str
    doc: str
    inject: Callable[[Cluster, str], str]
    heal: Callable[[Cluster, str], str] | None
    effect: Effect
    band: Band
    probe: Callable[[Cluster, str], str] | None = None
    watch: Callable[[Cluster, str], Callable[[], str]] | None = None
    heals: frozenset[Effect] = frozenset()
    weight: float = 1.0
    by_itself: bool = False
    why_not: Callable[[Cluster, str], str] | None = None
    needs: tuple[Ability, ...] = ()
    everywhere: bool = False
    of_services: bool = False
    from_services: bool = False

    @property
    def nature(self) -> Nature:
        """The fault's effects and band, as its ops record them."""
        return Nature(effect=self.effect, heals=self.heals, band=self.band)

    def nature_in(self, traits: Traits) -> Nature:
        """Return what its ops record in a system: of a mapped log an error of the disk takes what is unflushed."""
        takes = traits.maps_log and self.effect is Effect.DOWN and OF_DISKS & {*self.needs}
        return replace(self.nature, effect=Effect.PAGES_LOST) if takes else self.nature


def inject(cluster: Cluster, faults: Mapping[str, Fault], fault: Fault, node: str) -> str:
    """
    Inject a fault, prove that it bit, and record it as in force; return what was seen.

    Raises:
        PreconditionError: the fault did not bite, or a fault that it undoes is still in force.
    """
    hit = hit_by(cluster, faults, fault, (node,))
    unchanged = None if fault.watch is None else fault.watch(cluster, node)
    seen = fault.inject(cluster, node)
    instead = unchanged() if unchanged is not None else ""
    if fault.probe is not None:
        instead = instead or fault.probe(cluster, node)
    if instead:
        raise PreconditionError(f"{fault.name} {node}: {instead} ({seen})")
    if fault.heal is not None:
        for name in hit:
            cluster.in_force.begin(FaultInForce(fault=fault.name, effect=fault.effect, node=name))
    if fault.effect.is_down:
        cluster.host.drain(node)  # the history must have the dead process's events before any later op
    undone = _undone_at(cluster, faults, fault, (node,))
    for found in undone:
        _prove_healed(cluster, faults, found, seen)
    for found in undone:
        cluster.in_force.remove(found)
    return seen


def hit_by(cluster: Cluster, faults: Mapping[str, Fault], fault: Fault, nodes: Sequence[str]) -> tuple[str, ...]:
    """
    Return the nodes that a fault hits where a step names these.

    One that is everywhere hits all. One that undoes such a fault hits all nodes that have nothing else of it: a
    node that is cut from the metadata by itself stays so when the servers are back.
    """
    if fault.everywhere:
        return tuple(cluster.ids)
    undone = _undone_at(cluster, faults, fault, nodes)
    others = {found.node for found in undone} - {*nodes}
    if not others:
        return tuple(nodes)
    kept = {found.node for found in cluster.in_force if found.effect in fault.heals and found not in undone}
    return tuple(name for name in cluster.ids if name in nodes or name in others - kept)


def injected_at(cluster: Cluster, faults: Mapping[str, Fault], fault: Fault, nodes: Sequence[str]) -> list[str]:
    """Return the nodes at which a fault is injected: once for what is everywhere, else at each that is named."""
    if fault.everywhere:
        return list(nodes[:1])
    shared = {found.fault for found in _undone_at(cluster, faults, fault, nodes) if _is_everywhere(faults, found)}
    if not shared:
        return list(nodes)
    own = {found.node for found in cluster.in_force if found.effect in fault.heals and found.fault not in shared}
    return [name for at, name in enumerate(nodes) if at == 0 or name in own]


def _undone_at(
    cluster: Cluster, faults: Mapping[str, Fault], fault: Fault, nodes: Sequence[str]
) -> list[FaultInForce]:
    """Return what a fault undoes: on the named nodes; of one that is everywhere, on all nodes."""
    ended = [found for found in cluster.in_force if found.effect in fault.heals]
    there = {found.fault for found in ended if found.node in nodes and _is_everywhere(faults, found)}
    return [found for found in ended if fault.everywhere or found.node in nodes or found.fault in there]


def _is_everywhere(faults: Mapping[str, Fault], found: FaultInForce) -> bool:
    fault = faults.get(found.fault)
    return fault is not None and fault.everywhere


def heal(cluster: Cluster, faults: Mapping[str, Fault], found: FaultInForce) -> str:
    """
    Undo a fault by its own `heal`, and prove that it is undone; return what was seen.

    Raises:
        PreconditionError: the fault is still in force.
    """
    undo = faults[found.fault].heal
    assert undo is not None, f"{found.fault} is in force and has no heal"
    seen = undo(cluster, found.node)
    _prove_healed(cluster, faults, found, seen)
    cluster.in_force.remove(found)
    return seen


def undoing(faults: Mapping[str, Fault], fault: Fault) -> str:
    """Return the name of the first fault of the table that ends this one's effect, "" for none."""
    return next((each.name for each in faults.values() if fault.effect in each.heals), "")


def undone_by(faults: Mapping[str, Fault], found: FaultInForce) -> Fault | None:
    """Return the fault of the table that undoes the one in force, None if only its own `heal` does."""
    fault = faults.get(found.fault)
    if fault is None:  # the node ended by itself
        return next(each for each in faults.values() if found.effect in each.heals)
    return next((each for each in faults.values() if each.inject == fault.heal), None)


def _prove_healed(cluster: Cluster, faults: Mapping[str, Fault], found: FaultInForce, seen: str) -> None:
    fault = faults.get(found.fault)
    if fault is not None and fault.probe is not None and not fault.probe(cluster, found.node):
        raise PreconditionError(f"{found.fault} {found.node}: still in force after its healing ({seen})")
