"""A small Maven repository in a folder, and a release that needs its jars, for tests without a network."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from targets.kafka.jars import Jar, write_lock
from targets.kafka.releases import Release

CONTENTS: Mapping[str, bytes] = {
    "org/apache/kafka/kafka_2.11/9.9/kafka_2.11-9.9.jar": b"a broker",
    "org/slf4j/slf4j-api/1.7.25/slf4j-api-1.7.25.jar": b"an interface",
    "io/netty/epoll/4.1/epoll-4.1-linux-x86_64.jar": b"native",
}


@dataclass(frozen=True, kw_only=True)
class Kept(Release):
    """A release whose lock is a file of the test's choice."""

    file: Path

    @property
    def lock(self) -> Path:
        """The path of the test's lock."""
        return self.file


def repository(folder: Path, contents: Mapping[str, bytes] = CONTENTS) -> tuple[Jar, ...]:
    """Write the contents as a repository, and return their jars, sorted by path."""
    for path, content in contents.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return jars(contents)


def jars(contents: Mapping[str, bytes] = CONTENTS) -> tuple[Jar, ...]:
    """Return the jars that a lock of these contents pins, sorted by path."""
    return tuple(
        Jar(sha256=hashlib.sha256(content).hexdigest(), size=len(content), path=path)
        for path, content in sorted(contents.items())
    )


def release(folder: Path, name: str = "9.9", contents: Mapping[str, bytes] = CONTENTS) -> Release:
    """Write the lock of a release that needs these contents, and return the release."""
    made = Kept(
        name=name,
        coordinates=("org.apache.kafka:kafka_2.11:9.9",),
        jvm=("-Xmx1m",),
        models="hw",
        speaks="0.10.2",
        note="",
        file=folder / f"{name}.lock",
    )
    write_lock(made.file, jars(contents))
    return made
