"""
The files of a log by their names: which there are, and whether they changed while they were read.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from typing import TypeAlias

from harness import limits
from harness.beneath import Folder, RefusedError

# (inode, bytes) by file name.
Seen: TypeAlias = Mapping[str, tuple[int, int]]


def seen_in(folder: Folder, names: re.Pattern[str]) -> dict[str, tuple[int, int]]:
    """
    Return the files of a folder whose whole names match, without those that vanish meanwhile.

    Raises:
        OSError: The folder cannot be listed, or has more than FOLDER_NAMES_MAX such files.
    """
    found: dict[str, tuple[int, int]] = {}
    for entry in folder.entries():
        if names.fullmatch(entry.name) is None:
            continue
        if len(found) >= limits.FOLDER_NAMES_MAX:
            text = f"more than {limits.FOLDER_NAMES_MAX} segments, the limit of this reader"
            raise RefusedError(errno.EOVERFLOW, text)
        try:
            stat = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        found[entry.name] = (stat.st_ino, stat.st_size)
    return found


def is_disturbed(before: Seen, after: Seen) -> bool:
    """
    Return True if a log read between the two listings may mix two states: files vanished, were replaced or shrank.

    Files that vanish at the log's beginning do not count: that is retention.
    """
    first = min(after, default="")
    return any(
        name >= first if name not in after else after[name][0] != inode or after[name][1] < size
        for name, (inode, size) in before.items()
    )
