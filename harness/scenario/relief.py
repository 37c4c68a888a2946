"""Waits for the cluster to become whole, as an operator would: a damaged leader hands leadership on."""

from __future__ import annotations

from collections.abc import Callable

from harness.cluster.cluster import Cluster
from harness.cluster.partition import Partition
from harness.scenario.fault_steps import FaultSteps
from harness.workload.plan import Place


def await_relieved(
    cluster: Cluster,
    fault_steps: FaultSteps,
    condition: Callable[[], bool],
    lacking: Callable[[], str],
    within_s: float,
) -> None:
    """
    Wait for a condition; have another replica lead where a damaged leader keeps it from coming, once an epoch.

    Nothing else helps a follower that needs what its leader cannot give.

    Args:
        within_s: how long, in seconds, from each such election on anew.

    Raises:
        PreconditionError: the condition did not hold in time; with what is lacking.
    """
    relieved: set[tuple[Place, int]] = set()

    def due() -> list[tuple[Partition, int]]:
        led = ((each, each.truth()) for each in cluster.partitions if each.successor())
        epochs = [(each, truth.epoch) for each, truth in led if truth is not None]
        return [(each, epoch) for each, epoch in epochs if (each.place, epoch) not in relieved]

    found: list[tuple[Partition, int]] = []

    def ended() -> bool:
        met = condition()
        found[:] = [] if met else due()
        return met or bool(found)

    while True:
        cluster.await_(ended, lacking, within_s)
        if not found:
            return
        for partition, epoch in found:
            relieved.add((partition.place, epoch))
            if name := partition.successor():
                fault_steps.elect(partition.place, name)
