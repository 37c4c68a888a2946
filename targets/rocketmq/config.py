"""
The configuration of brokers, controllers and name servers, and their command lines.

Each process has a file of hosts of its own (`jdk.net.hosts.file`): what it dials as `b:10911` is an address of the
links of Fencepost that it alone is given. So the address that was called says who called.

Source:  RocketMQ's documentation, "Automatic Failover of Master-slave" (controller mode); BrokerConfig.java,
         MessageStoreConfig.java and ControllerConfig.java, 5.3.3 and 5.5.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.java import find_java
from harness.launch import Address, Launch, Place, Runtime
from harness.target.settings import Settings, refuse_policies
from targets.rocketmq.building import MAIN, class_path
from targets.rocketmq.versions import RELEASE, Release, library

FILE: Final = "settings.conf"
HOSTS: Final = "hosts"
LOGGING: Final = "rmq.logback.xml"
CLUSTER: Final = "fencepost"
GROUP: Final = "brokers"
NAMESRV_MAIN: Final = "org.apache.rocketmq.namesrv.NamesrvStartup"
CONTROLLER_MAIN: Final = "org.apache.rocketmq.controller.ControllerStartup"
FILE_BYTES: Final = 1024 * 1024
# The least for a file of the commit log: some hundred records.
_FILE_BYTES_MIN: Final = 64 * 1024

_LOGGING_TEXT: Final = """\
<configuration>
  <appender name="OUT" class="org.apache.rocketmq.logging.ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5p %c{1} %m%n%ex{5}</pattern></encoder>
  </appender>
  <logger name="RocketmqRemoting" level="WARN"/>
  <root level="INFO"><appender-ref ref="OUT"/></root>
