"""
Read one stream's store from its folder: its records, their terms from the Raft log, and what could not be read.

Damage becomes a problem text, not an exception. A record that is half written at the end of the newest block is
left out. What is deleted leaves a hole: a tombstone's record is not read, nor one that was erased. Sequences
count from 1.

Source:  nats-server 2.15.3, server/filestore.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness import limits
from harness.beneath import Folder
from harness.events.log import WITH_EPOCHS
from harness.logs.files import Seen, is_disturbed
from harness.logs.names import shown
from harness.logs.record import Record
from harness.logs.replica import BatchSeen, ReplicaLog
from harness.logs.stream import SETTLE_S_MAX
from targets.nats.logs.blocks import Damage, Stored
from targets.nats.logs.data import MESSAGES, Labels, Place, groups_of, places
from targets.nats.logs.entries import Malformed, header_lines
from targets.nats.logs.raft_log import TERMS_MAX, Terms, logged, seen_logs
from targets.nats.logs.store import Store, blocks_in, reason, seen_blocks
from targets.nats.logs.survey import TOMBSTONES_MAX, Survey, survey

# A server compacts its Raft log while it is read: once in a minute at most.
_TERMS_READS_MAX: Final = 3
_UNREADABLE: Final = f"more than {limits.LOG_FINDINGS_MAX} unreadable parts; the rest is not read"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Torn:
    """Damage whose end is not known yet: it is that of the next record."""

    claimed: tuple[int, int] | None


class Scan:
    """One reading of one stream's store; see harness/logs/stream.py for every call."""

    def __init__(self, data: Folder, topic: str, partition: int, labels: Labels | None) -> None:
        """
        Read the Raft log's terms and look over the store.

        Args:
            data: The store directory.
            labels: What its Raft groups replicate, as far as it was read before; more is added. None: the Raft
                log is not read, and no record has a term.
        """
        self.topic, self.partition = topic, partition
        self._problems: list[str] = []
        self._remarks: list[str] = []
        self._unread: list[tuple[int, int | None]] = []
        self._terms = Terms()
        self._survey = Survey()
        self._before: Seen = {}
        self._folder: Folder | None = None
        self._store: Store | None = None
        # The end of what was read, and damage behind it whose own end is not known.
        self._end = self._survey.start
        self._pending: _Torn | None = None
        name = shown(f"{topic}-{partition}")
        try:
            place = places(data).get((topic, partition))
            if place is None:
                self._problems.append(f"{name}: no folder of a stream of this name; expected one")
                return
            name = f"{place.path}/{MESSAGES}"
            self._folder = data.folder(name)
            self._before = seen_blocks(self._folder)
            blocks = blocks_in(self._folder)
        except OSError as error:
            self._problems.append(f"{shown(name)}: {reason(error)}")
            return
        self._store = Store(name=place.stream, path=name, folder=self._folder, blocks=blocks)
        if labels is not None:
            self._read_terms(data, place, labels)
        self._survey = survey(self._store, self._terms)
        self._end = self._survey.start
        if self._survey.is_full:
            self._problems.append(
                f"{shown(name)}: more than {TOMBSTONES_MAX} tombstones, the limit of this reader"
            )

    def close(self) -> None:
        """Close the store's folder."""
        if self._folder is not None:
            self._folder.close()

    def batches(self, value_characters_max: int | None) -> Iterator[BatchSeen]:
        """Yield each record as a batch of its own, in the order of the files."""
        if self._store is None:
            self._unread.append((0, None))
            return
        newest = max(self._store.blocks, default=0)
        for number, found in self._store.records():
            if len(self._problems) >= limits.LOG_FINDINGS_MAX:
                self._problems.append(f"{shown(self._store.path)}: {_UNREADABLE}")
                self._unread.append((self._end, None))
                return
            if isinstance(found, Damage):
                if not (found.torn and number == newest):
                    self._problems.append(f"{self._store.file(number)}, {found.text}")
                    self._damaged(found)
                continue
            batch = self._seen(found, self._store.blocks[number], value_characters_max)
            self._arrived(found.sequence)
            if batch is not None:
                yield batch
        self._finish()

    def log(self) -> ReplicaLog:
        """Return the log without its records; its epochs are those terms of the Raft log that its records have."""
        return ReplicaLog(
            topic=self.topic,
            partition=self.partition,
            log_start_offset=self._survey.start,
            log_end_offset=max(self._end, self._survey.start),
            batches=(),
            epochs=tuple(self._survey.epochs) or None,
            high_watermark=None,
            problems=tuple(self._problems),
            unread=tuple(self._unread),
            cleaned_to=self._survey.deleted_to,
            remarks=tuple(self._remarks),
        )

    def unsettled(self) -> str:
        """Return why what was read may mix two states of the log."""
        if self._folder is None:
            return ""
        try:
            after = seen_blocks(self._folder)
        except OSError:
            after = self._before
        vanished = not set(self._before) <= set(after)
        if not (is_disturbed(self._before, after) or (vanished and self._problems)):
            return ""
        return f"its files kept changing for {SETTLE_S_MAX:g} s while they were read"

    def _read_terms(self, data: Folder, place: Place, labels: Labels) -> None:
        """Read what the stream's Raft log has of it; without one, no record has a term."""
        try:
            groups = groups_of(data, place, labels)
        except OSError as error:
            self._problems.append(f"Raft groups: {reason(error)}")
            return
        problems: list[str] = []
        for _ in range(_TERMS_READS_MAX):
            before = seen_logs(data, groups)
            self._terms, problems = Terms(), []
            for found in logged(data, groups):
                if not isinstance(found, str):
                    self._terms.add(found)
                    continue
                problems.append(found)
                if len(problems) >= limits.LOG_FINDINGS_MAX // 2:
                    problems.append(f"{shown(groups[0])}: {_UNREADABLE}")
                    break
            if not problems or before == seen_logs(data, groups):
                break
        self._problems += problems
        if self._terms.is_full:
            self._remarks.append(f"the Raft log has more than {TERMS_MAX} records; later ones have no term here")

    def _seen(self, found: Stored, segment: str, value_characters_max: int | None) -> BatchSeen | None:
        """Return what is seen of a record; None if it is deleted, or is none."""
        if not found.is_live or self._survey.is_deleted(found.sequence):
            return None
        term = self._terms.of(found.sequence, found.timestamp_ns, found.header, found.body)
        record, problem = record_of(found.sequence, found.header, found.body, term), ""
        if found.sequence < self._end:
            problem = f"sequence is {found.sequence}; expected {self._end} or later, the end of what is before it"
        return BatchSeen(
            base=found.sequence,
            last=found.sequence,
            epoch=term,
            magic=WITH_EPOCHS if term >= 0 else WITH_EPOCHS - 1,
            crc=0,  # its checksum is of the block's number too: each replica has another
            codec="none",
            position=found.position,
            segment=f"{MESSAGES}/{segment}",  # an offset in its place would be taken for where it begins
            records=((record.offset, record.digest, record.beginning(value_characters_max)),),
            about=() if value_characters_max is None else (record.about(value_characters_max),),
            problem=problem,
            single=True,
        )

    def _damaged(self, damage: Damage) -> None:
        """Keep that something is missing here."""
        claimed = damage.claimed
        if self._pending is not None:
            before = self._pending.claimed
            joined = before is not None and claimed is not None and before[1] == claimed[0]
            claimed = (before[0], claimed[1]) if joined and before and claimed else None
        self._pending = _Torn(claimed=claimed)

    def _arrived(self, sequence: int) -> None:
        """Move the end to a sound record's, and close what is missing before it."""
        if self._pending is not None and sequence > self._end:
            self._unread.append((self._end, sequence))
        self._pending = None
        self._end = max(self._end, sequence + 1)

    def _finish(self) -> None:
        """Close what is missing at the end of the log."""
        if self._pending is None:
            return
        claimed = self._pending.claimed
        if claimed is not None and claimed[0] == self._end:
            self._unread.append(claimed)
            self._end = claimed[1]
        else:
            self._unread.append((self._end, None))


def record_of(sequence: int, header: bytes, body: bytes, term: int) -> Record:
    """Return a record with its headers; a header block that is none is one header, whole."""
    try:
        headers = header_lines(header)
    except Malformed:
        headers = ((b"malformed header", header),)
    return Record(offset=sequence, value=body, headers=headers, epoch=term)
