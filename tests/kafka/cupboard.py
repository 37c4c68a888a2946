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
    """A release whose lock lies where the test wants it."""

    file: Path

    @property
    def lock(self) -> Path:
        """The lock of the test."""
        return self.file


def repository(folder: Path, contents: Mapping[str, bytes] = CONTENTS) -> tuple[Jar, ...]:
    """Write the files as a repository; give their jars, by path."""
    for path, content in contents.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return jars(contents)


def jars(contents: Mapping[str, bytes] = CONTENTS) -> tuple[Jar, ...]:
    """Give the jars that a lock of these contents pins, by path."""
    return tuple(
        Jar(sha256=hashlib.sha256(content).hexdigest(), size=len(content), path=path)
        for path, content in sorted(contents.items())
    )


def release(folder: Path, name: str = "9.9", contents: Mapping[str, bytes] = CONTENTS) -> Release:
    """Give a release that needs these contents, and write its lock."""
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
