"""
What the epoch of a batch says of the append that it may be a copy of.

Every batch has the epoch in which its leader appended it; a follower's append reports the epoch of its last batch,
and a recovery the checkpoint of epochs (KIP-101). So records of two appends at one offset can be told apart.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final

from checkers.facts.replica_log import UNKNOWN, Change, Piece
from checkers.facts.view import newest_counts, setup_of
from harness.events import Append, Recovered
from harness.model import Op

_start_of: Final = itemgetter(0)


class BatchEpochs:
    """The epoch of each leader's append, by its origin: the index of the op that tells of it."""

    def __init__(self, ops: Sequence[Op], wrote: Iterable[tuple[Op, Append]]) -> None:
        """
        Note the epoch of each append.

        Args:
            ops: the ops of one partition and the global ones.
            wrote: the leaders' appends.
        """
        # Where older entries win, what a recovery says of epochs may be older than the batches.
        self._tells_epochs = newest_counts(ops)
        # In the older message format what lies below every entry may be of any epoch (KAFKA-7897).
        setup = setup_of(ops)
        self._tells_all = setup is None or setup.message_format != "without_epochs"
        self._epoch_of = {op.index: step.epoch for op, step in wrote if step.epoch >= 0}

    def note(self, origin: int, epoch: int) -> None:
        """Note the epoch of an append that no op reports."""
        self._epoch_of[origin] = epoch

    def recovered_at(self, step: Recovered, offset: int) -> int:
        """Return the epoch of the batch that a recovered log has there, UNKNOWN if the recovery does not tell."""
        if not self._tells_epochs:
            return UNKNOWN
        return max(((start, epoch) for epoch, start in step.epochs if start <= offset), default=(0, UNKNOWN))[1]

    def unfit_from(self, epochs: Sequence[tuple[int, int]], pieces: Iterable[Piece]) -> int | None:
        """
        Return the first offset at which a recovered log has a record of another epoch than its origin's.

        Args:
            epochs: the start offset of each epoch and the epoch, as the recovery tells of them, sorted.
            pieces: what the log had, in the order of offsets.
        """
        if not self._tells_epochs or not epochs:
            return None
        for first, end, origin in pieces:
            wrote = self._epoch_of.get(origin)
            if wrote is None:
                continue
            place = bisect_right(epochs, first, key=_start_of)
            starts = [first, *(start for start, _ in epochs[place : bisect_left(epochs, end, key=_start_of)])]
            for start in starts:
                place = bisect_right(epochs, start, key=_start_of)
                epoch = epochs[place - 1][1] if place else UNKNOWN
                if epoch != wrote and (epoch != UNKNOWN or self._tells_all):
                    return start
        return None

    def may_be(self, change: Change, offset: int, origin: int) -> bool:
        """Return False if a change of unknown origin is no copy of that append, as its batch's epoch shows."""
        match change.op.event:
            case Append() as step:
                return self.sent(step, change.end, origin)
            case Recovered() as step:
                return self.fits(step, offset, origin)
            case _:
                return True

    def sent(self, step: Append, end: int, origin: int) -> bool:
        """Return False if a follower's append that has the records up to `end` copied another append there."""
        epoch = self._epoch_of.get(origin, UNKNOWN)
        if UNKNOWN in (epoch, step.epoch):
            return True
        return epoch == step.epoch if end == step.end else epoch <= step.epoch

    def fits(self, step: Recovered, offset: int, origin: int) -> bool:
        """Return True if a recovered log may have the record of that origin there, by its batches' epochs."""
        if not self._tells_epochs or origin not in self._epoch_of or not step.epochs:
            return True
        epoch = self.recovered_at(step, offset)
        return epoch == self._epoch_of[origin] or (epoch == UNKNOWN and not self._tells_all)
