"""The jars of a release: those that its lock pins, in the cache of harness/jars.py."""

from __future__ import annotations

from pathlib import Path

from harness.jars import Jar, cache_dir, class_path_of, digest, is_right, missing, read_lock, write_lock
from targets.kafka.releases import Release

__all__ = [
    "Jar",
    "cache_dir",
    "class_path",
    "digest",
    "is_right",
    "jars_of",
    "missing",
    "read_lock",
    "tools_of",
    "write_lock",
]


def jars_of(release: Release) -> tuple[Jar, ...]:
    """Return all jars of a release."""
    return read_lock(release.lock)


def tools_of(release: Release) -> tuple[Jar, ...]:
    """Return the jars that its command-line tools need beside the broker's; a broker never has them."""
    return read_lock(release.tools_lock) if release.tools_lock.exists() else ()


def class_path(release: Release, folder: Path) -> tuple[Path, ...]:
    """
    Return a release's jars in the cache, in the lock's order, after checking every checksum.

    Raises:
        UsageError: a jar is missing or changed; says which, and how to get it.
    """
    name = release.name
    return class_path_of(f"Apache Kafka {name}", release.lock, folder, f"fencepost kafka fetch {name}")
