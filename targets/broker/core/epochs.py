"""
The leader epoch cache: which leader epoch began at which offset (KIP-101's Leader Epoch Sequence).

Plain data without a file: after a change the caller writes it (`LogPort.write_epochs`) before it continues.
Source:  KIP-101, steps 3 and 4.3 to 4.7.1, "Unclean Shutdown"; Kafka's LeaderEpochFileCache, release by release.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from targets.broker.core.rules import BelowFirst, EpochCut, Rules, UndefinedQuery, UnknownEpoch

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1


class EpochEntry(NamedTuple):
    """An epoch and the offset of its first record."""

    epoch: int
    start: int


class EpochEnd(NamedTuple):
    """Where an epoch ends (exclusive); (-1, -1) when unknown."""

    epoch: int
    end: int


UNDEFINED: Final = EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)


@dataclass(slots=True)
class EpochCache:
    """
    The vector (epoch, start offset) of one replica, rising in both.

    Every change returns True if anything changed, so that the caller writes the checkpoint only then.
    """

    rules: Rules
    entries: list[EpochEntry] = field(default_factory=list)

    @property
    def latest(self) -> int:
        """Return the last epoch, -1 when none is known."""
        return self.entries[-1].epoch if self.entries else UNDEFINED_EPOCH

    def assign(self, epoch: int, start: int) -> bool:
        """
        Record that `epoch` begins at `start`, unless it began before.

        A contradiction of older entries is ignored up to 2.0.0 and wins from 2.0.1 on (newest_epoch_wins).

        Raises:
            ValueError: the epoch or the offset is negative.
        """
        if epoch < 0 or start < 0:
            raise ValueError(f"epoch {epoch} at offset {start}: expected both to be at least 0")
        last = self.entries[-1] if self.entries else None
        if not self.rules.newest_epoch_wins:
            if last is not None and (epoch <= last.epoch or start < last.start):
                return False
        elif last is not None:
            if last.epoch == epoch and start >= last.start:
                return False
            while self.entries and (self.entries[-1].epoch >= epoch or self.entries[-1].start >= start):
                self.entries.pop()
        self.entries.append(EpochEntry(epoch, start))
        return True

    def note(self, epoch: int, start: int) -> bool:
        """
        Record that a batch of `epoch` begins at `start`; a batch without an epoch (-1) clears the cache.

        Otherwise the last epoch would answer for records that are not its own.
        Source:  KAFKA-7897: "clear the epoch cache so that we revert to truncation by high watermark".
        """
        return self.clear() if epoch == UNDEFINED_EPOCH else self.assign(epoch, start)

    def end_offset_for(self, query: int, log_end_offset: int) -> EpochEnd:
        """
        Return where epoch `query` ends: at the start of the first larger epoch, or at the log's end.

        Source:  KIP-101 step 4.3 and Request Semantics 1; KAFKA-6361, KAFKA-6857 and KAFKA-7415 for the switches.
        """
        if query == UNDEFINED_EPOCH:
            if not self.entries and self.rules.undefined_query is UndefinedQuery.LOG_END:
                return EpochEnd(UNDEFINED_EPOCH, log_end_offset)
            return UNDEFINED
        if query == self.latest:
            return EpochEnd(query, log_end_offset)
        later = next((entry for entry in self.entries if entry.epoch > query), None)
        if later is None:
            return UNDEFINED
        earlier = [entry.epoch for entry in self.entries if entry.epoch <= query]
        if not earlier:
            first_start = self.rules.below_first_epoch is BelowFirst.FIRST_START
            return EpochEnd(query, later.start) if first_start else UNDEFINED
        if earlier[-1] != query and self.rules.unknown_epoch is UnknownEpoch.UNDEFINED:
            return UNDEFINED
        return EpochEnd(earlier[-1], later.start)

    def truncate_from_end(self, end: int) -> bool:
        """
        Remove entries that begin at `end` or later, since the log now ends there; -1 changes nothing.

        By the letter of KIP-101 only entries that begin *past* the end are removed (EpochCut.PAST).
        """
        if end < 0:
            return False
        past = self.rules.epoch_cut is EpochCut.PAST
        kept = [entry for entry in self.entries if entry.start < end or (past and entry.start == end)]
        return self._replace(kept)

    def reset_last_to(self, end: int) -> bool:
        """
        Step 4.4 by the letter: when epochs begin past the leader's answer, reset the last one to it.

        Kafka's code removes them instead, as truncate_from_end does (EpochCut.AT_OR_PAST).
        """
        if self.rules.epoch_cut is EpochCut.AT_OR_PAST or self.latest < 0 or self.entries[-1].start <= end:
            return self.truncate_from_end(end)
        last = self.entries[-1].epoch
        kept = [entry for entry in self.entries if entry.start <= end]
        return self._replace([*kept, EpochEntry(last, end)])

    def truncate_from_start(self, start: int) -> bool:
        """Fold the entries before the log's new start into one entry at that start; -1 changes nothing."""
        if start < 0:
            return False
        before = [entry for entry in self.entries if entry.start <= start]
        if not before:
            return False
        after = [entry for entry in self.entries if entry.start > start]
        return self._replace([EpochEntry(before[-1].epoch, start), *after])

    def clear(self) -> bool:
        """Remove all entries."""
        return self._replace([])

    def previous(self, epoch: int) -> int:
        """Return the last known epoch before this one, -1 when there is none."""
        return max((entry.epoch for entry in self.entries if entry.epoch < epoch), default=UNDEFINED_EPOCH)

    def next(self, epoch: int) -> int:
        """Return the first known epoch after this one, -1 when there is none."""
        return next((entry.epoch for entry in self.entries if entry.epoch > epoch), UNDEFINED_EPOCH)

    def start_of(self, epoch: int) -> int:
        """Return where this epoch begins, -1 when unknown."""
        return next((entry.start for entry in self.entries if entry.epoch == epoch), UNDEFINED_OFFSET)

    def epoch_at(self, offset: int) -> int:
        """Return the epoch of the record at this offset, -1 when it lies before the first entry."""
        held = [entry.epoch for entry in self.entries if entry.start <= offset]
        return held[-1] if held else UNDEFINED_EPOCH

    def _replace(self, kept: list[EpochEntry]) -> bool:
        changed = kept != self.entries
        self.entries = kept
        return changed


