"""Waits for the cluster to become whole, as an operator would: a damaged leader hands leadership on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from harness.cluster.cluster import Cluster
from harness.cluster.partition import Partition
from harness.model import PreconditionError
from harness.scenario.fault_steps import FaultSteps
from harness.workload.plan import Place

# How often a partition is asked to be moved back; it may be refused again.
_ASKED_MAX: Final = 5


def await_relieved(
    cluster: Cluster,
    fault_steps: FaultSteps,
    condition: Callable[[], bool],
    lacking: Callable[[], str],
    within_s: float,
) -> None:
    """
    Wait for a condition; have another replica lead where a damaged leader keeps it from coming, once an epoch.

    Nothing else helps a follower that needs what its leader cannot give. A partition that was moved by a request
    which seemed to be refused is moved back.

    Args:
        within_s: how long, in seconds, from each such election on anew.

    Raises:
        PreconditionError: the condition did not hold in time; with what is lacking.
    """
    relieved: set[tuple[Place, int]] = set()
    asked: Counter[Place] = Counter()

    def due() -> list[tuple[Partition, int]]:
        led = ((each, each.truth()) for each in cluster.partitions if each.successor())
        epochs = [(each, truth.epoch) for each, truth in led if truth is not None]
        return [(each, epoch) for each, epoch in epochs if (each.place, epoch) not in relieved]

    def is_stray(partition: Partition) -> bool:
        return asked[partition.place] < _ASKED_MAX and cluster.operator.strayed(*partition.place)

    found: list[tuple[Partition, int]] = []
    strays: list[Partition] = []

    def ended() -> bool:
        met = condition()
        found[:] = [] if met else due()
        strays[:] = [] if met else [each for each in cluster.partitions if is_stray(each)]
        return met or bool(found) or bool(strays)

    while True:
        cluster.await_(ended, lacking, within_s)
        if not (found or strays):
            return
        for partition in strays:
            asked[partition.place] += 1
            with suppress(PreconditionError):
                cluster.operator.move(*partition.place, partition.replicas)
        for partition, epoch in found:
            relieved.add((partition.place, epoch))
            if name := partition.successor():
                fault_steps.elect(partition.place, name)
