"""
Kafka's checkpoint files: version, count, entries; always replaced whole.

A write goes to `<name>.tmp`, then fsync, atomic rename, fsync of the directory. Without `flush` both fsyncs are
left out, so that a power loss may restore the older file.
Source:  Kafka, CheckpointFile; KAFKA-16541 (a file renamed before it was flushed can be damaged by a crash).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from targets.broker.core.messages import TopicPartition

EPOCHS_FILE: Final = "leader-epoch-checkpoint"
HIGH_WATERMARKS_FILE: Final = "replication-offset-checkpoint"
RECOVERY_POINTS_FILE: Final = "recovery-point-offset-checkpoint"
LOG_STARTS_FILE: Final = "log-start-offset-checkpoint"
CLEAN_MARKER: Final = ".kafka_cleanshutdown"
TEMPORARY_SUFFIX: Final = ".tmp"

_VERSION: Final = "0"


class CheckpointError(Exception):
    """A checkpoint file is damaged; names the file, the line and what was expected."""


def read_epochs(path: Path) -> tuple[tuple[int, int], ...]:
    """
    Read (epoch, start offset) entries in file order; () when the file is missing or empty.

    Raises:
        CheckpointError: the content is damaged.
        OSError: from the disk.
    """
    return tuple((int(epoch), int(start)) for epoch, start in _read(path, numbers=(0, 1), width=2))


def write_epochs(path: Path, entries: Sequence[tuple[int, int]], *, flush: bool) -> int:
    """Replace the epoch file; return its length in bytes."""
    return _write(path, (f"{epoch} {start}" for epoch, start in entries), flush=flush)


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """
    Read topic, partition and offset entries; {} when the file is missing or empty.

    Raises:
        CheckpointError: the content is damaged.
        OSError: from the disk.
    """
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partition, offset in _read(path, numbers=(1, 2), width=3)
    }


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int], *, flush: bool = True) -> int:
    """Replace an offset file, entries sorted; return its length in bytes."""
    lines = (f"{tp.topic} {tp.partition} {offset}" for tp, offset in sorted(offsets.items()))
    return _write(path, lines, flush=flush)


def sync_file(path: Path) -> int:
    """Make an existing file durable; return its length in bytes."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        return os.fstat(fd).st_size
    finally:
        os.close(fd)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _read(path: Path, *, numbers: tuple[int, ...], width: int) -> list[list[str]]:
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return []
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
    if not _is_number(lines[1].strip()):
        raise CheckpointError(f"{path.name} line 2: count {lines[1][:40]!r}; expected a number")
    entries = [line.split() for line in lines[2:]]
    for number, entry in enumerate(entries, start=3):
        if len(entry) != width or not all(_is_number(entry[at]) for at in numbers):
            line = lines[number - 1][:80]
            raise CheckpointError(f"{path.name} line {number}: {line!r}; expected {width} fields")
    if len(entries) != int(lines[1]):
        raise CheckpointError(f"{path.name}: {len(entries)} entries; expected {int(lines[1])} as line 2 says")
    return entries


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdecimal()


def _write(path: Path, entries: Iterable[str], *, flush: bool) -> int:
    lines = list(entries)
    content = "".join(f"{line}\n" for line in (_VERSION, str(len(lines)), *lines)).encode("utf-8")
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        if flush:
            os.fsync(file.fileno())
    temporary.replace(path)
    if flush:
        sync_directory(path.parent)
    return len(content)
