"""
Class archives: what a release's Java has read and verified of its classes once, kept beside the jars.

A broker's start is nearly all that a run costs, and most of that is loading classes. An archive is made by a
broker that starts, serves and is asked to end; whoever starts that release later maps it. It only saves time: a
Java that cannot use one starts without it.

Source:  JEP 350, Dynamic CDS Archives (Java 13).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from harness.cleanup.process import until
from harness.cluster import probe
from harness.cluster.target import NodeSpec
from harness.hosts.base import Host
from harness.java import Java
from harness.launch import Address, Launch
from harness.model import PreconditionError
from targets.kafka.jars import cache_dir, class_path
from targets.kafka.properties import LOG4J, LOG4J_TEXT, SERVER, command_line, server_properties
from targets.kafka.releases import Entry, Release

FOLDER: Final = "archives"
# A start and an end, with the archive written in between, on a busy machine.
SERVING_S_MAX: Final = 120.0
WRITING_S_MAX: Final = 120.0
# Where it does not fit it is not used, and nothing is said: the node's own words are what its log is for.
_QUIET: Final = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def archive_of(release: Release, java: Java) -> Path:
    """Give the archive's place: one for every release and every Java; it may not be there."""
    modules = java.executable.resolve().parents[1] / "lib" / "modules"
    size = modules.stat().st_size if modules.exists() else 0
    about = f"{java.executable.resolve()} {java.version} {size} {release.lock.read_text(encoding='utf-8')}"
    digest = hashlib.sha256(about.encode()).hexdigest()[:12]
    return cache_dir() / FOLDER / f"{release.name}-{digest}.jsa"


def flags(release: Release, java: Java) -> tuple[str, ...]:
    """Give the arguments with which a Java uses the release's archive; () when there is none."""
    archive = archive_of(release, java)
    try:
        used = archive.stat().st_size > 0
    except FileNotFoundError:
        used = False
    return (f"-XX:SharedArchiveFile={archive}", *_QUIET) if used else ()


def lacks(release: Release, java: Java) -> bool:
    """Whether nobody has tried yet to make the release's archive with that Java."""
    return not archive_of(release, java).exists()


def make(release: Release, java: Java, host: Host, zookeeper: Address, say: Callable[[str], None]) -> None:
    """
    Make a release's archive, by one broker on a host that is open; say what came of it.

    A Java that makes none leaves an empty file, so that nobody tries again. The host's nodes have no Java inside.
    Raises:  PreconditionError when the broker does not serve, or does not end.
    """
    name = f"archive-{release.name}"
    place = host.add_node(name, disk=False)
    archive = archive_of(release, java)
    archive.parent.mkdir(parents=True, exist_ok=True)
    fresh = archive.with_suffix(f".{os.getpid()}")
    spec = NodeSpec(
        name=name,
        broker_id=1,
        place=place,
        advertised_internal=place.internal_outside,
        zookeeper=f"{zookeeper}/{name}",
        collector=zookeeper,  # nobody tells anybody anything
    )
    jvm = (*release.jvm, f"-XX:ArchiveClassesAtExit={fresh}", *_QUIET)
    jars = class_path(release, cache_dir())
    launch = Launch(
        argv=command_line(java.executable, jvm, jars, place.conf_dir),
        files={SERVER: server_properties(spec, Entry(name=release.name, release=release)), LOG4J: LOG4J_TEXT},
    )
    try:
        host.start(name, launch)
        _serve_once(host, name, str(place.client_outside))
        if not fresh.exists():
            fresh.touch()
        size = fresh.stat().st_size
        fresh.replace(archive)
    finally:
        fresh.unlink(missing_ok=True)
    say(
        f"Apache Kafka {release.name}: classes archived, {size / 1e6:.0f} MB in {archive.parent}"
        if size
        else f"Apache Kafka {release.name}: this Java archives no classes; starts take longer"
    )


def _serve_once(host: Host, name: str, address: str) -> None:
    """Wait until the broker serves, then have it end in order, which is when the archive is written."""
    if not until(lambda: probe.serves(address) or not host.alive(name), SERVING_S_MAX) or not host.alive(name):
        said = " | ".join(host.log_text(name).splitlines()[-3:])
        raise PreconditionError(f"{name}: does not serve at {address}; it said: {said}")
    try:
        host.stop(name)
    except PreconditionError:
        # Writing may take longer than any other end.
        if not until(lambda: not host.alive(name), WRITING_S_MAX):
            raise
