"""
Choose one byte of a partition's files to flip, as bit rot would; harness/logs/flips.py says how.

In a log it is a byte of the last record of a batch, whose checksum covers it; of checkpoints, that of epochs.
"""

from __future__ import annotations

from typing import Final

from harness.beneath import Folder
from harness.bit_rot import Flip, Where
from harness.logs.flips import flip_of_batch, flip_of_count
from harness.logs.segments import Pieces
from targets.kafka_family.logs.batch import Header
from targets.kafka_family.logs.checkpoint import LEADER_EPOCHS
from targets.kafka_family.logs.files import list_log
from targets.kafka_family.logs.message_set import headers

# Behind the last byte of a last record's value is one byte: it has no headers.
_FROM_END: Final = 2


def chosen(folder: Folder, where: Where) -> Flip | None:
    """
    Choose a byte of a partition's files; return None if there is no such file, or no sound batch in one.

    Args:
        folder: The partition's directory.

    Raises:
        OSError: A file cannot be read.
    """
    if where is Where.CHECKPOINT:
        return flip_of_count(folder, LEADER_EPOCHS, below=folder.path.name)
    name, segments = folder.path.name, list_log(folder).segments
    return flip_of_batch(Pieces(name=name, folder=folder, segments=segments, walk=headers), where, _byte_of)


def _byte_of(header: Header) -> int:
    """Return where a byte of the last record's value is."""
    return header.position + header.size - _FROM_END
