"""A large history of which only some ops are in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.model import Op, PartOps


class AbridgedRun(PartOps):
    """
    The ops of a large run that its result and its report need, in index order; the bulk of them is left out.

    What is counted of all ops is among its facts (harness/suite/abridged.py).

    Attributes:
        total: the number of ops of the whole history.
        left_out: f -> how many ops of it are left out, or stand for others as one.
    """

    total: int = 0
    left_out: Mapping[str, int] = {}

    @staticmethod
    def of(ops: Iterable[Op], total: int, left_out: Mapping[str, int]) -> AbridgedRun:
        """Return these ops as an abridged run."""
        found = AbridgedRun(ops)
        found.total, found.left_out = total, left_out
        return found

    def only(self, ops: Iterable[Op]) -> AbridgedRun:
        """Return some of the ops, with what is known of all."""
        found = AbridgedRun.of(ops, self.total, self.left_out)
        found.facts.update(self.facts)
        return found
