"""
Faults of links: rules of the fabric that a fault puts in force around a node, and lifts again.

A rule that takes no frame has no effect, so a fault waits until one was taken, and lifts its rules if none is.
The fabric's own count of the frames is the evidence, link by link. Links to the metadata and to clients have
faults of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from harness.cluster.aims import expanded
from harness.cluster.cluster import Cluster
from harness.cluster.in_force import FaultInForce
from harness.effect import ON_LINKS, Effect
from harness.model import PreconditionError
from harness.target.services import governed_by_links

Link = tuple[str, str]

# Longer than brokers at work are silent to each other: a follower fetches every 50 ms (Kafka's default is 500 ms).
BITES_WITHIN_S: Final = 3.0
# After a heal: how long a connection may take to come back, before the evidence says that none did.
BACK_WITHIN_S: Final = 2.0
ANY_API: Final = "*"
METADATA: Final = "metadata"
DIRECTIONS: Final = ("request", "answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRules:
    """The rules of one fault on one node, and the word for what they do to a frame: `lost`, `held`, `late`."""

    word: str
    rules: tuple[object, ...]


def begin(cluster: Cluster, fault: str, effect: Effect, node: str, rules: LinkRules) -> str:
    """
    Keep rules that were just made as a fault in force, and return what they took so far, one frame at least.

    Raises:
        PreconditionError: they took none in time; they are lifted.
    """
    found = _keep(cluster, fault, effect, node, rules)
    bitten = cluster.time.until(lambda: cluster.cancelled or any(_taken(cluster, rules)), BITES_WITHIN_S)
    if not bitten:
        for rule in rules.rules:
            cluster.fabric.lift(rule)
        cluster.in_force.remove(found)
        raise PreconditionError(
            f"{fault} {node}: no frame was {rules.word} within {BITES_WITHIN_S:g} s; expected one at least"
        )
    return evidence(cluster, rules)


def sever(cluster: Cluster, fault: str, effect: Effect, node: str, links: Iterable[Link]) -> str:
    """
    Cut these links as a fault of the node, and return the frames that were lost so far, one at least.

    Raises:
        PreconditionError: the fault is in force on the node already, or no frame was lost in time.
    """
    refuse_twice(cluster, fault, node)
    cut = cluster.fabric.cut_links(links)
    return begin(cluster, fault, effect, node, LinkRules(word="lost", rules=(cut,)))


def isolate(cluster: Cluster, fault: str, effect: Effect, node: str) -> str:
    """
    Cut a node from all others, or all nodes from a service; return what was lost so far, something at least.

    Nodes may ask a service seldom, so their connections to it end.

    Raises:
        PreconditionError: as `sever`; or the service has several processes, which are one to the fabric.
    """
    by_links = linked(cluster)
    if node not in cluster.service_nodes or node in by_links:
        return sever(cluster, fault, effect, node, around(cluster, node))
    refuse_twice(cluster, fault, node)
    if len(cluster.service_nodes) - len(by_links) > 1:
        raise PreconditionError(
            f"{node}: links to several processes of services are one to the fabric; expected a lone one"
        )
    rules = tuple(cluster.fabric.cut(name, METADATA, close=True) for name in (*cluster.ids, *by_links))
    return begin(cluster, fault, effect, node, LinkRules(word="lost", rules=rules))


def impose(cluster: Cluster, fault: str, effect: Effect, node: str, rules: LinkRules) -> str:
    """Keep rules of a link that may be silent for long; what they take is counted when they are lifted."""
    _keep(cluster, fault, effect, node, rules)
    return f"in force; {evidence(cluster, rules)} yet"


def refuse_twice(cluster: Cluster, fault: str, node: str) -> None:
    """Raise PreconditionError if the fault is in force on the node already."""
    if any((found.fault, found.node) == (fault, node) for found in cluster.in_force):
        raise PreconditionError(f"{fault} {node}: in force already; expected a node without it")


def probe(cluster: Cluster, node: str) -> str:
    """Return "" while a rule of a fault of the node's links is in force, else that none is."""
    standing = any(
        cluster.fabric.stands(rule) for found in _with_rules(cluster, node) for rule in _rules_of(found).rules
    )
    return "" if standing else "no rule of its links is in force; expected one"


def end(cluster: Cluster, node: str) -> str:
    """
    Lift all rules of the node's faults; return the frames that each took, and a link that is open again.

    Raises:
        PreconditionError: there is no such fault.
    """
    found = on_links(cluster, node)
    if not found:
        raise PreconditionError(f"reconnect {node}: its links are as they were; expected a fault of them")
    seen = "; ".join(lift(cluster, each) for each in found)
    links = [link for each in found for link, _ in _counts(cluster, _rules_of(each))]
    return f"{seen}; {_open_again(cluster, links)}"


def lift(cluster: Cluster, found: FaultInForce) -> str:
    """Lift the rules of one fault; return the frames that they took."""
    rules = _rules_of(found)
    for rule in rules.rules:
        cluster.fabric.lift(rule)
    return f"{found.fault}: {evidence(cluster, rules)}"


