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
    """Have the logs looked at now and then, if anything limits one of them."""
    if any(config.retention_ms or config.retention_bytes for config in core.configs()):
        core.after_ms(("retention",), core.config.retention_check_ms)


def apply(core: Core) -> None:
    """Delete what is too old or too much, of every replica that has a role; look again after a while."""
    begin(core)
    for replica in core.state.replicas.values():
        if replica.role is not Role.NONE:
            config = core.config_of(replica.tp.topic)
            if config.retention_ms and core.wall_ms != _UNKNOWN:
                count = _old(replica.log.files(), core.wall_ms - config.retention_ms)
                _delete(core, replica, count, StartReason.RETENTION_TIME)
            if config.retention_bytes:
                count = _too_much(replica.log.files(), config.retention_bytes)
                _delete(core, replica, count, StartReason.RETENTION_SIZE)


def _old(files: Sequence[File], latest_kept: int) -> int:
    """Return how many files, from the oldest on, are too old; one without a time never is."""
    count = 0
    while count < len(files) and files[count].size and 0 <= files[count].latest < latest_kept:
        count += 1
    return count


def _too_much(files: Sequence[File], size_kept: int) -> int:
    """Return how many files, from the oldest on, a log has beyond the size that it keeps."""
    over = sum(file.size for file in files) - size_kept
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
