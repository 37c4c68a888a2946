"""
Where the bytes of a segment come from: bytes in memory, or an open file that is read piece by piece.

A file may be larger than memory, sparse, or shorter by the time it is read. So it is read through a window of some
MB, its length is that of the moment it was opened, and zeros are skipped where the filesystem has stored none.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from harness import limits
from harness.beneath import Folder


class Source(Protocol):
    """The bytes of a segment, by position."""

    size: int

    def at(self, position: int, count: int) -> bytes:
        """Return the bytes from the position on: `count`, or fewer if there are no more."""

    def zeros_from(self, position: int) -> bool:
        """Return True if only zeros, at least one, follow from the position to the end."""


class BytesSource:
    """Bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def at(self, position: int, count: int) -> bytes:
        """Return the bytes from the position on: `count`, or fewer if there are no more."""
        return self._data[position : position + count]

    def zeros_from(self, position: int) -> bool:
        """Return True if only zeros, at least one, follow from the position to the end."""
        left = self.size - position
        return left > 0 and self._data.count(0, position) == left


class FileSource:
    """
    An open file, which the caller closes.

    Raises:
        OSError: From every call, if the file cannot be read.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.size = os.fstat(handle).st_size
        self._window = b""
        self._begin = 0

    def at(self, position: int, count: int) -> bytes:
        """Return the bytes from the position on: `count`, or fewer if there are no more."""
        count = max(0, min(count, self.size - position))
        begin = position - self._begin
        if begin < 0 or begin + count > len(self._window):
            # Drop the old window first, so that two never take memory at once.
            self._window, self._begin, begin = b"", position, 0
            self._window = self._read(position, min(max(count, limits.LOG_READ_BYTES), self.size - position))
        return self._window[begin : begin + count]

    def zeros_from(self, position: int) -> bool:
        """Return True if only zeros, at least one, follow; of stored zeros, LOG_ZEROS_BYTES_MAX are read."""
        if position >= self.size:
            return False
        read_bytes = 0
        while position < self.size and read_bytes < limits.LOG_ZEROS_BYTES_MAX:
            try:
                position = os.lseek(self._handle, position, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return True  # nothing but a hole follows
                if error.errno != errno.EINVAL:
                    raise
            data = os.pread(self._handle, min(limits.LOG_READ_BYTES, max(0, self.size - position)), position)
            if data.count(0) != len(data):
                return False
            if not data:
                return True
            position += len(data)
            read_bytes += len(data)
        return position >= self.size

    def _read(self, position: int, count: int) -> bytes:
        """Read up to count bytes; a kernel may return fewer than asked at once."""
        pieces: list[bytes] = []
        while count > 0 and (piece := os.pread(self._handle, count, position)):
            pieces.append(piece)
            position += len(piece)
            count -= len(piece)
        return b"".join(pieces)


@contextmanager
def opened(folder: Folder, name: str) -> Iterator[FileSource]:
    """
    Open a file for a time.

    Raises:
        OSError: It is missing or no regular file, or cannot be read.
    """
    handle = folder.open(name)
    try:
        yield FileSource(handle)
    finally:
        os.close(handle)
