"""
What a fault is: a package of what it does, how it proves that it bit, how it is undone, and how plots shade it.

A new fault is one file in `nemesis/` and one line in its table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from harness.cluster import Cluster


class Band(StrEnum):
    """How a timeline shades the fault: until the node is back, goes on or returns, or a mere mark."""

    DOWN = "down"
    PAUSED = "paused"
    ZOMBIE = "zombie"
    MARK = "mark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """
    One fault, injected into one node.

    Shapes:  inject does it and gives what its probe saw; it raises PreconditionError when it did not bite.
             heal undoes it on a node, and is called for every node that still needs it before the final reads.
    """

    name: str
    doc: str
    inject: Callable[[Cluster, str], str]
    heal: Callable[[Cluster, str], str] | None
    band: Band
