"""
The table of releases: releases.toml as values, and the protocol of ours that each entry corresponds to.

An entry is a release by its own number (`2.1.1`) or a release with some of its properties set (`2.1.1@1.1`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from harness.cluster.names import SPEAKS_AS
from harness.model import UsageError
from harness.registry import pick

HERE: Final = Path(__file__).parent
LOCKS: Final = HERE / "locks"
SPEAKS: Final = "inter.broker.protocol.version"
FORMAT: Final = "log.message.format.version"
# Record batches came with 0.11 (KIP-98): older brokers accept message sets only.
BATCHES_SINCE: Final = (0, 11)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """
    One release of Apache Kafka.

    Attributes:
        coordinates: Maven's group:artifact:version, the broker's own first.
        models: the protocol of this repository that the release corresponds to.
        speaks: its own inter.broker.protocol.version.
        properties: those that a run needs on this release.
    """

    name: str
    coordinates: tuple[str, ...]
    jvm: tuple[str, ...]
    models: str
    speaks: str
    note: str
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def lock(self) -> Path:
        """Return the file that pins its jars."""
        return LOCKS / f"{self.name}.lock"

    @property
    def tools_lock(self) -> Path:
        """Return the file that pins the jars of its command-line tools, if they are not among the broker's own."""
        return LOCKS / f"{self.name}.tools.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One column of a table: a release, and the properties that differ from a run's defaults."""

    name: str
    release: Release
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def speaks(self) -> str:
        """Return its inter.broker.protocol.version."""
        return self.properties.get(SPEAKS, self.release.speaks)

    @property
    def models(self) -> str:
        """Return the older of two protocols: its release's, and the one that its protocol version allows."""
        return older(self.release.models, allowed(self.speaks))


@cache
def releases() -> Mapping[str, Release]:
    """Return every release by its number, oldest first."""
    table = _table()
    return {
        name: Release(
            name=name,
            coordinates=(raw["kafka"], *table["jars"], *raw.get("jars", ())),
            jvm=(*table["jvm"], *raw.get("jvm", ())),
            models=raw["models"],
            speaks=raw["speaks"],
            note=raw["note"],
            properties=raw.get("set", {}),
        )
        for name, raw in table["release"].items()
    }


@cache
def entries() -> Mapping[str, Entry]:
    """Return every entry by its name: all releases, oldest first, each before its variants."""
    found: dict[str, Entry] = {}
    for name, release in releases().items():
        found[name] = Entry(name=name, release=release)
        for variant, raw in _table()["variant"].items():
            if raw["release"] == name:
                found[variant] = Entry(name=variant, release=release, properties=raw["set"])
    return found


def spoken_entry(name: str) -> Entry | None:
    """
    Return a release that speaks as an older one, as in the first round of an upgrade; None for another name.

    `3.9.1@2.1` need not be a column of the tables. Before 0.11 the message format is set back too: its batches
    would be sent to brokers that cannot read them.

    Raises:
        UsageError: there is no such release, or it is older than the version that it is to speak.
    """
    number, at, speaks = name.partition(SPEAKS_AS)
    if name in entries() or not at:
        return entries().get(name)
    release = release_of(number)
    if version(speaks) > version(release.speaks):
        raise UsageError(f"{name}: {SPEAKS}={speaks}; expected at most the release's own, {release.speaks}")
    allowed(speaks)
    formats = {FORMAT: speaks} if version(speaks) < BATCHES_SINCE else {}
    return Entry(name=name, release=release, properties={SPEAKS: speaks, **formats})


def release_of(name: str) -> Release:
    """
    Return a release by its number.

    Raises:
        UsageError: the table lacks it; lists the known releases.
    """
    return pick("release of Apache Kafka", releases(), name)


def older(one: str, other: str) -> str:
    """Return the older of two protocols on the ladder."""
    ladder: list[str] = _table()["ladder"]
    return min(one, other, key=ladder.index)


def allowed(speaks: str) -> str:
    """
    Return the newest protocol that an inter.broker.protocol.version allows.

    Raises:
        UsageError: it is no version, or older than all in the table.
    """
    number = version(speaks)
    found = [protocol for since, protocol in _table()["allows"].items() if version(since) <= number]
    if not found:
        raise UsageError(f"{SPEAKS}={speaks}: older than any release here; expected 0.10.2 or later")
    return str(found[-1])


def version(text: str) -> tuple[int, ...]:
    """Parse a version as Kafka writes it: 1.1, 0.10.2, 2.7-IV1 (only the numbers count)."""
    try:
        return tuple(int(part) for part in text.partition("-")[0].split("."))
    except ValueError as error:
        raise UsageError(f"version {text!r}: expected numbers and dots, such as 0.10.2 or 2.7-IV1") from error


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads((HERE / "releases.toml").read_text(encoding="utf-8"))