def on_links(cluster: Cluster, node: str) -> list[FaultInForce]:
    """Return the faults in force on a node's links that `reconnect` undoes."""
    return [found for found in _with_rules(cluster, node) if found.effect in ON_LINKS]


def evidence(cluster: Cluster, rules: LinkRules) -> str:
    """Return the frames that the rules took, link by link: `lost: 12 on A -> B, 3 on B -> A`."""
    counts = [f"{count or 'whole connections'} on {' -> '.join(link)}" for link, count in _counts(cluster, rules)]
    return f"frames {rules.word}: {', '.join(counts) or 'none'}"


# --- sets of links ---------------------------------------------------------------------------------------------
def between(ours: Collection[str], theirs: Collection[str]) -> list[Link]:
    """Return every link between two groups of nodes, in both directions."""
    return [link for a in ours for b in theirs for link in ((a, b), (b, a))]


def around(cluster: Cluster, node: str) -> list[Link]:
    """Return every link between a node and the others, linked services' processes among them."""
    others = (*cluster.ids, *linked(cluster))
    return between((node,), [name for name in others if name != node])


def to_metadata(cluster: Cluster, node: str) -> list[Link]:
    """
    Return the links between a node and the metadata: one of their own kind, or those to linked processes.

    A service that is reached by links of its own tells nodes what to do, too: these links are both ways.
    """
    if governed_by_links(cluster.target.services):
        return between((node,), _parted_from(cluster))
    return [(node, METADATA)]


def _parted_from(cluster: Cluster) -> Sequence[str]:
    """
    Return the linked processes that the step at hand names, all of them if it names none.

    Raises:
        PreconditionError: nodes reach what it names by no link of its own.
    """
    named, reached = cluster.parted_from, linked(cluster)
    if named is None:
        return reached
    found = [name for name in expanded((named,), cluster) if name in reached]
    if not found:
        raise PreconditionError(
            f"{named}: nodes reach it by no link of its own; expected one of {', '.join(reached)}"
        )
    return found


def linked(cluster: Cluster) -> tuple[str, ...]:
    """Return the processes of services that nodes reach by links of their own."""
    return () if cluster.services is None else cluster.services.linked


def half_of(cluster: Cluster, node: str) -> list[str]:
    """Return the half that begins with a node, in the order of the nodes; of an odd number the smaller."""
    names = list(cluster.ids)
    first = names.index(node)
    return [*names[first:], *names[:first]][: max(1, len(names) // 2)]


def across_the_ring(cluster: Cluster, node: str) -> list[Link]:
    """
    Return every link that is no side of the ring of nodes: each then reaches its two neighbours alone.

    Three nodes are neighbours all: of them each reaches the next one alone, and is reached by the one before.

    Raises:
        PreconditionError: there are fewer than three.
    """
    names = list(cluster.ids)
    count = len(names)
    if count < 3:
        raise PreconditionError(f"partition-ring {node}: {count} nodes; expected three at least")
    sides = {1} if count == 3 else {1, count - 1}
    pairs = permutations(range(count), 2)
    return [(names[src], names[dst]) for src, dst in pairs if (dst - src) % count not in sides]


# --- helpers ---------------------------------------------------------------------------------------------------
def _keep(cluster: Cluster, fault: str, effect: Effect, node: str, rules: LinkRules) -> FaultInForce:
    """Note rules before anything is waited for: they must be lifted whatever comes."""
    found = FaultInForce(fault=fault, effect=effect, node=node, handle=rules)
    cluster.in_force.begin(found)
    return found


def _with_rules(cluster: Cluster, node: str) -> list[FaultInForce]:
    return [found for found in cluster.in_force if found.node == node and isinstance(found.handle, LinkRules)]


def _rules_of(found: FaultInForce) -> LinkRules:
    assert isinstance(found.handle, LinkRules), f"{found.fault} has rules of links"
    return found.handle


def _taken(cluster: Cluster, rules: LinkRules) -> Iterator[bool]:
    return (bool(cluster.fabric.affected(rule)) for rule in rules.rules)


def _counts(cluster: Cluster, rules: LinkRules) -> Sequence[tuple[Link, int]]:
    counts: dict[Link, int] = {}
    for rule in rules.rules:
        for link, count in cluster.fabric.affected(rule).items():
            counts[link] = counts.get(link, 0) + count
    return sorted(counts.items())


def _open_again(cluster: Cluster, links: Collection[Link]) -> str:
    """Return which of the links has a connection again; nodes that are down or paused make none."""
    still = cluster.down | cluster.paused
    able = [link for link in links if still.isdisjoint(link)]

    def is_open() -> list[Link]:
        return [link for link in able if cluster.fabric.connections(*link)]

    if not able or not cluster.time.until(lambda: cluster.cancelled or bool(is_open()), BACK_WITHIN_S):
        return "no connection of them is open yet"
    return f"open again: {', '.join(' -> '.join(link) for link in is_open())}"
