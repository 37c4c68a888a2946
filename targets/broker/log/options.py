"""The settings of a log on files, and what it calls before and after it changes them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from targets.broker.core.messages import TopicPartition
from targets.broker.limits import Limits
from targets.broker.log.deletion import Deletions
from targets.broker.log.discards import Later, at_once
from targets.broker.log.open_files import OpenFiles
from targets.broker.log.together import Together

SEGMENT_BYTES_DEFAULT: Final = 64 * 1024 * 1024
# So many files one append begins; each waits until the one before it is durable.
APPEND_FILES_MAX: Final = 16


def _ignore_durable(_path: str, _length: int) -> None:
    """Do nothing."""


def _ignore_cut(_tp: TopicPartition, _offset: int) -> None:
    """Do nothing: no recovery point is on disk."""


def _ignore_start(_tp: TopicPartition, _offset: int) -> None:
    """Do nothing: no file keeps the log's start."""


def _ignore_cleaning(_tp: TopicPartition, _offset: int) -> None:
    """Do nothing: no file keeps how far the log is clean."""


def _ignore_deletion(_tp: TopicPartition) -> None:
    """Do nothing: no file has an entry of the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """
    A log's settings and callbacks.

    Attributes:
        segment_ms: how much later than its first batch the last one of a file may be, by their timestamps; 0: no
            matter how much.
        on_durable: called with (path, length) when the first `length` bytes of a file are durable; path is
            relative to the data directory. A smaller length than before means that the file was truncated.
        before_cut: called with (tp, offset) before records at or past `offset` are removed.
        before_start: called with (tp, offset) before the log's start moves up to `offset`; makes that durable.
        after_cleaning: called with (tp, offset) when the log is clean up to `offset`, not further; makes that
            durable.
        after_deletion: called with tp when the log's directory has another name.
        producers_max: of so many idempotent producers recovery finds the last batches.
        files: those that are open, of all logs of a data directory.
        together: what waits to be made durable, of all logs of a data directory.
        deletions: the directories of those that were deleted.
        later: does what no caller waits for, step by step.
    """

    segment_bytes: int = SEGMENT_BYTES_DEFAULT
    segment_ms: int = 0
    on_durable: Callable[[str, int], None] = _ignore_durable
    before_cut: Callable[[TopicPartition, int], None] = _ignore_cut
    before_start: Callable[[TopicPartition, int], None] = _ignore_start
    after_cleaning: Callable[[TopicPartition, int], None] = _ignore_cleaning
    after_deletion: Callable[[TopicPartition], None] = _ignore_deletion
    producers_max: int = Limits().producers_max
    files: OpenFiles = field(default_factory=OpenFiles)
    together: Together = field(default_factory=Together)
    later: Later = at_once
    deletions: Deletions = field(default_factory=lambda: Deletions(Together()))

    def without_limits(self) -> LogOptions:
        """Return the same for a file that takes all that is appended."""
        return replace(self, segment_bytes=sys.maxsize, segment_ms=0)
