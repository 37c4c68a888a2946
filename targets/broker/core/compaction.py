"""
Compaction: of the records of one key the newest stays, in the files of a log that are closed and committed.

Each replica cleans on its own, leader or follower, as in Kafka: logs then differ in their gaps, in nothing else.
The files are cleaned a part at a time, so that others are served meanwhile.
Source:  Kafka, LogCleaner, LogCleanerManager.cleanableOffsets; KAFKA-13194. Kafka begins when a share of a log is
         not clean yet (min.cleanable.dirty.ratio), and waits for a record's age (min.compaction.lag.ms); here any
         new file is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeVar

from targets.broker.core.log_port import OFFSETS_MAX
from targets.broker.core.state import Core, Role
from targets.broker.core.tombstones import TombstoneDelay

# Between two parts.
_PAUSE_MS: Final = 1
# Files that become one: they are replaced in one go, which takes long on a disk.
GROUP_FILES_MAX: Final = 100


class Sized(Protocol):
    """A file of a log."""

    @property
    def base_offset(self) -> int:
        """Return its first offset."""

    @property
    def next_offset(self) -> int:
        """Return the offset after its last one."""

    @property
    def size(self) -> int:
        """Return its bytes."""


F = TypeVar("F", bound=Sized)


def begin(core: Core) -> None:
    """Have the logs looked at now and then, if any is compacted."""
    if any(config.compact for config in core.configs()):
        core.after_ms(("compaction",), core.config.compaction_check_ms)


def apply(core: Core) -> None:
    """Clean the logs of replicas that have a role, one after the other; go on soon, or look again later."""
    left = core.config.compaction_bytes_max
    for tp, replica in sorted(core.state.replicas.items()):
        of_topic = core.config_of(tp.topic)
        passed = core.state.cleaning is not None and tp < core.state.cleaning
        if replica.role is Role.NONE or passed or not of_topic.compact:
            continue
        past = core.rules.clean_past_high_watermark
        end = replica.log.end_offset if past else replica.high_watermark
        delay = TombstoneDelay(of_topic.delete_retention_ms, core.wall_ms, core.rules.tombstone_horizon)
        done = replica.log.clean(end, delay, left)
        left -= done.read
        if done.upto >= 0:
            core.observe_replica("cleaned", replica, upto=done.upto, size=done.size)
        if done.more or left <= 0:
            core.state.cleaning = tp
            core.after_ms(("compaction",), _PAUSE_MS)
            return
    core.state.cleaning = None
    begin(core)


def groups(segments: Iterable[F], bytes_max: int) -> Iterator[list[F]]:
    """Yield neighbours that fit into one file, by their present sizes and their offsets; not too many together."""
    group: list[F] = []
    size = 0
    for segment in segments:
        far = group and segment.next_offset - group[0].base_offset > OFFSETS_MAX
        full = size + segment.size > bytes_max or len(group) >= GROUP_FILES_MAX
        if group and (far or full):
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    if group:
        yield group
