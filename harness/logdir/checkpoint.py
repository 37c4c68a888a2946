"""
Read Kafka's checkpoint files: a version, a count, one entry a line.

    leader-epoch-checkpoint         in a partition's directory     epoch startOffset
    replication-offset-checkpoint   in a data directory            topic partition offset (high watermark)
    log-start-offset-checkpoint     in a data directory            topic partition offset
    cleaner-offset-checkpoint       in a data directory            topic partition offset (compacted up to)

From 2.8 on, a partition's directory also has partition.metadata: `version: 0`, then `topic_id: ID`.

Source:  Apache Kafka, server-common/.../CheckpointFile.java, storage/.../PartitionMetadataFile.java.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANED: Final = "cleaner-offset-checkpoint"
TOPIC_ID: Final = "partition.metadata"


class CheckpointError(ValueError):
    """A checkpoint file does not have Kafka's format; the text names the file and the line."""


def read_epochs(path: Path) -> tuple[tuple[int, int], ...] | None:
    """
    Return a leader-epoch-checkpoint's (epoch, start offset) entries in file order; None if there is no file.

    Raises:
        CheckpointError: The file does not have Kafka's format.
        OSError: The file cannot be read.
    """
    lines = _entries(path, fields=2)
    if lines is None:
        return None
    return tuple((_number(path, epoch), _number(path, start)) for epoch, start in lines)


def read_offset(path: Path, topic: str, partition: int) -> int | None:
    """
    Return the offset that a data directory's checkpoint has for a partition; None if it has none.

    Raises:
        CheckpointError: The file does not have Kafka's format.
        OSError: The file cannot be read.
    """
    for name, number, offset in _entries(path, fields=3) or ():
        if name == topic and _number(path, number) == partition:
            return _number(path, offset)
    return None


def read_topic_id(path: Path) -> str | None:
    """
    Return the cluster's id of the topic; None if there is no file.

    Raises:
        CheckpointError: The file does not have Kafka's format.
        OSError: The file cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path.name}: {error}; expected text") from error
    found = dict(line.partition(": ")[::2] for line in lines)
    if not found.get("topic_id"):
        raise CheckpointError(f"{path.name}: {lines[:2]!r}; expected a line `topic_id: ID`")
    return found["topic_id"]


def _entries(path: Path, *, fields: int) -> list[list[str]] | None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path.name}: {error}; expected a checkpoint's text") from error
    if len(lines) < 2:
        return []
    if lines[0].strip() != "0":
        raise CheckpointError(f"{path.name}, line 1: version is {lines[0]!r}; expected '0'")
    count = _number(path, lines[1])
    entries = [line.split() for line in lines[2:] if line.strip()]
    for index, entry in enumerate(entries):
        if len(entry) != fields:
            raise CheckpointError(f"{path.name}, entry {index}: {' '.join(entry)!r}; expected {fields} fields")
    if len(entries) != count:
        raise CheckpointError(f"{path.name}: {len(entries)} entries; its line 2 says {count}")
    return entries


def _number(path: Path, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise CheckpointError(f"{path.name}: {text!r}; expected a whole number") from error
