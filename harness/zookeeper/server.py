"""
Launch a real ZooKeeper 3.9 server from the jars inside pyspark.

Ticks are short so that sessions can be short too (by default 2 to 20 ticks, here 0.4 to 120 s). Nothing is forced
to disk, because ZooKeeper is not the system under test and its disk loses no power.
"""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness import limits
from harness.launch import Address, Launch, Runtime
from harness.model import UsageError

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

TICK_MS: Final = 200
SESSION_MS_MIN: Final = 400
SESSION_MS_MAX: Final = 120_000

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


def launch(*, java: str, jars: Sequence[str], conf_dir: str, data_dir: str, address: Address) -> Launch:
    """
    Return the command line and the configuration file of a standalone server that listens on the address.

    All paths are as the server sees them.

    Args:
        conf_dir: The folder into which the launch's files will be written.
    """
    return Launch(
        runtime=Runtime.JAVA,
        argv=(
            java,
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            # In KiB; by default the server preallocates 64 MiB for its log.
            "-Dzookeeper.preAllocSize=256",
            "-Dzookeeper.forceSync=no",
            "-Dzookeeper.jmx.log4j.disable=true",
            "-cp",
            ":".join(jars),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            f"{conf_dir}/zoo.cfg",
        ),
        files={
            "zoo.cfg": CONFIGURATION.format(
                data_dir=data_dir,
                port=address.port,
                host=address.host,
                tick_ms=TICK_MS,
                session_ms_min=SESSION_MS_MIN,
                session_ms_max=SESSION_MS_MAX,
            )
        },
    )


def ask(address: Address, word: str, wait_s_max: float = limits.ZOOKEEPER_SOCKET_S_MAX) -> str:
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
    """Return True if the server serves requests: `srvr` then names a mode; `ruok` answers imok too early."""
    try:
        return "Mode: standalone" in ask(address, "srvr", READY_WAIT_S_MAX)
    except OSError:
        return False
