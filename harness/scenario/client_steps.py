"""
Executes the steps by which somebody asks for something: reads, deletions, a topic's settings and partitions.

harness/scenario/steps.py defines them. Removing partitions is asked for as by an operator; it may
still happen after this has waited in vain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from harness import limits
from harness.cluster.cluster import Cluster
from harness.events import AddPartitions, RemovePartitions
from harness.model import OpType, PreconditionError
from harness.scenario.offsets import RecordOffsets
from harness.scenario.steps import Add, ChangeFormat, ClientAct, Delete, Read, Remove
from harness.target.clients import Client
from harness.target.settings import FORMAT_SETTING, FORMAT_VERSIONS
from harness.workload.plan import Place

# The process of the history that asks.
OPERATOR: Final = "client-operator"


class ClientSteps:
    """
    Such steps of one run.

    Attributes:
        removed_s_max: how long to wait until partitions are removed, in seconds.
    """

    def __init__(self, cluster: Cluster, client: Client, record_offsets: RecordOffsets) -> None:
        self._cluster = cluster
        self._client = client
        self._record_offsets = record_offsets
        self.removed_s_max = limits.REMOVED_S_MAX

    def act(self, step: ClientAct) -> None:
        """Execute a step; raise PreconditionError if the cluster does not do it."""
        cluster = self._cluster
        match step:
            case Read(None):
                self._client.read_all(cluster.topic, cluster.partition)
            case Read(node):
                via = cluster.address_of(str(node))
                self._client.read_all(cluster.topic, cluster.partition, via=via)
            case Delete(before):
                offset = self._record_offsets.number(before)
                self._client.delete_records(cluster.topic, cluster.partition, offset)
            case Remove(place):
                self._remove(place)
            case Add(place):
                self._add(place)
            case ChangeFormat(number):
                self._client.alter_topic(cluster.topic, FORMAT_SETTING, FORMAT_VERSIONS[number])

    def _remove(self, place: Place) -> None:
        """Ask, and wait until the topic has them no more."""
        cluster, gone = self._cluster, self._from(place)
        if not gone:
            raise PreconditionError(f"remove {place}: it is not there; expected one that is")
        asked = RemovePartitions(topic=place.topic, partitions=tuple(sorted(gone)))

        def remove() -> None:
            cluster.operator.remove(place.topic, asked.partitions)
            cluster.await_(
                lambda: not self._from(place),
                lambda: f"{place.topic} has {sorted(self._from(place))}; expected them to be gone",
                self.removed_s_max,
            )

        self._as_operator(asked, remove)

    def _add(self, place: Place) -> None:
        """Ask for all that the topic lacks up to this one."""
        cluster, there = self._cluster, self._assigned(place.topic)
        first = max(there, default=-1) + 1
        if not 0 < first <= place.partition:
            has = f"{first} partitions" if first else "none"
            raise PreconditionError(f"add {place}: the topic has {has}; expected fewer, and one at least")
        nodes = [cluster.further[Place(place.topic, number)] for number in range(first, place.partition + 1)]
        if not cluster.operator.creates:
            self._client.add_partitions(place.topic, first, *nodes, ids=cluster.ids)
            return
        asked = AddPartitions(topic=place.topic, first=first, assignments=tuple(map(tuple, nodes)))
        self._as_operator(asked, lambda: cluster.operator.add(place.topic, first, nodes))

    def _as_operator(self, asked: RemovePartitions | AddPartitions, request: Callable[[], object]) -> None:
        """Record a request of an operator, and its outcome; one that fails may be granted later."""
        record = self._cluster.record
        record(OPERATOR, OpType.INVOKE, asked)
        try:
            request()
        except PreconditionError as error:
            record(OPERATOR, OpType.INFO, replace(asked, error=str(error)))
            raise
        record(OPERATOR, OpType.OK, asked)

    def _from(self, place: Place) -> Mapping[int, tuple[str | None, ...]]:
        """Return what the topic has of this partition and of those above it."""
        return {number: of for number, of in self._assigned(place.topic).items() if number >= place.partition}

    def _assigned(self, topic: str) -> Mapping[int, tuple[str | None, ...]]:
        return self._cluster.metadata.assignment(topic)
