"""
Deletion of a partition's directory: first its name, durably, then its files.

Source:  Kafka, LogManager.asyncDelete; UnifiedLog.logDeleteDirName: a topic's name is cut where the directory's
         would be too long.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Final

from targets.broker.core.messages import TopicPartition
from targets.broker.log import checkpoint

# Kafka's name for a partition's directory during deletion: `topic-0.<32 hex digits>-delete`.
DELETED_SUFFIX: Final = "-delete"
# The longest name of a file or directory that Linux allows.
NAME_BYTES_MAX: Final = 255


def delete_directory(directory: Path, tp: TopicPartition) -> None:
    """Rename a partition's directory, durably, and delete it with its files."""
    suffix = f"-{tp.partition}.{uuid.uuid4().hex}{DELETED_SUFFIX}"
    doomed = directory.with_name(tp.topic[: NAME_BYTES_MAX - len(suffix)] + suffix)
    directory.rename(doomed)
    checkpoint.sync_directory(doomed.parent)
    shutil.rmtree(doomed)
