"""
Write the lock of a release again: the jars that Maven resolves for its coordinates, with their checksums.

    python -m targets.kafka.lock RELEASE...

Run it after adding a release to releases.toml; the lock in the repository pins the jars for every user.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness.ending import end
from harness.model import UsageError
from targets.kafka.jars import Jar, digest, write_lock
from targets.kafka.maven import find_maven, resolve
from targets.kafka.releases import Release, release_of


def make_lock(release: Release) -> tuple[Jar, ...]:
    """
    Resolve a release with Maven and write its lock.

    Raises:
        UsageError: Maven is missing, or failed; with Maven's message.
    """
    maven = find_maven()
    if maven is None:
        raise UsageError("Maven (mvn) is not on the PATH; only it resolves what a release asks for: install it")
    with tempfile.TemporaryDirectory() as work:
        found = resolve(maven, release.coordinates, Path(work))
        jars = tuple(
            Jar(sha256=digest(file), size=file.stat().st_size, path=file.relative_to(found).as_posix())
            for file in sorted(found.rglob("*.jar"))
        )
    write_lock(release.lock, jars)
    return jars


def main(arguments: Sequence[str]) -> int:
    """Write the locks of the named releases."""
    return end("targets.kafka.lock", lambda: _write([release_of(name) for name in arguments]))


def _write(releases: Sequence[Release]) -> int:
    if not releases:
        raise UsageError("no release named; expected some, such as 3.9.1")
    for release in releases:
        jars = make_lock(release)
        print(f"{release.lock.name}: {len(jars)} jars, {sum(jar.size for jar in jars)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
