"""
Retention: whole files at the start of a log are deleted, when all their records are old or the log is too large.

Each replica does so on its own, leader or follower, by its own clock and its own files, as in Kafka. A file stays
while it holds what is not committed.
Source:  Kafka, LogManager.cleanupLogs, UnifiedLog.deleteOldSegments; KAFKA-5634. Kafka counts a file's own
         timestamps; here the greatest of all before it count too, which differs where time went back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from targets.broker.core import deletions
from targets.broker.core.log_port import File
from targets.broker.core.log_start import StartReason, advance_start
from targets.broker.core.state import Core, Replica, Role

# In place of a time: no batch has one, or nobody knows what time it is.
_UNKNOWN: Final = -1


def begin(core: Core) -> None:
    """Have the logs looked at now and then, if anything limits them."""
    if core.config.retention_ms or core.config.retention_bytes:
        core.after_ms(("retention",), core.config.retention_check_ms)


def apply(core: Core) -> None:
    """Delete what is too old or too much, of every replica that has a role; look again after a while."""
    begin(core)
    for replica in core.state.replicas.values():
        if replica.role is not Role.NONE:
            if core.config.retention_ms and core.wall_ms != _UNKNOWN:
                _delete(core, replica, _old(core, replica.log.files()), StartReason.RETENTION_TIME)
            if core.config.retention_bytes:
                _delete(core, replica, _too_much(core, replica.log.files()), StartReason.RETENTION_SIZE)


def _old(core: Core, files: Sequence[File]) -> int:
    """Return how many files, from the oldest on, are too old; one without a time never is."""
    latest_kept = core.wall_ms - core.config.retention_ms
    count = 0
    while count < len(files) and files[count].size and 0 <= files[count].latest < latest_kept:
        count += 1
    return count


def _too_much(core: Core, files: Sequence[File]) -> int:
    """Return how many files, from the oldest on, a log has beyond the size that it keeps."""
    over = sum(file.size for file in files) - core.config.retention_bytes
    count = 0
    while count < len(files) and files[count].size and files[count].size <= over:
        over -= files[count].size
        count += 1
    return count


def _delete(core: Core, replica: Replica, count: int, reason: StartReason) -> None:
    """Delete so many files, up to the first that is not committed; the newest only after another was begun."""
    files = replica.log.files()[:count]
    if not core.rules.delete_past_high_watermark:
        files = tuple(file for file in files if file.end <= replica.high_watermark)
    if files:
        if files[-1].end == replica.log.end_offset:
            replica.log.roll()
        advance_start(core, replica, files[-1].end, reason)
        deletions.complete(core, replica.tp)
