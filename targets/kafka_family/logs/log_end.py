"""
Finds where a log ends from its newest segment alone, for conditions that are looked at many times a second.

Records are not read. What the newest segment does not show for certain, only a whole scan can say (scan.py).
"""

from __future__ import annotations

from harness.beneath import Folder
from harness.logs.segments import Pieces, end_of_newest
from targets.kafka_family.logs.batch import headers
from targets.kafka_family.logs.files import list_log


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
    return end_of_newest(Pieces(name=folder.path.name, folder=folder, segments=listing.segments, walk=headers))
