"""
Launch a real ZooKeeper 3.9 server, or one of an ensemble, from the jars inside pyspark.

Ticks are short so that sessions can be short too (by default 2 to 20 ticks, here 0.4 to 120 s). Nothing is forced
to disk, unless a run's faults take the power of a server's disk: ZooKeeper is not the system under test.
"""

from __future__ import annotations

import importlib.util
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from harness import limits
from harness.java import find_java
from harness.launch import Address, Launch, Runtime
from harness.model import UsageError
from harness.target.services import Others, Process, Service

# The smallest set of pyspark's jars with which a standalone server runs and logs its errors.
JARS: Final = (
    "zookeeper",
    "zookeeper-jute",
    "slf4j-api",
    "log4j-api",
    "log4j-core",
    "log4j-slf4j2-impl",
    "metrics-core",
    "snappy-java",
    "commons-io",
)

# A server that is still starting may accept a connection and never answer it.
READY_WAIT_S_MAX: Final = 0.5

MODE: Final = re.compile(r"^Mode: (standalone|leader|follower)$", re.MULTILINE)
SESSION: Final = re.compile(r"\bsid=0x([0-9a-f]+)")

TICK_MS: Final = 200
SESSION_MS_MIN: Final = 400
SESSION_MS_MAX: Final = 120_000

# Ticks in which a server must reach the leader, and may be behind it: generous, since machines are busy.
INIT_TICKS: Final = 100
SYNC_TICKS: Final = 15
# A server of an ensemble holds little, and there are three.
HEAPS: Final = {False: "-Xmx256m", True: "-Xmx96m"}

CONFIGURATION: Final = """\
dataDir={data_dir}
clientPort={port}
clientPortAddress={host}
tickTime={tick_ms}
minSessionTimeout={session_ms_min}
maxSessionTimeout={session_ms_max}
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
"""
ENSEMBLE: Final = """\
initLimit={init_ticks}
syncLimit={sync_ticks}
quorumListenOnAllIPs=true
"""
# The file in the data directory that says which of the servers this one is.
MY_ID: Final = "myid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """
    One server of an ensemble, as the others see it.

    Attributes:
        number: its id, from 1 on; of two with the same transactions the one of the higher id leads.
        peers: where followers connect to it while it leads.
        election_port: where they vote.
    """

    number: int
    peers: Address
    election_port: int

    @property
    def line(self) -> str:
        """Its line in every server's configuration."""
        return f"server.{self.number}={self.peers}:{self.election_port}"


def find_jars() -> tuple[Path, ...]:
    """
    Return the jars that the server needs, from the installed pyspark.

    Raises:
        UsageError: pyspark or one of the jars is missing.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise UsageError("ZooKeeper: pyspark is not installed; expected its jars; `pip install pyspark`")
    folder = Path(spec.submodule_search_locations[0]) / "jars"
    found: list[Path] = []
    for name in JARS:
        jars = sorted(folder.glob(f"{name}-[0-9]*.jar"))
        if not jars:
            raise UsageError(f"ZooKeeper: no {name}-*.jar in {folder}; expected the jars of pyspark 4.3")
        found.append(jars[-1])
    return tuple(found)


def launch(
    *,
    java: str,
    jars: Sequence[str],
    conf_dir: str,
    data_dir: str,
    address: Address,
    ensemble: Sequence[Member] = (),
    durable: bool = False,
) -> Launch:
    """
    Return the command line and the configuration file of a server that listens on the address.

    All paths are as the server sees them.

    Args:
        conf_dir: The folder into which the launch's files will be written.
        ensemble: All servers, this one among them; its id is in the file MY_ID of the data directory. () for a
            server that stands alone.
        durable: It flushes a transaction before it answers.
    """
    configuration = CONFIGURATION.format(
        data_dir=data_dir,
        port=address.port,
        host=address.host,
        tick_ms=TICK_MS,
        session_ms_min=SESSION_MS_MIN,
        session_ms_max=SESSION_MS_MAX,
    )
    if ensemble:
        configuration += ENSEMBLE.format(init_ticks=INIT_TICKS, sync_ticks=SYNC_TICKS)
        configuration += "".join(f"{member.line}\n" for member in ensemble)
    return Launch(
        runtime=Runtime.JAVA,
        argv=(
            java,
            HEAPS[bool(ensemble)],
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            # In KiB; by default the server preallocates 64 MiB for its log.
            "-Dzookeeper.preAllocSize=256",
            f"-Dzookeeper.forceSync={'yes' if durable else 'no'}",
            "-Dzookeeper.jmx.log4j.disable=true",
            "-cp",
            ":".join(jars),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            f"{conf_dir}/zoo.cfg",
        ),
        files={"zoo.cfg": configuration},
    )


def ask(address: Address, word: str, wait_s_max: float = limits.SERVICE_ANSWER_S_MAX) -> str:
    """
    Send a four-letter word and return the server's answer.

    Raises:
        OSError: No server answers in time.
    """
    with socket.create_connection((address.host, address.port), wait_s_max) as connection:
        connection.sendall(word.encode("ascii"))
        chunks: list[bytes] = []
        while chunk := connection.recv(65536):
            chunks.append(chunk)
    return b"".join(chunks).decode("utf-8", errors="replace")


def is_ready(address: Address) -> bool:
    """Return True if the server serves requests."""
    return bool(mode_of(address))


def mode_of(address: Address) -> str:
    """
    Return what a server is: "standalone", "leader" or "follower"; "" if it serves nobody.

    `srvr` names a mode only once it serves; `ruok` answers imok too early.
    """
    try:
        found = MODE.search(ask(address, "srvr", READY_WAIT_S_MAX))
    except OSError:
        return ""
    return found[1] if found else ""


def sessions_at(address: Address) -> frozenset[int]:
    """Return the sessions that are connected to a server now, by `cons`; none if it does not answer."""
    try:
        return frozenset(int(each, 16) for each in SESSION.findall(ask(address, "cons", READY_WAIT_S_MAX)))
    except OSError:
        return frozenset()


def service_launch(process: Process, peers: Sequence[Process], others: Others) -> Launch:
    """Return how a server is started on a host: from the jars of this machine, which a container mounts."""
    del others  # it needs no other service
    place, jars = process.place, find_jars()
    library = jars[0].parent
    inside = Path(place.library or library)
    made = launch(
        java=place.java or str(find_java().executable),
        jars=[str(inside / jar.name) for jar in jars],
        conf_dir=place.conf_dir,
        data_dir=place.data_dir,
        address=place.client,
        ensemble=[_member(each) for each in peers] if len(peers) > 1 else (),
        durable=process.loses_power,
    )
    return replace(made, library=library)


def _member(process: Process) -> Member:
    (election,) = process.place.further
    return Member(number=process.number, peers=process.place.internal, election_port=election.port)


ZOOKEEPER: Final = Service(
    name="zookeeper",
    launch=service_launch,
    mode=mode_of,
    several=3,
    peer_listeners=2,
    shared=True,
    holds_metadata=True,
    prepared=lambda process: {MY_ID: f"{process.number}\n"},
    sessions=sessions_at,
)
