"""
The releases of NATS that can be a target, each with the default `sync_interval` and with `always`.

A release is a Go module, pinned by its checksum, and built on this machine: docs/nats.md says how.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.downloads import cache_of
from harness.registry import pick

NAME: Final = "nats"
MODULE: Final = "github.com/nats-io/nats-server/v2"
PROGRAM: Final = "nats-server"
# Beside the program: the hash that it had when it was built here.
HASH: Final = "nats-server.sha256"
SYNC: Final = "sync_interval"
ALWAYS: Final = "always"
RELEASE: Final = "release"
_VARIANT: Final = f"-{ALWAYS}"
# NATS's own default: what is acknowledged may be in memory alone for so long.
DEFAULT_SYNC: Final = "2m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """
    One release.

    Attributes:
        checksum: of the module, as Go's checksum database has it.
    """

    name: str
    checksum: str

    @property
    def module(self) -> str:
        """The module with its version, as `go` names it."""
        return f"{MODULE}@v{self.name}"


RELEASES: Final[Mapping[str, Release]] = {
    each.name: each
    for each in (
        Release(name="2.12.1", checksum="h1:0tRrc9bzyXEdBLcHr2XEjDzVpUxWx64aZBm7Rl1QDrA="),
        Release(name="2.14.10", checksum="h1:5YsH9GFafJn9IJ4dMhSojH1r3exa23MxalvecWguKcE="),
        Release(name="2.15.3", checksum="h1:IgHIKL4DYN9mEfwtPcdM39muvXG8v9FBADQn0f4Whs0="),
    )
}
NEWEST: Final = "2.15.3"
# What can be played -> its settings, from the oldest to the newest.
VERSIONS: Final[Mapping[str, Mapping[str, str]]] = {
    version: {RELEASE: name, SYNC: sync}
    for name in RELEASES
    for version, sync in ((name, DEFAULT_SYNC), (f"{name}{_VARIANT}", ALWAYS))
}


def release_of(version: str) -> Release:
    """Return the release of a version; raise UsageError if there is none of that name."""
    pick("version of NATS", VERSIONS, version)
    return RELEASES[version.removesuffix(_VARIANT)]


def library() -> Path:
    """Return the folder that keeps the programs; it may not exist yet."""
    return cache_of(NAME)


def program_of(release: Release, folder: Path) -> Path:
    """Return where a release's program is kept."""
    return folder / release.name / PROGRAM
