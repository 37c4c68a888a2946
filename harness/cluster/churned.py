"""
The topics of a cluster that clients delete and create again: their partitions now, and whether they work.

Each generation of such a topic has replicas of its own, which only the metadata know for certain. So has a
partition that an operator removes, and adds again, of a topic that stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.cluster.partition import Partition
from harness.target.metadata import Metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnedTopics:
    """
    The churned topics of one cluster, and the partitions that are removed.

    Attributes:
        partitions: all that they may have. The replicas of each are those of its newest generation at the last
            look, none while it is not there.
        nodes: all nodes that may hold a replica.
    """

    partitions: tuple[Partition, ...]
    nodes: tuple[str, ...]
    metadata: Metadata

    def look(self) -> None:
        """Learn from the metadata which partitions there are, and on which nodes."""
        assigned = {
            topic: self.metadata.assignment(topic)
            for topic in dict.fromkeys(partition.place.topic for partition in self.partitions)
        }
        for partition in self.partitions:
            names = assigned[partition.place.topic].get(partition.place.partition, ())
            partition.replicas = tuple(name for name in names if name is not None)

    def whole(self) -> bool:
        """Return True if every partition that is there is whole, and no node has a replica that is not there."""
        self.look()
        there = (partition for partition in self.partitions if partition.replicas)
        return all(partition.whole() for partition in there) and not any(self.left_over())

    def works(self) -> bool:
        """Return True if every partition that is there is whole, whatever else nodes have."""
        self.look()
        return all(partition.whole() for partition in self.partitions if partition.replicas)

    def left_over(self) -> Iterator[str]:
        """Yield each log of a partition that no node, or not this one, is to hold."""
        for partition in self.partitions:
            for name in self.nodes:
                if name not in partition.replicas and partition.log(name) is not None:
                    yield f"{name}'s {partition.place}"

    def lacking(self) -> str:
        """Return what is missing for the topics to be whole."""
        lacks = [
            f"{partition.place}: {partition.lacking()}"
            for partition in self.partitions
            if partition.replicas and not partition.whole()
        ]
        return "; ".join(lacks) or f"no log of what is not there, not {', '.join(self.left_over())}"