def recovered_cache(
    rules: Rules,
    file_epochs: Iterable[tuple[int, int]],
    batch_epochs: Iterable[tuple[int, int]],
    log_start_offset: int,
    log_end_offset: int,
    *,
    batch_ends: Sequence[int] = (),
) -> EpochCache:
    """
    Rebuild the cache of a log that was just opened: checkpoint, then batches, then the log's own bounds.

    The checkpoint is durable before the log is: after a power loss undid a truncation, the old records are back
    below entries that were written since. Entries that the batches contradict are removed; otherwise their epochs
    would never be asked about. (Kafka keeps such entries: its recovery only adds epochs newer than the
    checkpoint's last.)

    Args:
        file_epochs: (epoch, start offset) as in the checkpoint file.
        batch_epochs: (epoch, base offset) of the scanned batches; -1 for batches without an epoch, which
            clear the entries before them.
        batch_ends: where the last batch of each of these ends, () for where the next one begins. Of an epoch all
            of whose records compaction has removed, the entry stays: no batch contradicts it.

    Source:  KIP-101, "Unclean Shutdown", and the footnote on flushing: a missing part is rebuilt; KAFKA-7897.
    """
    runs = list(batch_epochs)
    cache = EpochCache(rules, [EpochEntry(*entry) for entry in file_epochs])
    # Remove entries past the log's end first: under the older conflict rule they would hide the batches' own.
    cache.truncate_from_end(log_end_offset)
    ends = batch_ends or [*(base for _, base in runs[1:]), *([log_end_offset] if runs else [])]
    cache.entries = _uncontradicted(cache.entries, runs, ends)
    for (epoch, base_offset), end in zip(runs, ends, strict=True):
        if epoch > cache.latest:
            cache.assign(epoch, base_offset)
        elif epoch < 0:
            # Also those that begin among batches without an epoch: a broker that was set back to a protocol
            # without epochs has left the checkpoint as it was, and written others in place of what it tells of.
            cache.entries = [entry for entry in cache.entries if entry.start >= end]
    cache.truncate_from_start(log_start_offset)
    return cache


def _uncontradicted(
    entries: list[EpochEntry], runs: list[tuple[int, int]], ends: Iterable[int]
) -> list[EpochEntry]:
    """
    Return the entries before the first one at or past whose start a batch of an older epoch exists.

    Nor does an epoch begin behind a batch of a newer one: such an entry is left of what was there before a broker
    was set back to a protocol without epochs.
    """
    spans = [(epoch, end) for (epoch, _), end in zip(runs, ends, strict=True)]
    kept: list[EpochEntry] = []
    for entry in entries:
        if any(0 <= epoch < entry.epoch and end > entry.start for epoch, end in spans):
            break
        if not any(epoch > entry.epoch and base < entry.start for epoch, base in runs):
            kept.append(entry)
    return kept
