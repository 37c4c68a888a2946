"""
The releases of Apache Fluss that can be a target, and the files that each needs.

A release is one jar with all that it needs but a logger. `fencepost fetch fluss` brings it from Maven Central.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from harness.downloads import Download, cache_of
from harness.model import UsageError
from harness.registry import pick

NAME: Final = "fluss"
_CENTRAL: Final = "https://repo.maven.apache.org/maven2"


def _jar(path: str, sha256: str, size: int) -> Download:
    return Download(url=f"{_CENTRAL}/{path}", sha256=sha256, size=size, path=path)


# SLF4J 1.7 with reload4j, which writes what the servers log to their output.
_LOGGING: Final = (
    _jar(
        "org/slf4j/slf4j-api/1.7.36/slf4j-api-1.7.36.jar",
        "d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0",
        41_125,
    ),
    _jar(
        "org/slf4j/slf4j-reload4j/1.7.36/slf4j-reload4j-1.7.36.jar",
        "ae6fdd5c9547896114d5ec7fa7503733b7d2890573d3886fb548b3119c4d3f67",
        9_824,
    ),
    _jar(
        "ch/qos/reload4j/reload4j/1.2.25/reload4j-1.2.25.jar",
        "e71115175c4b080cf51dd72097165ea001ff9fafdc4f79d88049d0b1ecca979c",
        333_325,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release: its jar, and the files beside it."""

    name: str
    server: Download

    @property
    def files(self) -> tuple[Download, ...]:
        """All files, in the order of the class path."""
        return (self.server, *_LOGGING)


RELEASES: Final[Mapping[str, Release]] = {
    each.name: each
    for each in (
        Release(
            name="0.9.1",
            server=_jar(
                "org/apache/fluss/fluss-server/0.9.1-incubating/fluss-server-0.9.1-incubating.jar",
                "fdda82aa7cc936086c420090920836066d48d741cf7e0aadde3c0e6f0832a169",
                85_810_597,
            ),
        ),
    )
}


def release_of(name: str) -> Release:
    """Return a release; raise UsageError if there is none of that name."""
    return pick("release of Apache Fluss", RELEASES, name)


def library() -> Path:
    """Return the folder that keeps the files; it may not exist yet."""
    return cache_of(NAME)


@cache
def class_path(name: str, folder: Path) -> tuple[Path, ...]:
    """
    Return a release's files, after checking every checksum once in this process.

    Raises:
        UsageError: one is missing, or is not what its checksum says; the text has the command that brings it.
    """
    files = release_of(name).files
    for each in files:
        if not each.is_in(folder):
            raise UsageError(
                f"Apache Fluss {name}: {folder / each.path} is not there, or not the pinned file (sha256 "
                f"{each.sha256}); `fencepost fetch fluss:{name}` brings it"
            )
    return tuple(folder / each.path for each in files)
