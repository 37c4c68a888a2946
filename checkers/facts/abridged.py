"""
What a check has left out of a large history: stretches of records on which all evidence agrees.

A stretch is left out of everything at once: of what was acknowledged, of every log, of every read. So no rule can
miss a record of it, and none has to look at it. What remains of it in each log is an `Abridged` batch, so that
offsets and epochs follow each other as they did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.events import Batch
from harness.model import Op, OpType, PartOps


@dataclass(frozen=True, slots=True, kw_only=True)
class Abridged(Batch):
    """
    Batches of one epoch that follow each other without a gap, of whose records some or all are left out.

    It is no event of a history: only checks make it (checkers/spark/assemble.py).

    Attributes:
        stands_for: the number of batches.
    """

    TYPES: ClassVar[tuple[OpType, ...]] = Batch.TYPES

    stands_for: int = 1


class AbridgedOps(PartOps):
    """
    The ops of one partition of which some were left out.

    Attributes:
        sends: how many produces were left out.
    """

    sends: int = 0


def number_of(batch: Batch) -> int:
    """Return the number of batches that a batch stands for."""
    return batch.stands_for if isinstance(batch, Abridged) else 1


def sends_left_out(ops: Sequence[Op]) -> int:
    """Return how many produces were left out of the ops."""
    return ops.sends if isinstance(ops, AbridgedOps) else 0
