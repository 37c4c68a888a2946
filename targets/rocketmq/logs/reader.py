"""
The log reader of RocketMQ; see harness/target/logs.py for every call.

A broker has one log for all its topics, `commitlog/`, in files that are named after the offset of their first
byte. Records of one queue of a topic are a partition's log here, with their offsets in the queue; their epochs are
those of the file of epochs. Files have no end of their own: while a broker runs it is asked where its log ends,
and what follows is not its log. Once it is down, its log is what it would take for its own at its next start: each
record up to the first that is none. After a truncation these are records that it had cut off.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from harness.beneath import Folder, RefusedError
from harness.logs.record import Record
from harness.logs.stream import Reading, RecordsReading, Unread
from harness.target.log_client import Refused
from harness.target.logs import NodeFiles
from targets.rocketmq.asking import ASKED_S, epochs_told
from targets.rocketmq.config import CLUSTER, GROUP
from targets.rocketmq.logs.commit_log import Damage, Entry, blank_at, entries
from targets.rocketmq.logs.epochs import Starts, epoch_at, starts_in

FOLDER: Final = "commitlog"
_TOPICS: Final = "config/topics.json"
_TOPICS_BYTES_MAX: Final = 16 * 1024 * 1024
_FILE_BYTES_MAX: Final = 1024 * 1024 * 1024
_FILE: Final = re.compile(r"\d{20}")
_QUEUES_MAX: Final = 1000
# How long a broker may take to say where its log ends, on a busy machine.
_TOLD_S_MAX: Final = 5.0
# Topics that a broker makes for itself; others of its own begin with `rmq_sys_`.
_OWN: Final = frozenset(
    {
        CLUSTER,
        GROUP,
        f"{CLUSTER}_REPLY_TOPIC",
        "BenchmarkTest",
        "CHECKPOINT_TOPIC",
        "OFFSET_MOVED_EVENT",
        "SCHEDULE_TOPIC_XXXX",
        "SELF_TEST_TOPIC",
        "TBW102",
        "TRANS_CHECK_MAX_TIME_TOPIC",
    }
)
_OWN_PREFIX: Final = "rmq_sys_"


class RocketLogs:
    """Reads the stores of brokers."""

    expected = "a folder `commitlog` and a file `config/topics.json`"

    def partitions(self, node: NodeFiles) -> Iterable[tuple[str, int]]:
        """Return each queue of each topic that the broker has settings of, and of each that has records."""
        found = dict.fromkeys(_configured(node.folder))
        with suppress(OSError):  # whose reading says why
            for entry in _log(node.folder, None):
                if isinstance(entry, Entry) and 0 <= entry.queue < _QUEUES_MAX and not _is_own(entry.topic):
                    found[entry.topic, entry.queue] = None
        return list(found)

    def reading(self, node: NodeFiles, topic: str, partition: int) -> Reading:
        """Begin to read the records of a queue."""
        starts = starts_in(node.folder)
        records = _records(node, topic, partition, starts)
        return RecordsReading(topic, partition, records, file=FOLDER)

    def end(self, node: NodeFiles, topic: str, partition: int) -> int | None:
        """Return the offset after the queue's last record; None if it cannot be read, or its end is not told."""
        found = 0
        try:
            for entry in _log(node.folder, _end_of(node, ASKED_S), checked=False):
                if isinstance(entry, Entry) and (entry.topic, entry.queue) == (topic, partition):
                    found = entry.queue_offset + 1
        except OSError:
            return None
        return found

    def newest_segment(self, node: NodeFiles, topic: str, partition: int) -> Sequence[str]:
        """Return the newest file that has a record; the broker makes files ahead."""
        del topic, partition
        newest = [start for start in _files(node.folder) if _read(node.folder, start, 4).strip(b"\0")]
        return [_path(newest[-1])] if newest else []


def _records(node: NodeFiles, topic: str, partition: int, starts: Starts) -> Iterator[Record | Unread]:
    """Yield a queue's records, and what lies where they should be."""
    after = 0
    try:
        for entry in _log(node.folder, _end_of(node, _TOLD_S_MAX)):
            if isinstance(entry, Damage):
                yield Unread(why=f"{FOLDER}, byte {entry.at}: {entry.why}", first=after)
            elif (entry.topic, entry.queue) == (topic, partition):
                after = entry.queue_offset + 1
                epoch = epoch_at(starts, entry.position)
                yield Record(offset=entry.queue_offset, epoch=epoch, value=entry.value)
    except OSError as error:
        yield Unread(why=f"{FOLDER}: {error.strerror or error}", first=after)


def _end_of(node: NodeFiles, within_s: float) -> int | None:
    """
    Return the offset after the log's last byte, as a broker that runs says; None if it is down, or this is a copy.

    Raises:
        OSError: it runs, and does not say so in time: what lies behind its end must not be taken for its log.
    """
    if node.address is None:
        return None
    try:
        return epochs_told(str(node.address), within_s=within_s).end
    except Refused:
        return None


def _log(folder: Folder, end: int | None, *, checked: bool = True) -> Iterator[Entry | Damage]:
    """
    Yield what the log has, with offsets in the log.

    Args:
        end: where it ends; None: at the first record that is none, as a broker that starts takes it.
    """
    reached = None
    for start in _files(folder):
        if (end is not None and start >= end) or reached not in (None, start):
            break
        limit = _FILE_BYTES_MAX if end is None else min(end - start, _FILE_BYTES_MAX)
        data = _read(folder, start, limit)
        reached = start
        for found in entries(data, checked=checked):
            if isinstance(found, Damage):
                if end is not None:
                    yield Damage(at=start + found.at, why=found.why, size=found.size)
                if end is None or not found.size:
                    return
            elif found.position != reached:
                if end is not None:
                    yield Damage(at=reached, why=f"a record that says that it is at byte {found.position}")
                return
            else:
                yield found
            reached = start + found.at + found.size
        reached += blank_at(data, reached - start)  # the next file begins behind it
    if end is not None and (reached or 0) < end:
        yield Damage(at=reached or 0, why=f"no record; expected one, as the log ends at byte {end}")


def _files(folder: Folder) -> list[int]:
    """Return the offset at which each file begins, in order."""
    try:
        with folder.folder(FOLDER) as commit_log:
            return sorted(int(each.name) for each in commit_log.entries() if _FILE.fullmatch(each.name))
    except (FileNotFoundError, RefusedError):
        return []


def _read(folder: Folder, start: int, size: int) -> bytes:
    with os.fdopen(folder.open(_path(start)), "rb") as file:
        return file.read(size)


def _path(start: int) -> str:
    return f"{FOLDER}/{start:020d}"


def _configured(folder: Folder) -> Iterator[tuple[str, int]]:
    """Yield each queue that the file of topics has; none if it cannot be read: it is rewritten in place."""
    with suppress(OSError, ValueError, LookupError, AttributeError, TypeError, OverflowError, RecursionError):
        with os.fdopen(folder.open(_TOPICS), "rb") as file:
            table: Mapping[str, Any] = json.loads(file.read(_TOPICS_BYTES_MAX))["topicConfigTable"]
        for topic, about in table.items():
            if not _is_own(topic):
                yield from ((topic, queue) for queue in range(min(int(about["readQueueNums"]), _QUEUES_MAX)))


def _is_own(topic: str) -> bool:
    return topic in _OWN or topic.startswith("%") or topic.lower().startswith(_OWN_PREFIX)


LOGS: Final = RocketLogs()
