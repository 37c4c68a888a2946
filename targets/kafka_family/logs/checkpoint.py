"""
Read Kafka's checkpoint files: a version, a count, one entry a line.

    leader-epoch-checkpoint         in a partition's directory     epoch startOffset
    replication-offset-checkpoint   in a data directory            topic partition offset (high watermark)
    log-start-offset-checkpoint     in a data directory            topic partition offset
    cleaner-offset-checkpoint       in a data directory            topic partition offset (compacted up to)

From 2.8 on, a partition's directory also has partition.metadata: `version: 0`, then `topic_id: ID`.
harness/logs/checkpoint.py reads the lines.

Source:  Apache Kafka, server-common/.../CheckpointFile.java, storage/.../PartitionMetadataFile.java.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness import limits
from harness.beneath import Folder
from harness.logs.checkpoint import INT, CheckpointError, entries_of, lines_of, number_of
from harness.logs.names import shown

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANED: Final = "cleaner-offset-checkpoint"
TOPIC_ID: Final = "partition.metadata"


def read_epochs(folder: Folder) -> tuple[tuple[int, int], ...] | None:
    """
    Return a leader-epoch-checkpoint's (epoch, start offset) entries in file order; None if there is no file.

    Raises:
        CheckpointError: The file does not have Kafka's format.
        OSError: The file cannot be read.
    """
    lines = entries_of(folder, LEADER_EPOCHS, fields=(2,), entries_max=limits.EPOCHS_MAX)
    if lines is None:
        return None
    return tuple((number_of(LEADER_EPOCHS, epoch, INT), number_of(LEADER_EPOCHS, start)) for epoch, start in lines)


def read_offsets(folder: Folder, name: str) -> Mapping[tuple[str, int], int]:
    """
    Return the offsets that a data directory's checkpoint has, by (topic, partition); none without a file.

    Raises:
        CheckpointError: The file does not have Kafka's format.
        OSError: The file cannot be read.
    """
    found: dict[tuple[str, int], int] = {}
    for topic, number, offset in (
        entries_of(folder, name, fields=(3,), entries_max=limits.CHECKPOINT_ENTRIES_MAX) or ()
    ):
        found.setdefault((topic, number_of(name, number, INT)), number_of(name, offset))
    return found


def read_topic_id(folder: Folder) -> str | None:
    """
    Return the cluster's id of the topic; None if there is no file.

    Raises:
        CheckpointError: The file does not have Kafka's format.
        OSError: The file cannot be read.
    """
    lines = lines_of(folder, TOPIC_ID, lines_max=limits.EPOCHS_MAX)
    if lines is None:
        return None
    found = dict(line.partition(": ")[::2] for line in lines)
    if found.get("version") != "0" or not found.get("topic_id"):
        text = f"'{shown(' '.join(lines[:2]))}'; expected `version: 0` and a line `topic_id: ID`"
        raise CheckpointError(f"{TOPIC_ID}: {text}")
    return found["topic_id"]
