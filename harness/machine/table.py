"""
The table of what a machine may lack; hosts and tests ask the same probes.

A row names one thing that the machine has or has not, as the hosts probe it. An ability of a node's host
(harness/ability.py) needs one row at most, `ROW_OF`. What only some hosts can do to their nodes is no row: the
host says so itself (`Host.lacks`).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Final

from harness import extras
from harness.ability import OF_DISKS, Ability
from harness.cleanup.ledger import Ledger
from harness.hosts import faketime, loopfs
from harness.hosts.faulty import why_no_fuse
from harness.hosts.packets import why_not
from harness.java import find_java
from harness.model import FencepostError, UsageError
from harness.packets import Packets
from harness.target.found import found
from harness.target.needs import MODULE, Row
from targets.kafka_family.clients import java_home


def lacks(name: str) -> str:
    """Return why this machine lacks what a row names, "" if it has it; KeyError for a name without a row."""
    return MACHINE[name].why_not()


def _root() -> str:
    return "" if os.geteuid() == 0 else "not root"


def _plain_user() -> str:
    return "root, who may do everything" if os.geteuid() == 0 else ""


@cache
def _tried(trial: Callable[[Path, Ledger], str]) -> str:
    """Try it in a folder and with a ledger of its own; return why it failed, or ""."""
    with tempfile.TemporaryDirectory(prefix="fencepost-trial-") as folder:
        ledger = Ledger.open(Path(folder).resolve())
        try:
            return trial(Path(folder).resolve() / "trial", ledger)
        finally:
            ledger.close()


@cache
def _docker() -> str:
    """Return why there can be no nodes in containers: no client, no engine, or no image to build them on."""
    if why := extras.lacks("docker"):
        return why
    from harness.cleanup import engine
    from harness.hosts import image_build

    try:
        with closing(engine.connect()) as client:
            image_build.ensure(client)
    except UsageError as error:
        return str(error)
    return ""


@cache
def _java() -> str:
    try:
        find_java()
    except FencepostError as error:
        return str(error)
    return ""


def _of_targets() -> Mapping[str, Row]:
    """Return the rows that targets bring; those of a module that does not import are missing."""
    rows: dict[str, Row] = {}
    for each in found().values():
        try:
            rows |= getattr(each.module_of(MODULE), "ROWS", {})
        except UsageError:
            continue  # `fencepost targets` says why
    return rows


MACHINE: Final[Mapping[str, Row]] = {
    "root": Row(why_not=_root, install="run it as root", serves="loop, iptables and tc"),
    "plain-user": Row(
        why_not=_plain_user, install="run it as a plain user", serves="tests of what a user may not do"
    ),
    "loop": Row(
        why_not=partial(_tried, loopfs.why_not),
        install="root, e2fsprogs, mount, loop devices",
        serves="power losses of services, and real ones of replicas; a stand-in undoes writes without it",
    ),
    "fuse": Row(
        why_not=partial(_tried, why_no_fuse),
        install="fuse3 (with libfuse3), /dev/fuse",
        serves="disks that are full, slow, read-only or fail",
    ),
    "iptables": Row(
        why_not=cache(partial(why_not, Packets.DROPPED)),
        install="root, iptables",
        serves="packets of a node that the kernel drops",
    ),
    "tc": Row(
        why_not=partial(why_not, Packets.THROTTLED),
        install="root, iproute2, a kernel with sch_tbf",
        serves="packets of a container that wait",
    ),
    "netem": Row(
        why_not=partial(why_not, Packets.LOSSY),
        install="root, iproute2, a kernel with sch_netem",
        serves="packets of a container that are late or lost",
    ),
    "faketime": Row(why_not=faketime.lacks, install="libfaketime", serves="clocks of a node that are wrong"),
    "docker": Row(
        why_not=_docker,
        install="docker.io, started; a base image, or mmdebstrap as root",
        serves="the host docker",
    ),
    "java": Row(
        why_not=_java,
        install="a Java 17 or later, or the extra java",
        serves="Spark, and services and targets that run on Java",
    ),
    "java-clients": Row(
        why_not=java_home.lacks,
        install=f"a JDK, and fencepost kafka fetch {java_home.RELEASE}",
        serves="Apache Kafka's own clients in the workload mixed",
    ),
    **_of_targets(),
}

# The row that an ability of a node needs, on every host that has the ability at all.
ROW_OF: Final[Mapping[Ability, str]] = {
    Ability.WALL_CLOCK: "faketime",
    Ability.CLOCKS: "faketime",
    **dict.fromkeys(OF_DISKS, "fuse"),
    Ability.PACKETS_DROPPED: "iptables",
    Ability.PACKETS_THROTTLED: "tc",
    Ability.PACKETS_LOSSY: "netem",
}
