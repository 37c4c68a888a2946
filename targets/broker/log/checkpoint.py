"""
Kafka's checkpoint files: version, count, entries; and partition.metadata. They are always replaced whole.

A write goes to `<name>.tmp`, then fsync, atomic rename, fsync of the directory. Without `flush` both fsyncs are
left out, so that a power loss may restore the older file.
Who else writes them may write anything: a file that is longer than any of ours is refused before it is read, and a
number that Kafka cannot have makes it unreadable (docs/limits.md).
Source:  Kafka, CheckpointFile, PartitionMetadataFile; KAFKA-16541 (a file renamed before it was flushed can be
         damaged by a crash).
"""

from __future__ import annotations

import binascii
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from targets.broker.core.messages import NO_TOPIC_ID, TopicPartition
from targets.broker.log.beneath import Folder, RefusedError, open_file, unlink

EPOCHS_FILE: Final = "leader-epoch-checkpoint"
HIGH_WATERMARKS_FILE: Final = "replication-offset-checkpoint"
RECOVERY_POINTS_FILE: Final = "recovery-point-offset-checkpoint"
LOG_STARTS_FILE: Final = "log-start-offset-checkpoint"
CLEANED_FILE: Final = "cleaner-offset-checkpoint"
TOPIC_ID_FILE: Final = "partition.metadata"
CLEAN_MARKER: Final = ".kafka_cleanshutdown"
TEMPORARY_SUFFIX: Final = ".tmp"

# What is read of a file: far above what any of ours has, with a line for each partition or for each epoch.
BYTES_MAX: Final = 64 * 1024 * 1024
ENTRIES_MAX: Final = 1_000_000
EPOCHS_MAX: Final = 100_000
TOPIC_ID_BYTES_MAX: Final = 4 * 1024
# Kafka's numbers: an offset, which some of its files have as -1; an epoch and a partition.
OFFSETS: Final = range(-(2**63), 2**63)
KNOWN_OFFSETS: Final = range(2**63)
INTS: Final = range(2**31)

_VERSION: Final = "0"
# Kafka's ids have 128 bits, the last 64 of which are a topic's here: the czxid of its node.
_UUID_BYTES: Final = 16
_TOPIC_ID_MAX: Final = 2**63 - 1
_DIGITS_MAX: Final = 20


class CheckpointError(Exception):
    """A checkpoint file is damaged; names the file, the line and what was expected."""


def read_epochs(path: Path) -> tuple[tuple[int, int], ...]:
    """
    Read (epoch, start offset) entries in file order; () when the file is missing or empty.

    No release writes entries whose epochs do not rise, or whose offsets fall. Such a file is damaged, though each
    of its lines can be read; who believed it would be cut where no epoch begins.

    Raises:
        CheckpointError: the content is damaged.
        RefusedError: it is no regular file, or longer than any of ours.
        OSError: from the disk.
    Source:  Kafka, LeaderEpochFileCache.assign: monotonic epochs and offsets, none of them negative.
    """
    found = _read(path, numbers={0: INTS, 1: KNOWN_OFFSETS}, width=2, entries_max=EPOCHS_MAX)
    entries = tuple((int(epoch), int(start)) for epoch, start in found)
    before = (-1, 0)
    for number, entry in enumerate(entries, start=3):
        if entry[0] <= before[0] or entry[1] < before[1]:
            raise CheckpointError(
                f"{path.name} line {number}: epoch {entry[0]} at offset {entry[1]}; "
                f"expected an epoch above {before[0]}, at offset {before[1]} or later"
            )
        before = entry
    return entries


def write_epochs(path: Path, entries: Sequence[tuple[int, int]], *, flush: bool) -> int:
    """Replace the epoch file; return its length in bytes."""
    return _write(path, (f"{epoch} {start}" for epoch, start in entries), flush=flush)


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """
    Read topic, partition and offset entries; {} when the file is missing or empty.

    Raises:
        CheckpointError: the content is damaged.
        RefusedError: it is no regular file, or longer than any of ours.
        OSError: from the disk.
    """
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partition, offset in _read(
            path, numbers={1: INTS, 2: OFFSETS}, width=3, entries_max=ENTRIES_MAX
        )
    }


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int], *, flush: bool = True) -> int:
    """Replace an offset file, entries sorted; return its length in bytes."""
    lines = (f"{tp.topic} {tp.partition} {offset}" for tp, offset in sorted(offsets.items()))
    return _write(path, lines, flush=flush)


