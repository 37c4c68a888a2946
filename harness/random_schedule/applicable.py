"""
Decides whether a step is applicable now: schedules are drawn without knowing the state the cluster will be in.

An inapplicable step is skipped, and the history records why. An applicable step is tried, and may still fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import DOWN, ON_METADATA, UNFLUSHED_LOST, Effect
from harness.model import UsageError
from harness.scenario.link_steps import LinkSteps
from harness.scenario.steps import Act, Add, Delay, Double, Heal, Hold, Inject, Install, Release, Remove
from harness.target.wire import METADATA

# Returns why a fault is not applicable to a node now, "" if it is.
_WhyNot = Callable[[Cluster, str], str]


def why_not(
    act: Act,
    cluster: Cluster,
    links: LinkSteps,
    faults: Mapping[str, Fault],
    *,
    alike: bool = False,
) -> str:
    """
    Return why the step is not applicable now, "" if it is.

    Args:
        alike: treat an election, and a move of a partition, as inapplicable whenever Apache Kafka could not grant
            it, for every target.
    """
    if reason := next(filter(None, map(cluster.lacks, act.needs())), ""):
        return reason
    match act:
        case Inject(name, nodes, place):
            fault = faults[name]
            if reason := next(filter(None, map(cluster.lacks, fault.needs)), ""):
                return reason
            # A service needs no metadata to come back; a node does.
            replicas = [name for name in nodes if name not in cluster.service_nodes]
            if replicas and (out := _why_unheard(fault, cluster)):
                return out
            with cluster.naming(place):
                awaited = _awaited(fault, cluster, replicas)
                if late := [name for name in awaited if links.holds_back(name, METADATA)]:
                    return f"what {late[0]} and the metadata tell each other is held"
                if alike and fault.effect is Effect.LEADER_MOVED and (reason := _why_no_election(cluster)):
                    return reason
                if alike and moves(fault) and cluster.named.is_moving():
                    return "a move is in progress"  # Apache Kafka reads none meanwhile
                return next((reason for node in nodes if (reason := _why_no_fault(fault, cluster, node))), "")
        case Install(protocol, nodes):
            up = next((f"{name} is not down" for name in nodes if name not in cluster.down), "")
            return up or cluster.why_not_installed(protocol)
        case Hold(api=word) | Delay(api=word) | Double(api=word):
            return links.words.lack(word)
        case Release(api, src, dst, direction):
            try:
                links.hold_of(api, src, dst, direction)
            except UsageError:
                return "there is no such hold"
        case Remove() | Add():
            return "the metadata answer nobody" if cluster.services is not None and cluster.services.out else ""
        case Heal(src, dst):
            if not any((src, dst) in rule.ends for rule in links.rules):
                return "there is no such rule"
    return ""


def moves(fault: Fault) -> bool:
    """Return True for a fault that asks for a partition's replicas to be moved, away or back."""
    return fault.effect is Effect.MOVED_AWAY or Effect.MOVED_AWAY in fault.heals


def _awaited(fault: Fault, cluster: Cluster, nodes: Sequence[str]) -> Sequence[str]:
    """Return the nodes of which a fault waits until they are registered, or reach the metadata again."""
    if fault.heals & ON_METADATA:
        return sorted({*nodes} & cluster.in_force.nodes({Effect.METADATA_LOST}))
    return nodes if fault.heals & _REGISTERING else ()


def _why_unheard(fault: Fault, cluster: Cluster) -> str:
    """Return that the metadata answer nobody, if a fault needs them; one of processes, disks or links does not."""
    if cluster.services is None or not cluster.services.out or fault.heals & ON_METADATA:
        return ""
    needs = (
        fault.effect in _ASKING
        or moves(fault)
        or bool(fault.heals & _REGISTERING)
        or Ability.SERVICE_ENSEMBLE in fault.needs
    )
    return "the metadata answer nobody" if needs else ""


# A fault that heals one of these waits until the node is registered anew.
_REGISTERING: Final = DOWN | {Effect.CUT_OFF}
# A fault of these effects asks the metadata for it.
_ASKING: Final = frozenset(
    {Effect.SESSION_ENDED, Effect.OFFICE_LOST, Effect.LEADER_MOVED, Effect.CUT_OFF, Effect.ANSWER_LOST}
)


def _runs(cluster: Cluster, name: str) -> str:
    if name in cluster.down:
        return f"{name} is down"
    return f"{name} is paused" if name in cluster.paused else ""


def _is_up(cluster: Cluster, name: str) -> str:
    return f"{name} is down" if name in cluster.down else ""


def _is_down(cluster: Cluster, name: str) -> str:
    return "" if name in cluster.down else f"{name} is not down"


def _may_become_zombie(cluster: Cluster, name: str) -> str:
    if name in cluster.zombies:
        return f"{name} is a zombie already"
    return _runs(cluster, name) or _is_registered(cluster, name)


