"""
The configuration of Fluss's servers, and their command lines.

Every server has a listener for each server that may call it, named after that one, at an address of the links of
Fencepost: as no frame says who sent it, the address that was called does. `internal.listener.name` decides which
of the others' listeners a server calls.

Source:  Fluss's documentation, "Configuration" and "Deploying Distributed Cluster"; ConfigOptions.java.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.launch import Address
from harness.target.settings import Settings, refuse_policies

FILE: Final = "server.yaml"
LOG4J: Final = "log4j.properties"
COORDINATOR: Final = "org.apache.fluss.server.coordinator.CoordinatorServer"
TABLET: Final = "org.apache.fluss.server.tablet.TabletServer"
CLIENTS: Final = "CLIENT"

LOG4J_TEXT: Final = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss,SSS} %-5p %c{1} %m%n
"""

# Memory and threads for many servers on few cores, and files for small disks: indexes are preallocated.
_SMALL: Final[Mapping[str, str]] = {
    "server.buffer.memory-size": "16mb",
    "server.buffer.per-request-memory-size": "1mb",
    "server.background.threads": "2",
    "server.io-pool.size": "2",
    "coordinator.io-pool.size": "2",
    "netty.server.num-network-threads": "1",
    "netty.server.num-worker-threads": "2",
    "netty.client.num-network-threads": "1",
    "log.index.file-size": "64kb",
}
# A session outlives every run: only the harness ends sessions. Followers never leave the ISR for lag, since holds
# last as long as the machine is busy. Other times are short, to keep a run short; but high watermarks are written
# every five seconds, as by default: what a restart cuts depends on it. Tiering is off: it would delete closed
# segments that it has copied.
_OF_RUNS: Final[Mapping[str, str]] = {
    "zookeeper.client.session-timeout": "90s",
    "zookeeper.client.ensemble-tracker": "false",
    "log.replica.max-lag-time": "60s",
    "log.replica.fetch.wait-max-time": "50ms",
    "log.replica.fetch.backoff-interval": "100ms",
    "remote.log.task-interval-duration": "0s",
    "tablet-server.controlled-shutdown.max-retries": "1",
}
# The harness sets these for each server; rules must not.
OWNED: Final = frozenset(
    {
        "advertised.listeners",
        "bind.listeners",
        "data.dir",
        "internal.listener.name",
        "remote.data.dir",
        "tablet-server.id",
        "zookeeper.address",
        "zookeeper.path.root",
    }
)


def server_yaml(
    name: str,
    *,
    listens: Address,
    clients: Address,
    clients_outside: Address,
    reached: Mapping[str, Address],
    zookeeper: Sequence[Address],
    root: str,
    data_dir: str,
    settings: Settings,
    rules: Mapping[str, str],
    further: Mapping[str, str] | None = None,
) -> str:
    """
    Return a server's file.

    Args:
        name: the server's, as others' listeners are named after it.
        listens: where it listens for other servers; every link leads there.
        clients: where it listens for clients, and `clients_outside` where they reach it.
        reached: other server -> where that one reaches this one.
        root: the path in ZooKeeper of the run's cluster.

    Raises:
        UsageError: Fluss has no such setting.
    """
    own = _listener(name)
    # Only one of the listeners for servers is ever dialled: the links lead there. The others have any port.
    bound = [f"{own}://{listens}", *(f"{_listener(each)}://{listens.host}:0" for each in reached)]
    told = [f"{own}://{listens}", *(f"{_listener(each)}://{address}" for each, address in reached.items())]
    lines = {
        **_SMALL,
        **_OF_RUNS,
        **settings_of(settings),
        **rules,
        **(further or {}),
        "zookeeper.address": ",".join(map(str, zookeeper)),
        "zookeeper.path.root": root,
        "data.dir": data_dir,
        "remote.data.dir": f"{data_dir}/remote",
        "bind.listeners": ", ".join((*bound, f"{CLIENTS}://{clients}")),
        "advertised.listeners": ", ".join((*told, f"{CLIENTS}://{clients_outside}")),
        "internal.listener.name": own,
    }
    return "".join(f"{key}: {value}\n" for key, value in lines.items())


def settings_of(settings: Settings) -> dict[str, str]:
    """
    Translate a scenario's settings to Fluss's.

    Raises:
        UsageError: Fluss has nothing for one of them.
    """
    found = {"log.replica.min-in-sync-replicas-number": str(settings.min_isr)}
    if settings.replica_lag_ms_max is not None:
        found["log.replica.max-lag-time"] = f"{settings.replica_lag_ms_max}ms"
    if settings.flush_messages:
        found["log.flush.interval-messages"] = str(settings.flush_messages)
    if settings.segment_bytes is not None:
        found["log.segment.file-size"] = f"{settings.segment_bytes}b"
    refuse_policies("Apache Fluss", settings)
    return found


def command_line(java: str, class_path: Sequence[Path], main: str, conf_dir: str) -> tuple[str, ...]:
    """Return the command that starts a server with the files in conf_dir."""
    return (
        java,
        "-Xmx192m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:MaxDirectMemorySize=128m",
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
        f"-Dlog4j.configuration=file:{conf_dir}/{LOG4J}",
        "-cp",
        ":".join(map(str, class_path)),
        main,
        "--configDir",
        conf_dir,
    )


def _listener(name: str) -> str:
    """Return the name of the listeners that a server calls: Fluss takes capital letters, digits and `_`."""
    return f"FROM_{name.upper().replace('-', '_')}"
