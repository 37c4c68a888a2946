"""
What the epoch of a batch says of the append that it may be a copy of.

Every batch has the epoch in which its leader appended it; a follower's append reports the epoch of its last batch,
and a recovery the checkpoint of epochs (KIP-101). So records of two appends at one offset can be told apart.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final, TypeAlias

from checkers.facts.cleaned import compacted_by
from checkers.facts.replica_log import UNKNOWN, Change, Piece
from checkers.facts.view import newest_counts, newest_wins, rules_of, setup_of
from harness.events import Append, Recovered
from harness.model import Op

# The offset at which an epoch starts, and the epoch, for each.
Starts: TypeAlias = list[tuple[int, int]]
_offset_of: Final = itemgetter(0)


class BatchEpochs:
    """The epoch of each leader's append, by its origin: the index of the op that tells of it."""

    def __init__(self, ops: Sequence[Op], wrote: Iterable[tuple[Op, Append]]) -> None:
        """
        Note the epoch of each append.

        Args:
            ops: the ops of one partition and the global ones.
            wrote: the leaders' appends.
        """
        self._ops = ops
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
        return _epoch_at(starts_of(step), offset) if self._tells_epochs else UNKNOWN

    def unfit_from(self, op: Op, starts: Starts, pieces: Iterable[Piece]) -> int | None:
        """
        Return the first offset at which a recovered log has a record of another epoch than its origin's.

        Args:
            op: the recovery.
            starts: what it tells of epochs.
            pieces: what the log had, in the order of offsets.
        """
        if not self._tells_epochs or not starts:
            return None
        for first, end, origin in pieces:
            if origin not in self._epoch_of:
                continue
            begun = starts[bisect_right(starts, first, key=_offset_of) : bisect_left(starts, end, key=_offset_of)]
            for offset in (first, *(start for start, _ in begun)):
                if self._may_have_written(origin, _epoch_at(starts, offset)):
                    continue
                if not self._may_be_compacted(op, starts, offset, self._epoch_of[origin]):
                    return offset
        return None

    def _may_be_compacted(self, op: Op, starts: Starts, offset: int, epoch: int) -> bool:
        """
        Return True if compaction may have left no batch of an epoch at an offset of a recovered log.

        An epoch starts at its first batch that is left, above the offset at which its leader began. Only a log
        that goes on in that epoch, or in a newer one, has got past it: one that ends before has lost it, since a
        cleaner never removes the last batch. And one that has a newer epoch there was written anew.
        """
        place = bisect_right(starts, offset, key=_offset_of)
        if place == len(starts) or _epoch_at(starts, offset) > epoch or starts[place][1] < epoch:
            return False
        return starts[place][0] <= compacted_by(self._ops, op.index)

    def is_last(self, op: Op, step: Recovered, origin: int) -> bool:
        """
        Return False if the last batch of a recovered log is surely of another append than this one.

        After a start the last entry is that of the last batch, and there is none if that has no epoch: also where
        a broker followed a protocol without epochs for a while, which leaves other batches uncertain.
        """
        rules = rules_of(self._ops, op.process, op.index)
        if not (self._tells_all and rules.get("epochs") == "yes" and newest_wins(rules)):
            return True
        last = max((epoch for epoch, _ in step.epochs), default=UNKNOWN)
        return origin == UNKNOWN or self._epoch_of.get(origin, UNKNOWN) == last

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
        return self._may_have_written(origin, self.recovered_at(step, offset))

    def fits_cleaned(self, op: Op, step: Recovered, offset: int, origin: int) -> bool:
        """Return True if a log recovered by that op may have what compaction has left of that origin there."""
        return self.fits(step, offset, origin) or self._may_be_compacted(
            op, starts_of(step), offset, self._epoch_of[origin]
        )

    def _may_have_written(self, origin: int, epoch: int) -> bool:
        """Return True if what a recovered log has in that epoch may be of the origin, whose epoch is known."""
        return epoch == self._epoch_of[origin] or (epoch == UNKNOWN and not self._tells_all)


def starts_of(step: Recovered) -> Starts:
    """Return where each epoch of a recovered log starts, in the order of offsets."""
    return sorted((start, epoch) for epoch, start in step.epochs)


def _epoch_at(starts: Starts, offset: int) -> int:
    place = bisect_right(starts, offset, key=_offset_of)
    return starts[place - 1][1] if place else UNKNOWN