def _may_restart(cluster: Cluster, name: str) -> str:
    if name not in cluster.down:
        return f"{name} is not down"
    cut = name in cluster.zombies or name in cluster.in_force.nodes({Effect.METADATA_LOST})
    return f"{name} is cut from the metadata" if cut else ""


def _may_return(cluster: Cluster, name: str) -> str:
    if name not in cluster.zombies:
        return f"{name} is not a zombie"
    if name in cluster.in_force.nodes({Effect.METADATA_LOST}):
        return f"{name} is cut from the metadata by another fault too"
    return f"{name} is paused" if name in cluster.paused else ""


def _may_be_elected(cluster: Cluster, name: str) -> str:
    if cluster.named.leader() == name:
        return f"{name} leads already"
    return "" if name in cluster.named.isr() else f"{name} is not in the ISR"


def _why_no_election(cluster: Cluster) -> str:
    """
    Return why Apache Kafka could not elect another leader now, "" if it could.

    It does so by a reassignment of the replicas, all of which must be in the ISR: those that it has, or those that
    it is to have while another reassignment is in progress.
    """
    if cluster.lacks(Ability.CONTROLLER) or cluster.lacks(Ability.MEMBERS):
        return ""  # it elects in another way
    controller = cluster.metadata.controller()
    if controller is None or controller in (*cluster.down, *cluster.paused, *cluster.zombies):
        return f"controller {controller} is not at work"
    office = cluster.metadata.office()
    if (office.member if office else 0) != cluster.metadata.incarnation(controller):
        return f"{controller} is controller in a session that is not its own any more"
    able = (name for name in cluster.named.isr() if name in cluster.ids and name not in cluster.down)
    at_hand = {name for name in able if name not in cluster.zombies and cluster.metadata.incarnation(str(name))}
    wanted = {str(name) for name in cluster.operator.wanted(*cluster.named.place)}
    away = sorted(wanted - at_hand)
    return f"{', '.join(away)} down, not registered or not in the ISR" if away else ""


def _is_paused(cluster: Cluster, name: str) -> str:
    return "" if name in cluster.paused else f"{name} is not paused"


def _is_registered(cluster: Cluster, name: str) -> str:
    return "" if cluster.metadata.incarnation(name) else f"{name} is not registered"


def _is_controller(cluster: Cluster, name: str) -> str:
    return "" if cluster.metadata.controller() == name else f"{name} is not the controller"


def _why_no_fault(fault: Fault, cluster: Cluster, name: str) -> str:
    """Return why a fault is not applicable to a node now, by its effect or the effects that it heals."""
    if fault.by_itself and (reason := _runs(cluster, name)):
        return reason
    for reason in filter(None, (cluster.host.unfit(name, need) for need in fault.needs)):
        return reason
    if fault.why_not is not None and (reason := fault.why_not(cluster, name)):
        return reason
    if fault.effect in UNFLUSHED_LOST and name in cluster.service_nodes:
        why = cluster.lacks(Ability.SERVICE_POWER_LOSS)
        return why or _is_up(cluster, name)
    if not fault.heals:
        rule = _OF_EFFECT.get(fault.effect)
        return rule(cluster, name) if rule else _may_suffer(fault.effect, cluster, name)
    for effect, undone in _OF_HEALING.items():
        if effect in fault.heals:
            return undone(cluster, name)
    in_force = cluster.in_force.nodes(fault.heals)
    return "" if name in in_force else f"{name} is not {', '.join(sorted(fault.heals))}"


def _may_suffer(effect: Effect, cluster: Cluster, name: str) -> str:
    """The rule for effects without one of their own: the node runs, and is not under the effect already."""
    already = effect.lasts and name in cluster.in_force.nodes({effect})
    return f"{name} is {effect.value} already" if already else _runs(cluster, name)


def _always(_cluster: Cluster, _name: str) -> str:
    return ""


_OF_EFFECT: Final[Mapping[Effect, _WhyNot]] = {
    Effect.DOWN: _is_up,
    Effect.POWER_LOST: _is_up,
    Effect.PAGES_LOST: _is_up,
    Effect.PAUSED: _runs,
    Effect.NONE: _is_up,
    Effect.SESSION_ENDED: _is_registered,
    Effect.CUT_OFF: _may_become_zombie,
    Effect.LEADER_MOVED: _may_be_elected,
    Effect.OFFICE_LOST: _is_controller,
    Effect.ANSWER_LOST: _is_controller,
    Effect.LOG_CUT: _always,
    Effect.DISK_LOST: _is_down,
}
_OF_HEALING: Final[Mapping[Effect, _WhyNot]] = {
    Effect.DOWN: _may_restart,
    Effect.PAUSED: _is_paused,
    Effect.CUT_OFF: _may_return,
}
