"""
Files of a target that come from the network: each pinned by size and checksum, kept in this user's cache.

    $XDG_CACHE_HOME/fencepost/NAME, else ~/.cache/fencepost/NAME

A file gets its name only after its checksum matched. What has arrived of one stays beside it (`.part`), so that a
fetch that was killed goes on at that byte. One fetch at a time fills a cache; another one waits for it.
"""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final

from harness.cleanup.process import until
from harness.model import UsageError

# Timeout of one read of a download, and of the wait for another fetch.
READ_S_MAX: Final = 30.0
TURN_S_MAX: Final = 1800.0
LOCK_NAME: Final = "fetch.lock"
PART: Final = ".part"
_CHUNK_BYTES: Final = 256 * 1024
_SHA256: Final = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """
    One file.

    Attributes:
        size: in bytes.
        path: where it is kept, below the target's cache.
    """

    url: str
    sha256: str
    size: int
    path: str

    def __post_init__(self) -> None:
        """Raise UsageError for what cannot be right; a path never leaves the cache."""
        path = PurePosixPath(self.path)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise UsageError(f"download {self.url}: path {self.path!r}; expected one below the target's cache")
        if len(self.sha256) != 64 or not set(self.sha256) <= _SHA256 or self.size < 0:
            raise UsageError(
                f"download {self.url}: sha256 {self.sha256[:80]!r}, {self.size} bytes; expected 64 hex digits"
            )

    def is_in(self, folder: Path) -> bool:
        """Return whether the folder has exactly this file."""
        file = folder / self.path
        return file.is_file() and file.stat().st_size == self.size and _digest(file) == self.sha256


def cache_of(name: str) -> Path:
    """Return the folder that keeps what a target, or something else of this name, needs; it may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "fencepost" / name


def bring(downloads: Sequence[Download], folder: Path, say: Callable[[str], None]) -> tuple[Download, ...]:
    """
    Download what the folder lacks, after saying how much that is; return what was brought.

    Raises:
        UsageError: a file cannot be reached or is not what its checksum says, or the cache cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _turn(folder, say):
            wanted = tuple(each for each in downloads if not each.is_in(folder))
            there = len(downloads) - len(wanted)
            if wanted:
                size = sum(each.size for each in wanted) / 1e6
                say(f"{len(wanted)} files to download, {size:.1f} MB, into {folder}; {there} are there")
            else:
                say(f"all {there} files are in {folder}, each as its checksum says")
            for each in wanted:
                _bring(each, folder)
            return wanted
    except OSError as error:
        raise UsageError(
            f"{error.filename or folder}: {error.strerror}; expected a cache that can be written"
        ) from error


def _bring(one: Download, folder: Path) -> None:
    file = folder / one.path
    part = file.with_name(file.name + PART)
    part.parent.mkdir(parents=True, exist_ok=True)
    have = part.stat().st_size if part.is_file() else 0
    if have < one.size or not one.size:
        _download(one, part, have)
    if (got := part.stat().st_size) != one.size or _digest(part) != one.sha256:
        digest = _digest(part)
        part.unlink()
        raise UsageError(
            f"{one.url}: {got} bytes with sha256 {digest}; expected {one.size} bytes with {one.sha256}; not kept"
        )
    part.replace(file)


def _download(one: Download, part: Path, have: int) -> None:
    """Append what is missing; a server that knows no ranges sends all of it again."""
    request = urllib.request.Request(one.url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=READ_S_MAX) as answer:
            goes_on = have and answer.status == http.client.PARTIAL_CONTENT
            with part.open("ab" if goes_on else "wb") as file:
                _copy_at_most(answer, file, one.size - (have if goes_on else 0))
    except urllib.error.HTTPError as error:
        with error:
            raise UsageError(f"{one.url}: {error.code} {error.reason}; expected the file {one.path}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise UsageError(
            f"{one.url}: {getattr(error, 'reason', error)}; expected the file {one.path}; what was brought of it "
            "stays: try again with a network"
        ) from error


def _copy_at_most(answer: IO[bytes], file: IO[bytes], size: int) -> None:
    """Copy an answer, at most one byte more than expected: that byte shows that it is too long."""
    left = size + 1
    while left and (chunk := answer.read(min(left, _CHUNK_BYTES))):
        file.write(chunk)
        left -= len(chunk)


@contextmanager
def _turn(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Lock the folder against other fetches; an end of any kind frees it."""
    with (folder / LOCK_NAME).open("a") as handle:
        if not _locked(handle):
            say(f"another fetch fills {folder}: waiting for it")
            if not until(lambda: _locked(handle), TURN_S_MAX):
                raise UsageError(
                    f"{folder / LOCK_NAME}: held for {TURN_S_MAX:.0f} s by another fetch; expected its end"
                )
        yield


def _locked(handle: IO[str]) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _digest(file: Path) -> str:
    found = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            found.update(chunk)
    return found.hexdigest()
