"""
The releases of Apache RocketMQ that can be a target, each with three sets of settings.

A release is the jars that Maven resolves for broker, controller and name server; a lock beside this module pins
each by size and checksum. `fencepost fetch rocketmq` brings them from Maven Central.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.downloads import Download, cache_of
from harness.jars import read_lock
from harness.registry import pick

NAME: Final = "rocketmq"
RELEASE: Final = "release"
ASYNC: Final = "async"
DEFAULTS: Final = "defaults"
_CENTRAL: Final = "https://repo.maven.apache.org/maven2"
_LOCKS: Final = Path(__file__).with_name("jars")

# The safest settings that the documents name: each member of the SyncStateSet has a record, and they are two at
# least, before it is acknowledged. "Automatic Failover": "ensuring that the message is not lost".
SAFE: Final[Mapping[str, str]] = {
    "brokerRole": "SYNC_MASTER",
    "flushDiskType": "SYNC_FLUSH",
    "allAckInSyncStateSet": "true",
    "inSyncReplicas": "2",
    "minInSyncReplicas": "2",
}
_SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "": SAFE,
    ASYNC: {**SAFE, "flushDiskType": "ASYNC_FLUSH"},
    DEFAULTS: {},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release."""

    name: str

    @property
    def lock(self) -> Path:
        """The file that pins its jars."""
        return _LOCKS / f"{self.name}.lock"

    @property
    def files(self) -> Sequence[Download]:
        """Its jars; raise UsageError if the lock cannot be read."""
        return [
            Download(url=f"{_CENTRAL}/{jar.path}", sha256=jar.sha256, size=jar.size, path=jar.path)
            for jar in read_lock(self.lock)
        ]


RELEASES: Final[Mapping[str, Release]] = {name: Release(name=name) for name in ("5.3.3", "5.5.0")}
NEWEST: Final = "5.5.0"
# What can be played -> its settings, from the oldest to the newest, the safest first.
VERSIONS: Final[Mapping[str, Mapping[str, str]]] = {
    f"{name}-{variant}" if variant else name: {RELEASE: name, **settings}
    for name in RELEASES
    for variant, settings in _SETTINGS.items()
}


def release_of(version: str) -> Release:
    """Return the release of a version; raise UsageError if there is none of that name."""
    pick("version of RocketMQ", VERSIONS, version)
    return RELEASES[VERSIONS[version][RELEASE]]


def library() -> Path:
    """Return the folder that keeps the jars; it may not exist yet."""
    return cache_of(NAME)
