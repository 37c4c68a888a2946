"""
The jars of a release: what its lock pins, and what of it lies in this user's cache.

A lock has one line for every jar, `SHA256  BYTES  MAVEN/PATH.jar`, sorted by path. The cache keeps each jar
once, at its Maven path, whichever releases share it; what stands there under its name was checked before it got
that name.

    $XDG_CACHE_HOME/fencepost/kafka, else ~/.cache/fencepost/kafka
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from harness.model import UsageError
from targets.kafka.releases import Release

_CHUNK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One jar as a lock pins it; path is its place in a Maven repository."""

    sha256: str
    size: int
    path: str

    @property
    def name(self) -> str:
        """The file's name."""
        return PurePosixPath(self.path).name

    def line(self) -> str:
        """Give the jar's line of a lock."""
        return f"{self.sha256}  {self.size}  {self.path}"


def read_lock(path: Path) -> tuple[Jar, ...]:
    """
    Read a lock.

    Raises:  UsageError when there is none, or naming the line that is none.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such lock; `python -m targets.kafka.lock RELEASE` makes it") from error
    return tuple(_read_line(f"{path}:{number}", line) for number, line in enumerate(lines, start=1))


def write_lock(path: Path, jars: Iterable[Jar]) -> None:
    """Write a lock, by path."""
    lines = (jar.line() for jar in sorted(jars, key=lambda jar: jar.path))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def jars_of(release: Release) -> tuple[Jar, ...]:
    """Give all that a release needs."""
    return read_lock(release.lock)


def cache_dir() -> Path:
    """Give the folder that keeps jars between runs; it may not be there yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "fencepost" / "kafka"


def missing(jars: Iterable[Jar], folder: Path) -> tuple[Jar, ...]:
    """Give the jars that are not in the folder with the size that the lock says."""
    return tuple(jar for jar in jars if _size(folder / jar.path) != jar.size)


def is_right(jar: Jar, file: Path) -> bool:
    """Whether a file is that very jar."""
    return _size(file) == jar.size and digest(file) == jar.sha256


def digest(file: Path) -> str:
    """Give a file's SHA-256 as hex."""
    found = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            found.update(chunk)
    return found.hexdigest()


@cache
def class_path(release: Release, folder: Path) -> tuple[Path, ...]:
    """
    Give a release's jars in the cache, in the lock's order, every one held against its checksum.

    Raises:  UsageError when one is missing or changed; says which, and how to have it.
    """
    jars = jars_of(release)
    if lacking := missing(jars, folder):
        raise UsageError(
            f"Apache Kafka {release.name}: {len(lacking)} of {len(jars)} jars are not in {folder} "
            f"({lacking[0].name}{', …' if len(lacking) > 1 else ''}); `fencepost kafka fetch {release.name}` "
            "brings them"
        )
    wrong = [jar for jar in jars if not is_right(jar, folder / jar.path)]
    if wrong:
        raise UsageError(
            f"Apache Kafka {release.name}: {folder / wrong[0].path}: not what {release.lock.name} pins; expected "
            f"sha256 {wrong[0].sha256}; remove the file and `fencepost kafka fetch {release.name}`"
        )
    return tuple(folder / jar.path for jar in jars)


def _read_line(where: str, line: str) -> Jar:
    words = line.split()
    path = PurePosixPath(words[-1]) if words else PurePosixPath()
    sound = (
        len(words) == 3
        and len(words[0]) == hashlib.sha256().digest_size * 2
        and words[1].isdecimal()
        # What is read here names files that are written: never outside the folder.
        and not path.is_absolute()
        and ".." not in path.parts
        and len(path.parts) >= 4
    )
    if not sound:
        raise UsageError(f"{where}: {line[:120]!r}; expected 'SHA256  BYTES  GROUP/ARTIFACT/VERSION/FILE.jar'")
    return Jar(sha256=words[0], size=int(words[1]), path=words[2])


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return -1
