"""
Class archives: a release's loaded and verified Java classes, kept beside the jars.

A broker's start takes most of a run's time, and loading classes takes most of the start. A broker that starts,
serves and stops in order writes the archive; every later start of that release maps it. It only saves time: a
Java that cannot use an archive starts without it.

Source:  JEP 350, Dynamic CDS Archives (Java 13).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from harness.cleanup.process import until
from harness.cluster.last_words import explained
from harness.hosts.base import Host
from harness.java import Java
from harness.launch import Launch
from harness.model import PreconditionError
from harness.target.services import Others
from harness.target.target import NodeSpec
from targets.kafka.jars import cache_dir, class_path
from targets.kafka.properties import LOG4J, LOG4J_TEXT, SERVER, command_line, server_properties
from targets.kafka.releases import Entry, Release
from targets.kafka_family.clients import probe
from targets.zookeeper.server import ZOOKEEPER

FOLDER: Final = "archives"
# A start and a stop on a busy machine, with the archive written in between.
SERVING_S_MAX: Final = 120.0
WRITING_S_MAX: Final = 120.0
# A Java that cannot use the archive starts without it and prints nothing about it into the node's log.
_QUIET: Final = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def archive_of(release: Release, java: Java) -> Path:
    """Return the archive's path, one for each release and Java; it may not exist."""
    modules = java.executable.resolve().parents[1] / "lib" / "modules"
    size = modules.stat().st_size if modules.exists() else 0
    about = f"{java.executable.resolve()} {java.version} {size} {release.lock.read_text(encoding='utf-8')}"
    digest = hashlib.sha256(about.encode()).hexdigest()[:12]
    return cache_dir() / FOLDER / f"{release.name}-{digest}.jsa"


def flags(release: Release, java: Java) -> tuple[str, ...]:
    """Return the Java arguments that use the release's archive; () when there is none."""
    archive = archive_of(release, java)
    try:
        used = archive.stat().st_size > 0
    except FileNotFoundError:
        used = False
    return (f"-XX:SharedArchiveFile={archive}", *_QUIET) if used else ()


def lacks(release: Release, java: Java) -> bool:
    """Return True if this Java never tried to make the release's archive."""
    return not archive_of(release, java).exists()


def make(release: Release, java: Java, host: Host, shared: Others, say: Callable[[str], None]) -> None:
    """
    Make a release's archive with one broker on an open host; report the result through `say`.

    A Java that makes none leaves an empty file, so that it is not tried again. The host's nodes bring no Java.

    Raises:
        PreconditionError: the broker does not serve, or does not stop.
    """
    name = f"archive-{release.name}"
    place, (zookeeper, *_) = host.add_node(name, disk=False), shared[ZOOKEEPER.name]
    archive = archive_of(release, java)
    archive.parent.mkdir(parents=True, exist_ok=True)
    fresh = archive.with_suffix(f".{os.getpid()}")
    spec = NodeSpec(
        name=name,
        broker_id=1,
        place=place,
        advertised_internal=place.internal_outside,
        services=(zookeeper,),
        folder=archive.parent / name,
        collector=zookeeper,  # emits no events
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
    """Wait until the broker serves, then stop it in order, which writes the archive."""
    if not until(lambda: probe.serves(address) or not host.alive(name), SERVING_S_MAX) or not host.alive(name):
        said = explained(host.log_text(name))
        raise PreconditionError(f"{name}: does not serve at {address}; it said: {said}")
    try:
        host.stop(name)
    except PreconditionError:
        # Writing may take longer than any other stop.
        if not until(lambda: not host.alive(name), WRITING_S_MAX):
            raise