def read_topic_id(path: Path) -> int:
    """
    Read the id of the topic that a log belongs to; NO_TOPIC_ID when the file is missing, or the id is not ours.

    Raises:
        CheckpointError: the content is damaged.
        RefusedError: it is no regular file, or longer than any of ours.
        OSError: from the disk.
    """
    try:
        with Folder(path.parent) as folder:
            text = folder.read(path.name, TOPIC_ID_BYTES_MAX).decode("utf-8")
    except FileNotFoundError:
        return NO_TOPIC_ID
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path.name}: {error}; expected text") from error
    fields = [line.partition(": ") for line in text.splitlines()]
    if [name for name, _, _ in fields] != ["version", "topic_id"] or fields[0][2] != _VERSION:
        raise CheckpointError(f"{path.name}: {text[:80]!r}; expected version: {_VERSION} and a topic_id")
    try:
        raw = urlsafe_b64decode(f"{fields[1][2]}==")
    except (binascii.Error, ValueError) as error:
        raise CheckpointError(f"{path.name}: topic_id {fields[1][2][:40]!r}: {error}; expected base64") from error
    topic_id = int.from_bytes(raw, "big")
    return topic_id if len(raw) == _UUID_BYTES and topic_id <= _TOPIC_ID_MAX else NO_TOPIC_ID


def write_topic_id(path: Path, topic_id: int) -> int:
    """
    Write the id of the topic that a log belongs to, durably; NO_TOPIC_ID: remove the file.

    Returns:
        The file's length in bytes.
    """
    if topic_id == NO_TOPIC_ID:
        unlink(path, missing_ok=True)
        sync_directory(path.parent)
        return 0
    text = urlsafe_b64encode(topic_id.to_bytes(_UUID_BYTES, "big")).rstrip(b"=").decode()
    return _replace(path, [f"version: {_VERSION}", f"topic_id: {text}"], flush=True)


def sync_file(path: Path) -> int:
    """Make an existing file durable; return its length in bytes."""
    fd = open_file(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        return os.fstat(fd).st_size
    finally:
        os.close(fd)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    with Folder(path) as folder:
        folder.sync()


def _read(path: Path, *, numbers: Mapping[int, range], width: int, entries_max: int) -> list[list[str]]:
    """Return the fields of each entry; `numbers` says of some of them which numbers they may have."""
    try:
        with Folder(path.parent) as folder:
            data = folder.read(path.name, BYTES_MAX)
    except FileNotFoundError:
        return []
    lines_read = data.count(b"\n")
    if lines_read > entries_max + 2:
        raise RefusedError(path, f"{lines_read} lines; expected at most {entries_max + 2}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path.name}: {error}; expected text") from error
    lines = text.splitlines()
    if len(lines) < 2:
        # As Kafka: a file that ends before its count has no entries. A lone NUL line is damage nevertheless.
        if lines and lines[0].strip() not in ("", _VERSION):
            raise CheckpointError(f"{path.name}: version {lines[0][:40]!r}; expected {_VERSION!r}")
        return []
    if lines[0].strip() != _VERSION:
        raise CheckpointError(f"{path.name}: version {lines[0][:40]!r}; expected {_VERSION!r}")
    if not _is_number(lines[1].strip(), INTS):
        raise CheckpointError(f"{path.name} line 2: count {lines[1][:40]!r}; expected a number")
    entries = [line.split() for line in lines[2:]]
    for number, entry in enumerate(entries, start=3):
        if len(entry) != width or not all(_is_number(entry[at], of) for at, of in numbers.items()):
            line = lines[number - 1][:80]
            raise CheckpointError(
                f"{path.name} line {number}: {line!r}; expected {width} fields, numbers of Kafka's"
            )
    if len(entries) != int(lines[1]):
        raise CheckpointError(f"{path.name}: {len(entries)} entries; expected {int(lines[1])} as line 2 says")
    if not text.endswith("\n"):
        # Cut in its last number, it would be read: as 1 in place of 14. Whoever writes the file ends its lines.
        raise CheckpointError(f"{path.name} line {len(lines)}: {lines[-1][:80]!r}; expected an end of the line")
    return entries


def _is_number(text: str, of: range) -> bool:
    # Python reads no number of any length, and Kafka writes none of more than 20 characters.
    return len(text) <= _DIGITS_MAX and text.isascii() and text.removeprefix("-").isdecimal() and int(text) in of


def _write(path: Path, entries: Iterable[str], *, flush: bool) -> int:
    lines = list(entries)
    return _replace(path, [_VERSION, str(len(lines)), *lines], flush=flush)


def _replace(path: Path, lines: Sequence[str], *, flush: bool) -> int:
    content = "".join(f"{line}\n" for line in lines).encode("utf-8")
    temporary = f"{path.name}{TEMPORARY_SUFFIX}"
    with Folder(path.parent) as folder:
        # By descriptor: a failover replaces thousands of these, and a file object costs as much as its write.
        fd = folder.create(temporary)
        try:
            _write_all(fd, content)
            if flush:
                os.fsync(fd)
        finally:
            os.close(fd)
        folder.rename(temporary, path.name)
        if flush:
            folder.sync()
    return len(content)


def _write_all(fd: int, content: bytes) -> None:
    written = os.write(fd, content)
    while written < len(content):
        written += os.write(fd, content[written:])
