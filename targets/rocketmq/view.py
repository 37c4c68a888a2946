"""
What the controller of a cluster of RocketMQ holds true: the master of the brokers, and their SyncStateSet.

A group of brokers has one master, one epoch and one SyncStateSet, so these are the state of each queue of each
topic that the harness made. It is asked again and again: what lies between two looks is not known.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.metadata import Polled
from harness.target.metadata import Look, PartitionTruth, Place, TargetRun
from targets.rocketmq.asking import Replica, Replicas, replicas_at
from targets.rocketmq.config import host_of


class RocketView(Polled):
    """The view of one cluster; see harness/target/metadata.py for every call."""

    def __init__(self, run: TargetRun) -> None:
        self._controllers = run.services
        self._nodes = {host_of(name): name for name in run.ids}
        # Topic -> how many queues the harness made.
        self._topics: dict[str, int] = {}
        super().__init__(run, self._looked)

    def made(self, topic: str, queues: int) -> None:
        """Know a topic from now on."""
        self._topics = {**self._topics, topic: queues}

    def brokers(self) -> Replicas | None:
        """Return what the controller holds true now, None if none answers."""
        return replicas_at(self._controllers)

    def node_of(self, replica: Replica) -> str | None:
        """Return the node that a broker is, None if it is none of the run."""
        return self._nodes.get(replica.host)

    def _looked(self) -> Look | None:
        found = self.brokers()
        return None if found is None else look_of(found, self._nodes, self._topics)


def look_of(found: Replicas, nodes: Mapping[str, str], topics: Mapping[str, int]) -> Look:
    """
    Return a look at what a controller said.

    Args:
        nodes: host -> node.
        topics: topic -> how many queues it has.
    """
    places: list[Place] = [(topic, queue) for topic, queues in topics.items() for queue in range(queues)]
    master = next((nodes.get(each.host) for each in found.replicas if each.number == found.master), None)
    ordered = sorted(found.replicas, key=lambda each: nodes.get(each.host) or "")
    in_sync = tuple(nodes.get(each.host) for each in ordered if each.in_sync)
    truth = PartitionTruth(leader=master, epoch=found.epoch, in_sync=in_sync)
    assigned = tuple(nodes.get(each.host) for each in ordered)
    said = {node: _word(each, found, master) for each in found.replicas if (node := nodes.get(each.host))}
    return Look(
        states=dict.fromkeys(places, truth),
        assigned=dict.fromkeys(places, assigned),
        said=dict.fromkeys(places, said),
    )


def _word(replica: Replica, found: Replicas, master: str | None) -> str:
    alive = "alive" if replica.alive else "not alive"
    member = "in" if replica.in_sync else "not in"
    return (
        f"is broker {replica.number}, {alive} to the controller and {member} the SyncStateSet, "
        f"which {master or 'nobody'} leads in epoch {found.epoch}"
    )
