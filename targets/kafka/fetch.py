"""
Download the jars of releases into this user's cache: through Maven if installed, else over HTTPS.

A jar gets its name in the cache only after its checksum matched the lock, so that a killed fetch resumes where it
stopped. One fetch at a time fills a cache; a second one waits, and uses the jars of the first.
"""

from __future__ import annotations

import fcntl
import http.client
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol

from harness.cleanup.process import until
from harness.model import UsageError
from targets.kafka import maven
from targets.kafka.jars import Jar, digest, is_right, jars_of, tools_of
from targets.kafka.releases import Release

MAVEN_CENTRAL: Final = "https://repo.maven.apache.org/maven2"
# Timeout of one read of a download, and of the wait for another fetch.
READ_S_MAX: Final = 30.0
TURN_S_MAX: Final = 1800.0
LOCK_NAME: Final = "fetch.lock"
INCOMING: Final = "incoming"
_CHUNK_BYTES: Final = 256 * 1024

Say = Callable[[str], None]


class Source(Protocol):
    """A source of jars; `text` is its name in messages."""

    text: str

    def bring(self, jars: Sequence[Jar], work: Path) -> Iterator[tuple[Jar, Path]]:
        """
        Yield each jar with its file below `work` as it arrives, unchecked.

        Raises:
            UsageError: the source cannot be reached or lacks a jar.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The work of a fetch: all jars of the releases, each once, and those that the cache lacks."""

    jars: tuple[Jar, ...]
    wanted: tuple[Jar, ...]

    @property
    def size(self) -> int:
        """Return the number of bytes to download."""
        return sum(jar.size for jar in self.wanted)


class MavenSource:
    """An installed Maven: one call for all jars."""

    def __init__(self, executable: Path) -> None:
        """Use this Maven executable."""
        self.text = f"Maven Central, with Maven ({executable})"
        self._executable = executable

    def bring(self, jars: Sequence[Jar], work: Path) -> Iterator[tuple[Jar, Path]]:
        """Let Maven copy the jars; after a failure Maven keeps what it has downloaded."""
        found = maven.copy(self._executable, jars, work)
        for jar in jars:
            yield jar, found / jar.path


class PlainSource:
    """A Maven repository over HTTP: one request per jar."""

    def __init__(self, url: str = MAVEN_CENTRAL) -> None:
        """Use the repository at this root URL."""
        self.text = url
        self._url = url.rstrip("/")

    def bring(self, jars: Sequence[Jar], work: Path) -> Iterator[tuple[Jar, Path]]:
        """Download them one by one."""
        for jar in jars:
            file = work / jar.name
            self._download(f"{self._url}/{jar.path}", jar.size, file)
            yield jar, file
            file.unlink(missing_ok=True)

    def _download(self, url: str, size: int, file: Path) -> None:
        try:
            with urllib.request.urlopen(url, timeout=READ_S_MAX) as answer, file.open("wb") as target:
                _copy_at_most(answer, target, size)
        except urllib.error.HTTPError as error:
            with error:
                raise UsageError(f"{url}: {error.code} {error.reason}; expected the jar") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise UsageError(
                f"{self.text} cannot be reached: {url}: {reason}; expected the jar; what was brought before it "
                "stays: try again with a network, or name another repository (--repository URL)"
            ) from error


def default_source() -> Source:
    """Return Maven if it is installed, else Maven Central."""
    executable = maven.find_maven()
    return PlainSource() if executable is None else MavenSource(executable)


def plan(releases: Sequence[Release], folder: Path) -> Plan:
    """Return the jars of the releases that the folder lacks or has damaged."""
    asked = (jar for release in releases for jar in (*jars_of(release), *tools_of(release)))
    jars = tuple({jar.path: jar for jar in asked}.values())
    return Plan(jars=jars, wanted=tuple(jar for jar in jars if not is_right(jar, folder / jar.path)))


def fetch(releases: Sequence[Release], folder: Path, source: Source, say: Say) -> Plan:
    """
    Download the missing jars, after saying which and how many bytes; return the plan.

    Raises:
        UsageError: the source cannot be reached, or a jar differs from the locks.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _turn(folder, say):
            found = plan(releases, folder)
            say(_intent(releases, found, folder, source))
            if found.wanted:
                _bring(found.wanted, folder, source)
            return found
    except OSError as error:
        raise UsageError(
            f"{error.filename or folder}: {error.strerror}; expected a cache that can be written"
        ) from error


def _intent(releases: Sequence[Release], found: Plan, folder: Path, source: Source) -> str:
    names = ", ".join(release.name for release in releases)
    have = len(found.jars) - len(found.wanted)
    if not found.wanted:
        return f"Apache Kafka {names}: all {have} jars are in {folder}, each as its checksum says"
    return (
        f"Apache Kafka {names}: {len(found.wanted)} jars to download, {found.size / 1e6:.1f} MB, "
        f"from {source.text} into {folder}" + (f"; {have} are there" if have else "")
    )


def _bring(jars: Sequence[Jar], folder: Path, source: Source) -> None:
    with tempfile.TemporaryDirectory(dir=folder / INCOMING) as work:
        for jar, file in source.bring(jars, Path(work)):
            if not file.exists():
                raise UsageError(f"{jar.path}: {source.text} lacks it; expected it there")
            if not is_right(jar, file):
                raise UsageError(
                    f"{jar.path}: {source.text} sent {file.stat().st_size} bytes with sha256 {digest(file)}; "
                    f"expected {jar.size} bytes with {jar.sha256}; not kept"
                )
            place = folder / jar.path
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)


@contextmanager
def _turn(folder: Path, say: Say) -> Iterator[None]:
    """Lock the folder against other fetches; remove the unfinished downloads of a killed fetch."""
    with (folder / LOCK_NAME).open("a") as handle:
        if not _locked(handle):
            say(f"another fetch fills {folder}: waiting for it")
            if not until(lambda: _locked(handle), TURN_S_MAX):
                raise UsageError(
                    f"{folder / LOCK_NAME}: held for {TURN_S_MAX:.0f} s by another fetch; expected its end"
                )
        incoming = folder / INCOMING
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir()
        try:
            yield
        finally:
            shutil.rmtree(incoming, ignore_errors=True)


def _locked(handle: IO[str]) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _copy_at_most(answer: IO[bytes], target: IO[bytes], size: int) -> None:
    """Copy an answer, at most one byte more than expected: that byte shows that it is too long."""
    left = size + 1
    while left and (chunk := answer.read(min(left, _CHUNK_BYTES))):
        target.write(chunk)
        left -= len(chunk)
