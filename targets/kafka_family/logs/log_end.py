"""
Finds where a log ends from its newest segment alone, for conditions that are looked at many times a second.

Records are not read. What the newest segment does not show for certain, only a whole scan can say (scan.py).
"""

from __future__ import annotations

import os

from harness.beneath import Folder
from targets.kafka_family.logs.batch import Stop, header_at, headers
from targets.kafka_family.logs.files import list_log
from targets.kafka_family.logs.source import FileSource


def quick_end(folder: Folder) -> int | None:
    """
    Return the log end offset of a partition's directory; None if its newest segment does not show it.

    A batch that is being written does not count yet. Damage, older message formats and unfinished cleanings are
    for a whole scan.

    Raises:
        OSError: The directory or the segment cannot be read.
    """
    listing = list_log(folder)
    if not listing.segments or listing.swaps or listing.cleaned_from is not None:
        return None
    end, name = max(listing.segments.items())
    handle = folder.open(name, os.O_RDONLY)
    try:
        for found in headers(FileSource(handle), header_at, end):
            if not isinstance(found, Stop):
                end = max(end, found.last_offset + 1)
            elif not found.short:
                return None
    finally:
        os.close(handle)
    return end