</configuration>
"""
# Files for small disks, and what a run does not need.
_SMALL: Final[Mapping[str, object]] = {
    "mappedFileSizeCommitLog": FILE_BYTES,
    "mappedFileSizeConsumeQueue": 60_000,
    "maxIndexNum": 1000,
    "maxHashSlotNum": 1000,
    "timerWheelEnable": "false",
    "diskMaxUsedSpaceRatio": 98,
    "autoCreateTopicEnable": "false",
    "fetchNameSrvAddrByDnsLookup": "false",
    "fetchNamesrvAddrByAddressServer": "false",
    # After its start a broker spins for so long (TransactionMetricsFlushService.run): by default ten seconds.
    "transactionMetricFlushInterval": 300,
}
# Times are short, to keep a run short; the time-out of heartbeats is the system's own, ten seconds. Slaves never
# leave the SyncStateSet for lag, since holds last as long as the machine is busy.
_TIMES: Final[Mapping[str, object]] = {
    "brokerHeartbeatInterval": 500,
    "syncBrokerMetadataPeriod": 500,
    "syncControllerMetadataPeriod": 500,
    "checkSyncStateSetPeriod": 500,
    "registerNameServerPeriod": 10_000,
    "haSendHeartbeatInterval": 200,
    "haMaxTimeSlaveNotCatchup": 60_000,
    # As long as a client of a step waits, almost: what happens meanwhile may be slow on a busy machine.
    "slaveTimeout": 3800,
    # With ASYNC_FLUSH fewer than four pages are flushed every ten seconds: what a power loss takes would depend on
    # how busy the machine is.
    "flushCommitLogThoroughInterval": 120_000,
}
# The harness sets these for each process; rules must not.
OWNED: Final = frozenset(
    {
        "bindAddress",
        "brokerClusterName",
        "brokerElectionPriority",
        "brokerIP1",
        "brokerIP2",
        "brokerId",
        "brokerName",
        "controllerAddr",
        "enableControllerMode",
        "haListenPort",
        "listenPort",
        "namesrvAddr",
        "storePathCommitLog",
        "storePathRootDir",
    }
)
_SIZES_OF_SETS: Final = frozenset({"inSyncReplicas", "minInSyncReplicas"})
_ADD_OPENS: Final = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.nio", "sun.nio.ch", "java.util", "jdk.internal.misc")
)
_ADD_EXPORTS: Final = tuple(
    f"--add-exports=java.base/{package}=ALL-UNNAMED" for package in ("jdk.internal.ref", "sun.nio.ch")
)


def host_of(name: str) -> str:
    """Return the host by which others know a process."""
    return name.lower()


def broker_conf(
    name: str,
    place: Place,
    *,
    namesrvs: Sequence[Address],
    controllers: Sequence[Address],
    priority: int,
    brokers: int,
    settings: Settings,
    rules: Mapping[str, str],
) -> Mapping[str, object]:
    """
    Return a broker's settings.

    Args:
        priority: of brokers with equal logs the one with the lowest is elected.
        brokers: how many there are.
        namesrvs: host and port of each name server, as the broker names them; `controllers` the same.

    Raises:
        UsageError: RocketMQ has no such setting.
    """
    return {
        **_SMALL,
        **_TIMES,
        **settings_of(settings, rules, brokers),
        "brokerClusterName": CLUSTER,
        "brokerName": GROUP,
        "brokerId": -1,
        "brokerElectionPriority": priority,
        "brokerIP1": host_of(name),
        "brokerIP2": host_of(name),
        "listenPort": place.client.port,
        "haListenPort": place.internal.port,
        "bindAddress": place.client.host,
        "namesrvAddr": ";".join(map(str, namesrvs)),
        "enableControllerMode": "true",
        "controllerAddr": ";".join(map(str, controllers)),
        "storePathRootDir": place.data_dir,
        "storePathCommitLog": f"{place.data_dir}/commitlog",
    }


def settings_of(settings: Settings, rules: Mapping[str, str], brokers: int) -> dict[str, object]:
    """
    Translate a scenario's settings, and the version's own.

    Some change nothing and are no error: the version says how many must be in sync, all if there are fewer, and
    what is flushed.

    Raises:
        UsageError: RocketMQ has nothing for one of them.
    """
    found: dict[str, object] = {name: value for name, value in rules.items() if name != RELEASE}
    for name in _SIZES_OF_SETS & found.keys():
        found[name] = min(int(rules[name]), brokers) if rules[name].isdecimal() else rules[name]
    if settings.replica_lag_ms_max is not None:
        found["haMaxTimeSlaveNotCatchup"] = settings.replica_lag_ms_max
    if settings.segment_bytes is not None:
        found["mappedFileSizeCommitLog"] = max(settings.segment_bytes, _FILE_BYTES_MIN)
    refuse_policies("Apache RocketMQ", settings)
    return found


def launched(
    main: str, place: Place, release: Release, *, conf: Mapping[str, object], hosts: Mapping[str, str], heap: str
) -> Launch:
    """
    Return how to start a process.

    Args:
        hosts: process's name -> the address to which this one resolves it.

    Raises:
        UsageError: a jar is missing, or there is no Java.
    """
    resolved = "".join(f"{address} {host_of(name)}\n" for name, address in hosts.items())
    jars = (Path(place.conf_dir), *class_path(release))
    return Launch(
        argv=(
            place.java or str(find_java().executable),
            f"-Xmx{heap}",
            "-Xms32m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:MaxDirectMemorySize=128m",
            # A server makes a certificate at its start, of which nothing here is used: two seconds.
            "-Dtls.server.mode=disabled",
            *_ADD_OPENS,
            *_ADD_EXPORTS,
            f"-Duser.home={place.conf_dir}",
            f"-Drocketmq.home.dir={place.conf_dir}",
            f"-Djdk.net.hosts.file={place.conf_dir}/{HOSTS}",
            f"-Dfencepost.ha.address={place.internal.host}",
            "-cp",
            ":".join(map(str, jars)),
            main,
            "-c",
            f"{place.conf_dir}/{FILE}",
        ),
        files={
            FILE: "".join(f"{name}={value}\n" for name, value in conf.items()),
            HOSTS: f"{place.client.host} localhost\n{resolved}",
            LOGGING: _LOGGING_TEXT,
        },
        runtime=Runtime.JAVA,
        library=library(),
    )


def broker_launch(place: Place, release: Release, conf: Mapping[str, object], hosts: Mapping[str, str]) -> Launch:
    """Return how to start a broker; see `launched`."""
    return launched(MAIN, place, release, conf=conf, hosts=hosts, heap="128m")
