"""A workload as a value: what its clients do, what is read at the end, and which checkers it is made for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from harness.workload.plan import ChurnPlan, Clients, Place

# What the runner reads of every partition, whatever the workload is.
FINAL_READS: Final = (
    "once all clients have ended and every fault is healed: each partition from offset 0 to its leader's high "
    "watermark, through a client, and every replica's log from its files"
)


class Plan(Protocol):
    """Draws a workload's clients."""

    def __call__(self, places: Sequence[Place], *, seed: int) -> Clients:
        """Return the clients for these partitions; one seed gives one plan."""


class PlanChurners(Protocol):
    """Draws the clients that create and delete topics of their own."""

    def __call__(self, nodes: Sequence[str], *, seed: int) -> tuple[ChurnPlan, ...]:
        """Return the churners for these nodes; one seed gives one plan."""


def no_churners(nodes: Sequence[str], *, seed: int) -> tuple[ChurnPlan, ...]:
    """Return none, as most workloads do."""
    del nodes, seed
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """
    A workload; the table WORKLOADS has them by name.

    Attributes:
        doc: what it is for, in one sentence.
        clients: draws its producers and consumers.
        churners: draws its churners.
        checkers: names of the checkers that judge what it is for; every run is judged by all.
        final_reads: what is read at the end.
        climbs: whether its schedule is an upgrade, version by version (harness/random_schedule/climb.py), and not
            that of a seed.
        of_libraries: whether it is about client libraries: the simulator, which has none, refuses it, while other
            workloads go without their clients that stand on one.
    """

    name: str
    doc: str
    clients: Plan
    checkers: tuple[str, ...]
    churners: PlanChurners = no_churners
    final_reads: str = FINAL_READS
    climbs: bool = False
    of_libraries: bool = False
