"""
Jars of Maven Central in this user's cache, each pinned by a lock.

A lock has one line for every jar, `SHA256  BYTES  MAVEN/PATH.jar`, sorted by path. The cache keeps each jar
once, at its Maven path, for all locks that name it; a file gets that name only after its checksum matched.

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

_CHUNK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One jar of a lock; path is its place in a Maven repository."""

    sha256: str
    size: int
    path: str

    @property
    def name(self) -> str:
        """Return the file's name."""
        return PurePosixPath(self.path).name

    def line(self) -> str:
        """Return the jar's line of a lock."""
        return f"{self.sha256}  {self.size}  {self.path}"


def read_lock(path: Path) -> tuple[Jar, ...]:
    """
    Read a lock.

    Raises:
        UsageError: there is no lock, or a line of it is invalid; names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such lock; `python -m targets.kafka.lock RELEASE` makes it") from error
    return tuple(_read_line(f"{path}:{number}", line) for number, line in enumerate(lines, start=1))


def write_lock(path: Path, jars: Iterable[Jar]) -> None:
    """Write a lock, sorted by path."""
    lines = (jar.line() for jar in sorted(jars, key=lambda jar: jar.path))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def cache_dir() -> Path:
    """Return the folder that keeps jars between runs; it may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "fencepost" / "kafka"


def missing(jars: Iterable[Jar], folder: Path) -> tuple[Jar, ...]:
    """Return the jars that the folder lacks or has in another size than the lock's."""
    return tuple(jar for jar in jars if _size(folder / jar.path) != jar.size)


def is_right(jar: Jar, file: Path) -> bool:
    """Return True if a file is exactly that jar."""
    return _size(file) == jar.size and digest(file) == jar.sha256


def digest(file: Path) -> str:
    """Return a file's SHA-256 as hex."""
    found = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            found.update(chunk)
    return found.hexdigest()


@cache
def class_path_of(who: str, lock: Path, folder: Path, remedy: str) -> tuple[Path, ...]:
    """
    Return a lock's jars in the cache, in the lock's order, after checking every checksum.

    Args:
        who: whose jars they are.
        remedy: the command that brings them.

    Raises:
        UsageError: a jar is missing or changed; says which, and how to get it.
    """
    jars = read_lock(lock)
    if lacking := missing(jars, folder):
        raise UsageError(
            f"{who}: {len(lacking)} of {len(jars)} jars are not in {folder} "
            f"({lacking[0].name}{', …' if len(lacking) > 1 else ''}); `{remedy}` brings them"
        )
    wrong = [jar for jar in jars if not is_right(jar, folder / jar.path)]
    if wrong:
        raise UsageError(
            f"{who}: {folder / wrong[0].path}: not what {lock.name} pins; expected sha256 {wrong[0].sha256}; "
            f"remove the file and `{remedy}`"
        )
    return tuple(folder / jar.path for jar in jars)


def _read_line(where: str, line: str) -> Jar:
    words = line.split()
    path = PurePosixPath(words[-1]) if words else PurePosixPath()
    sound = (
        len(words) == 3
        and len(words[0]) == hashlib.sha256().digest_size * 2
        and words[1].isdecimal()
        # Lock paths name files that are written: never outside the folder.
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
