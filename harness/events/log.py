"""The final contents of a replica's files: one snapshot, then its batches in the order of the files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from harness.events.base import OfPartition, OpType, key

# The first message format that stores a leader epoch.
WITH_EPOCHS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(OfPartition):
    """A replica's log; its batches are the next ops."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.OK,)

    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None = field(metadata=key("from its checkpoint"))
    epochs: tuple[tuple[int, int], ...] | None = field(metadata=key("from its checkpoint: epoch and start offset"))
    problems: tuple[str, ...] = field(metadata=key("what could not be read"))
    batches: int = field(metadata=key("how many batches follow"))
    unread: tuple[tuple[int, int], ...] | None = field(
        default=None, metadata=key("the [first, end) offsets that could not be read, if any")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFailed(OfPartition):
    """A replica's log could not be read."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.FAIL,)

    problems: tuple[str, ...]
    absent: bool = field(
        default=False, metadata=key("true if the node's files were looked at, and none is of the log")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(OfPartition):
    """One batch of the log in the snapshot before it."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.OK,)

    base: int
    last: int = field(metadata=key("inclusive"))
    epoch: int = field(metadata=key("-1 for none"))
    magic: int
    crc: int
    codec: str
    position: int = field(metadata=key("in the segment, in bytes"))
    segment: str
    records: tuple[tuple[int, str, str | None], ...] = field(metadata=key("offset, digest and value"))
    problem: str = field(default="", metadata=key("if there is one"))
    control: bool | None = field(
        default=None, metadata=key("true for a control batch, whose value is `commit marker` or `abort marker`")
    )

    store: str = field(
        default="",
        metadata=key("the store of the replica that holds it, if it has more than the log that it serves"),
    )

    @property
    def segment_start(self) -> int | None:
        """The first offset of its segment, which is its file's name; None for another name."""
        name = self.segment.partition(".")[0]
        return int(name) if name.isdecimal() else None
