"""
What has changed in a node's folder since the last look: the agent's half of the copy that the harness reads.

A file that grew is sent from where it ended, after its beginning was compared with what was sent, by a digest. A
file is only taken as unchanged if its size, times and inode are, and its last change is old enough that another
one since would show in its times: the kernel's clock of files stands still for some milliseconds. A file that is
written through a memory map does not show the time of each write.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from harness import limits
from harness.beneath import Folder, RefusedError, kind_of
from harness.hosts.disks import COPY_PASSES_MAX
from harness.hosts.remote.wire import PAYLOAD_BYTES_MAX
from harness.hosts.trees import DEPTH_MAX
from harness.model import PreconditionError

# A change so long ago has a time that differs from that of any later one.
SETTLED_NS: Final = 1_000_000_000

# (inode, size, time of the last write, time of the last change)
Marks: TypeAlias = tuple[int, int, int, int]
Part: TypeAlias = tuple[Mapping[str, Any], bytes]


@dataclass(slots=True, kw_only=True)
class _Sent:
    """What was sent of a file."""

    marks: Marks
    settled: bool
    length: int
    digest: Any


@dataclass(slots=True)
class Changes:
    """
    Remembers what was sent of one folder.

    A part is a dict with one of these keys, each a path below the folder, and a payload:
        folder        make it
        gone          remove it, and what is below
        file, at      cut the file to the length `at`, making it if need be, and append the payload
    """

    folder: Path
    # None: of a file that could not be read to its end.
    _files: dict[str, _Sent | None] = field(default_factory=dict)
    _folders: set[str] = field(default_factory=set)

    def parts(self) -> Iterator[Part]:
        """
        Yield what has changed, after which a copy has every file that existed at the call.

        Raises:
            PreconditionError: A link is in the folder, or more than a copy may hold.
        """
        for _ in range(COPY_PASSES_MAX):
            vanished = yield from self._once()
            if not vanished:
                return
        raise PreconditionError(f"{self.folder}: files vanished in each of {COPY_PASSES_MAX} passes")

    def doubt(self) -> None:
        """Compare every file at the next look: after a power loss, old times say nothing about a file's bytes."""
        for sent in filter(None, list(self._files.values())):
            sent.settled = False

    def _once(self) -> Generator[Part, None, bool]:
        """Look once; return whether a file vanished meanwhile, whose new name may have been missed."""
        folders: set[str] = set()
        files: dict[str, os.stat_result] = {}
        try:
            with Folder.no_link(self.folder) as data:
                vanished = self._list(data, "", folders, files, DEPTH_MAX)
                self._require_small(files)
                yield from self._removals(folders, files)
                for path in sorted(folders - self._folders):
                    self._folders.add(path)
                    yield {"folder": path}, b""
                for path, found in files.items():
                    try:
                        yield from self._file(data, path, found)
                    except FileNotFoundError:
                        vanished = True
        except RefusedError as error:
            raise PreconditionError(f"{self.folder}: {error.filename}: {error}") from error
        except OSError as error:  # of a disk that a fault has broken, too
            raise PreconditionError(f"{self.folder}: {error.strerror}; expected files that can be read") from error
        return vanished

    def _list(
        self, folder: Folder, prefix: str, folders: set[str], files: dict[str, os.stat_result], depth: int
    ) -> bool:
        """Find every folder and file below; return whether a name vanished meanwhile."""
        if depth < 0:
            raise PreconditionError(f"{folder.path}: folders are nested deeper than {DEPTH_MAX}")
        vanished = False
        for name in sorted(entry.name for entry in folder.entries()):
            path = f"{prefix}{name}"
            try:
                found = folder.lstat(name)
                if stat.S_ISDIR(found.st_mode):
                    folders.add(path)
                    with folder.folder(name) as below:
                        vanished |= self._list(below, f"{path}/", folders, files, depth - 1)
                elif stat.S_ISREG(found.st_mode):
                    files[path] = found
                elif stat.S_ISLNK(found.st_mode):
                    text = f"{kind_of(found.st_mode)}; expected files and folders, and no link is copied"
                    raise PreconditionError(f"{self.folder}: {path}: {text}")
            except FileNotFoundError:
                vanished = True
        return vanished

    def _require_small(self, files: Mapping[str, os.stat_result]) -> None:
        total = sum(found.st_size for found in files.values())
        if total > limits.MIRROR_BYTES_MAX or len(files) > limits.FOLDER_NAMES_MAX:
            raise PreconditionError(
                f"{self.folder}: {len(files)} files with {total} bytes; expected at most "
                f"{limits.FOLDER_NAMES_MAX} with {limits.MIRROR_BYTES_MAX}"
            )

    def _removals(self, folders: set[str], files: Mapping[str, os.stat_result]) -> Iterator[Part]:
        for path in sorted((self._files.keys() - files.keys()) | (self._folders - folders)):
            self._files.pop(path, None)
            self._folders.discard(path)
            yield {"gone": path}, b""

    def _file(self, data: Folder, path: str, found: os.stat_result) -> Iterator[Part]:
        """Yield what is new of a file."""
        marks = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        sent = self._files.get(path)
        if sent is not None and sent.settled and sent.marks == marks:
            return
        # Read before the file is: a change after this moment may be missed now, and is not settled then.
        now_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
        with os.fdopen(data.open(path), "rb") as file:
            opened = os.fstat(file.fileno())
            at, digest = _common(file, sent)
            # If the file cannot be read to its end, all of it is sent next time.
            self._files[path] = None
            file.seek(at)
            left, first = max(0, opened.st_size - at), sent is None or at != sent.length
            while piece := file.read(min(left, PAYLOAD_BYTES_MAX)):
                digest.update(piece)
                yield {"file": path, "at": at}, piece
                at, left, first = at + len(piece), left - len(piece), False
            if first:
                yield {"file": path, "at": at}, b""
        self._files[path] = _Sent(
            marks=(opened.st_ino, opened.st_size, opened.st_mtime_ns, opened.st_ctime_ns),
            settled=0 <= max(opened.st_mtime_ns, opened.st_ctime_ns) < now_ns - SETTLED_NS and left == 0,
            length=at,
            digest=digest,
        )


def _common(file: Any, sent: _Sent | None) -> tuple[int, Any]:
    """Return how many of the bytes that were sent a file still begins with, all or none, and their digest."""
    fresh = hashlib.blake2b()
    if sent is None:
        return 0, fresh
    left = sent.length
    while left and (piece := file.read(min(left, PAYLOAD_BYTES_MAX))):
        fresh.update(piece)
        left -= len(piece)
    return (sent.length, fresh) if not left and fresh.digest() == sent.digest.digest() else (0, hashlib.blake2b())
