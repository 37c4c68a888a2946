"""
Look over a stream's store before its records are read: where it begins, what was deleted, which terms it has.

A record may be deleted by a tombstone that stands behind it, even blocks later. So all blocks are walked once by
the records' first bytes alone, without checksums: what is damaged is reported when the records are read.

    log start    the first live sequence; one after the last if no record is left; 1 in a store that never had any,
                 or whose beginning cannot be read
    log end      one after the highest sequence of a record, of one that was erased or skipped, or of a tombstone
    deleted to   one after the highest sequence with a tombstone whose record is in the files, or was erased there;
                 below it, a missing record proves nothing

What a limit of the stream removed at its beginning (max_msgs, max_age) leaves no tombstone. Such records are in
the files until their block goes, and are read as live ones.

Source:  nats-server 2.15.3, server/filestore.go, rebuildStateFromBufLocked, recoverMsgs, removeMsgFromBlock.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness import limits
from harness.logs.record import NO_EPOCH
from harness.logs.source import Source
from targets.nats.logs.blocks import ERASED_BIT, TOMBSTONE_BIT, headings
from targets.nats.logs.raft_log import Terms
from targets.nats.logs.store import OpenError, Store

FIRST: Final = 1
# Of eight bytes each; a block of 8 MB has at most 280,000 tombstones.
TOMBSTONES_MAX: Final = 4_000_000
_RANGES_MAX: Final = 1_000_000

_Numbers: TypeAlias = NDArray[np.uint64]


@dataclass(slots=True, kw_only=True)
class Survey:
    """
    What the first bytes of a store's records say.

    Attributes:
        tombstones: The sequences that have one, rising.
        epochs: The (term, first sequence) of the records whose term is known.
        is_full: There are more tombstones than are kept.
    """

    start: int = FIRST
    end: int = FIRST
    deleted_to: int = 0
    tombstones: array[int] = field(default_factory=lambda: array("Q"))
    epochs: list[tuple[int, int]] = field(default_factory=list)
    is_full: bool = False

    def is_deleted(self, sequence: int) -> bool:
        """Return whether a sequence has a tombstone."""
        return has(self.tombstones, sequence)


def has(rising: array[int], sequence: int) -> bool:
    """Return whether a sequence is among rising ones."""
    at = bisect_left(rising, sequence)
    return at < len(rising) and rising[at] == sequence


def survey(store: Store, terms: Terms) -> Survey:
    """Look over a store; what cannot be opened is left out, and if nothing is known before it, so is the start."""
    found = _Walk(terms)
    for number in store.blocks:
        try:
            with store.source(number) as (source, why):
                is_whole = found.add(source) and not why
        except (OpenError, OSError):
            is_whole = False
        found.is_start_lost |= not (is_whole or found.has_any)
    return found.survey()


def block_end(source: Source) -> int | None:
    """
    Return the end that a block shows by the first bytes of its records; 0 if it has none.

    None: it has damage, so that only a whole reading can say.
    """
    end = position = 0
    for each in headings(source):
        end = max(end, (each.sequence & ~(ERASED_BIT | TOMBSTONE_BIT)) + 1)
        position = each.position + each.size
    if position < source.size:
        # The last record may be half written: then it claims more than there is.
        length = int.from_bytes(source.at(position, 4), "little") & 0x7FFFFFFF
        if source.size - position >= 4 and length <= source.size - position:
            return None
    return end


class _Walk:
    """Live sequences are kept as ranges: they are as many as the records, and nearly all follow each other."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._begins, self._ends = array("Q"), array("Q")
        self._tombstones = array("Q")
        self._erased = array("Q")
        self._end = FIRST
        # What cannot be read may have had the first record.
        self.is_start_lost = False
        self._epochs: list[tuple[int, int]] = []
        self._term = NO_EPOCH

    @property
    def has_any(self) -> bool:
        """Whether any sequence was found so far."""
        return self._end > FIRST

    def add(self, source: Source) -> bool:
        """Look over a block; return whether that was possible up to its end."""
        position = 0
        begins, ends = self._begins, self._ends
        next_sequence = -1
        end, at = self._end, self._terms.at
        for begin, size, flagged, timestamp_ns in headings(source):
            position = begin + size
            sequence = flagged & (TOMBSTONE_BIT - 1)
            if flagged >= TOMBSTONE_BIT:
                kept = self._erased if flagged & ERASED_BIT else self._tombstones
                if len(kept) <= TOMBSTONES_MAX:
                    kept.append(sequence)
            else:
                if sequence != next_sequence and len(begins) < _RANGES_MAX:
                    begins.append(sequence)
                    ends.append(sequence)
                next_sequence = sequence + 1
                ends[-1] = max(ends[-1], next_sequence)
                term = at(sequence, timestamp_ns)
                if term > self._term and len(self._epochs) < limits.EPOCHS_MAX:
                    self._term = term
                    self._epochs.append((term, sequence))
            if sequence >= end:
                end = sequence + 1
        self._end = end
        return position >= source.size

    def survey(self) -> Survey:
        """Return what was found."""
        sorted_ones = np.unique(np.frombuffer(self._tombstones, dtype=np.uint64)[:TOMBSTONES_MAX])
        tombstones = array("Q", sorted_ones.tobytes())
        begins = np.frombuffer(self._begins, dtype=np.uint64)
        ends = np.frombuffer(self._ends, dtype=np.uint64)
        return Survey(
            start=FIRST if self.is_start_lost else _first_live(begins, ends, tombstones, self._end),
            end=self._end,
            deleted_to=max(_deleted_to(begins, ends, sorted_ones), self._erased_to(sorted_ones)),
            tombstones=tombstones,
            epochs=self._epochs,
            is_full=len(self._tombstones) > TOMBSTONES_MAX,
        )

    def _erased_to(self, tombstones: _Numbers) -> int:
        """Return the end of the highest sequence that was erased and has a tombstone."""
        erased = np.intersect1d(np.frombuffer(self._erased, dtype=np.uint64), tombstones)
        return int(erased[-1]) + 1 if len(erased) else 0


def _first_live(begins: _Numbers, ends: _Numbers, tombstones: array[int], end: int) -> int:
    """Return the lowest sequence of the ranges that has no tombstone; the end if all have one."""
    for each in np.argsort(begins, kind="stable"):
        sequence, stop = int(begins[each]), int(ends[each])
        at = bisect_left(tombstones, sequence)
        while sequence < stop and at < len(tombstones) and tombstones[at] == sequence:
            sequence, at = sequence + 1, at + 1
        if sequence < stop:
            return sequence
    return end


def _deleted_to(begins: _Numbers, ends: _Numbers, tombstones: _Numbers) -> int:
    """Return the end of the highest tombstone that lies in a range of records."""
    if not len(begins) or not len(tombstones):
        return 0
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    at = np.searchsorted(begins, tombstones, side="right") - 1
    inside = (at >= 0) & (tombstones < ends[np.maximum(at, 0)])
    return int(tombstones[inside][-1]) + 1 if inside.any() else 0
