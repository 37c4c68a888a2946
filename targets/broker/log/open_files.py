"""
The files of all logs of a broker, of which only so many are open: the one that was used least recently is closed.

A log may have any number of segments and a broker any number of logs, but a process may open few files, and its
connections need some of them.
A file may be closed while bytes of it are not flushed. They stay in the page cache, and an fsync through another
descriptor flushes them too. It also reports a failed write-back that happened in between: since Linux 4.17 a
descriptor sees an error that came before it was opened, if nobody was told of it yet, and nobody else flushes
these files. What could be missed is a failure after which the kernel forgot the file altogether (its inode left
the cache while no descriptor held it). The way to exclude that would be a flush before each close, which would let
all clients wait for the disk once for every file beyond the limit; and the answers that need a flush get it right
after the append, when the file is open.
Source:  Linux, errseq_t and "errseq: Always report a writeback error once"; Kafka keeps all segments open.
"""

from __future__ import annotations

import errno
import os
from collections import OrderedDict
from pathlib import Path
from typing import Final, Protocol

from targets.broker.limits import Limits
from targets.broker.log.beneath import open_file

_NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE})


class File(Protocol):
    """What is opened when needed; its identity is the object's."""

    path: Path


class OpenFiles:
    """
    Descriptors of files, at most so many.

    Raises:
        RefusedError: what has the file's name is no regular file.
        OSError: from the disk.
    """

    def __init__(self, files_max: int = Limits().log_files_open_max) -> None:
        assert files_max > 0, f"{files_max} open files; expected at least one"
        self._files_max = files_max
        self._open: OrderedDict[File, int] = OrderedDict()  # from the least recently used on

    def __len__(self) -> int:
        return len(self._open)

    def create(self, file: File) -> int:
        """Return a descriptor of a file that must not exist yet."""
        return self._opened(file, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def descriptor(self, file: File) -> int:
        """Return a descriptor of an existing file, valid until the next call for another file."""
        found = self._open.get(file)
        if found is None:
            return self._opened(file, os.O_RDWR)
        self._open.move_to_end(file)
        return found

    def close(self, file: File) -> None:
        """Close a file if it is open; nothing is flushed."""
        found = self._open.pop(file, None)
        if found is not None:
            os.close(found)

    def _opened(self, file: File, flags: int) -> int:
        while len(self._open) >= self._files_max:
            self._close_oldest()
        while True:
            try:
                descriptor = open_file(file.path, flags)
            except OSError as error:
                # Something else took the process's descriptors: go on with fewer.
                if error.errno not in _NO_DESCRIPTORS or not self._open:
                    raise
                self._close_oldest()
            else:
                self._open[file] = descriptor
                return descriptor

    def _close_oldest(self) -> None:
        os.close(self._open.popitem(last=False)[1])
