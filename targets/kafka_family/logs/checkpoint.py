"""
Read Kafka's checkpoint files: a version, a count, one entry a line.

    leader-epoch-checkpoint         in a partition's directory     epoch startOffset
    replication-offset-checkpoint   in a data directory            topic partition offset (high watermark)
    log-start-offset-checkpoint     in a data directory            topic partition offset
    cleaner-offset-checkpoint       in a data directory            topic partition offset (compacted up to)

From 2.8 on, a partition's directory also has partition.metadata: `version: 0`, then `topic_id: ID`.
A file that is longer than any that Kafka writes is refused before it is taken into memory.

Source:  Apache Kafka, server-common/.../CheckpointFile.java, storage/.../PartitionMetadataFile.java.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from harness import limits
from harness.beneath import Folder
from harness.logs.names import shown
from targets.kafka_family.logs.source import FileSource

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANED: Final = "cleaner-offset-checkpoint"
TOPIC_ID: Final = "partition.metadata"

# An offset and a count; an epoch and a partition. Kafka writes none of them below 0.
_LONG: Final = range(2**63)
_INT: Final = range(2**31)
_DIGITS_MAX: Final = 20


class CheckpointError(ValueError):
    """A checkpoint file does not have Kafka's format; the text names the file and the line."""


def read_epochs(folder: Folder) -> tuple[tuple[int, int], ...] | None:
    """
    Return a leader-epoch-checkpoint's (epoch, start offset) entries in file order; None if there is no file.

    Raises:
        CheckpointError: The file does not have Kafka's format.
        OSError: The file cannot be read.
    """
    lines = _entries(folder, LEADER_EPOCHS, fields=2, entries_max=limits.EPOCHS_MAX)
    if lines is None:
        return None
    return tuple((_number(LEADER_EPOCHS, epoch, _INT), _number(LEADER_EPOCHS, start)) for epoch, start in lines)


def read_offsets(folder: Folder, name: str) -> Mapping[tuple[str, int], int]:
    """
    Return the offsets that a data directory's checkpoint has, by (topic, partition); none without a file.

    Raises:
        CheckpointError: The file does not have Kafka's format.
        OSError: The file cannot be read.
    """
    found: dict[tuple[str, int], int] = {}
    for topic, number, offset in _entries(folder, name, fields=3, entries_max=limits.CHECKPOINT_ENTRIES_MAX) or ():
        found.setdefault((topic, _number(name, number, _INT)), _number(name, offset))
    return found


def read_topic_id(folder: Folder) -> str | None:
    """
    Return the cluster's id of the topic; None if there is no file.

    Raises:
        CheckpointError: The file does not have Kafka's format.
        OSError: The file cannot be read.
    """
    lines = _lines(folder, TOPIC_ID, lines_max=limits.EPOCHS_MAX)
    if lines is None:
        return None
    found = dict(line.partition(": ")[::2] for line in lines)
    if found.get("version") != "0" or not found.get("topic_id"):
        text = f"'{shown(' '.join(lines[:2]))}'; expected `version: 0` and a line `topic_id: ID`"
        raise CheckpointError(f"{TOPIC_ID}: {text}")
    return found["topic_id"]


def _lines(folder: Folder, name: str, *, lines_max: int) -> list[str] | None:
    """Return the lines of a file; None if there is no file."""
    try:
        handle = folder.open(name)
    except FileNotFoundError:
        return None
    try:
        data = FileSource(handle).at(0, limits.CHECKPOINT_BYTES_MAX + 1)
    finally:
        os.close(handle)
    if len(data) > limits.CHECKPOINT_BYTES_MAX:
        raise CheckpointError(f"{name}: more than {limits.CHECKPOINT_BYTES_MAX} bytes, the limit of this reader")
    if data.count(b"\n") > lines_max:
        raise CheckpointError(f"{name}: more than {lines_max} lines, the limit of this reader")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{name}: {error}; expected a checkpoint's text") from error
    return text.split("\n") if text else []


def _entries(folder: Folder, name: str, *, fields: int, entries_max: int) -> list[list[str]] | None:
    lines = _lines(folder, name, lines_max=entries_max + 2)
    if not lines:
        return None if lines is None else []
    if lines[0].strip() != "0":
        raise CheckpointError(f"{name}, line 1: version is '{shown(lines[0])}'; expected '0'")
    if len(lines) < 3 and not lines[-1]:
        return []  # as Kafka: a file that ends before its count has no entries
    if rest := lines.pop():
        # Cut in its last number, 14 would be read as 1.
        raise CheckpointError(f"{name}: '{shown(rest)}' at its end; expected an end of the line")
    count = _number(name, lines[1])
    entries = [line.split() for line in lines[2:]]
    for index, entry in enumerate(entries):
        if len(entry) != fields:
            raise CheckpointError(f"{name}, entry {index}: '{shown(' '.join(entry))}'; expected {fields} fields")
    if len(entries) != count:
        raise CheckpointError(f"{name}: {len(entries)} entries; its line 2 says {count}")
    return entries


def _number(name: str, text: str, numbers: range = _LONG) -> int:
    """Return a number that Kafka writes; Python does not print one of any length."""
    if len(text) > _DIGITS_MAX or not (text.isascii() and text.removeprefix("-").isdecimal()):
        raise CheckpointError(f"{name}: '{shown(text)}'; expected a whole number")
    number = int(text)
    if number not in numbers:
        raise CheckpointError(f"{name}: '{shown(text)}'; expected a number from 0 to {numbers[-1]}")
    return number
