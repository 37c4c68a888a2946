"""What a process is started with: addresses on loopback alone, hosts of its own, and what RocketMQ lacks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.launch import Address, Launch, Place, Runtime
from harness.model import UsageError
from harness.target.services import LEADER, OfRun, Process
from harness.target.settings import MessageFormat, Settings
from harness.target.target import NodeSpec
from targets.rocketmq import config, services
from targets.rocketmq.building import MAIN
from targets.rocketmq.config import CONTROLLER_MAIN, NAMESRV_MAIN, OWNED
from targets.rocketmq.services import SERVICES
from targets.rocketmq.target import TARGET
from targets.rocketmq.versions import RELEASES, VERSIONS
from tests.targets.rocketmq.server import Serve, answers, hangs_up, nobody, says, server

JARS = (Path("/cache/classes"), Path("/cache/a.jar"))
NODES = ("A", "B", "C")
BESIDE = ("namesrv-1", "controller-1", "controller-2", "controller-3")
ENDS = (*NODES, *BESIDE)
FOLDER = Path("/results/suite/run")


@pytest.fixture(autouse=True)
def _library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have jars without bytes, and no look for Java."""
    monkeypatch.setattr(config, "class_path", lambda release: JARS)
    monkeypatch.setattr(config, "library", lambda: Path("/cache"))


def listens(name: str, kind: int) -> Address:
    return Address(host="127.0.0.1", port=1000 + 10 * ENDS.index(name) + kind)


def reached_at(src: str, dst: str) -> Address:
    """Return where one end reaches another, as the links have it."""
    return Address(host=f"127.1.{ENDS.index(src)}.{ENDS.index(dst)}", port=listens(dst, 0).port)


def place_of(name: str) -> Place:
    """Return where a process is; a service's listens on one address."""
    return Place(
        data_dir=f"/data/{name}",
        conf_dir=f"/conf/{name}",
        python="python",
        client=listens(name, 0),
        internal=listens(name, 1 if name in NODES else 0),
        client_outside=Address(host="10.0.0.1", port=1),
        internal_outside=Address(host="10.0.0.1", port=2),
        java="/usr/java",
    )


def broker(
    name: str = "A",
    version: str = "5.5.0",
    changes: tuple[str, ...] = (),
    beside: tuple[str, ...] = NODES,
    **settings: Any,
) -> Launch:
    spec = NodeSpec(
        name=name,
        broker_id=NODES.index(name) + 7,
        place=place_of(name),
        advertised_internal=listens(name, 1),
        services=(),
        folder=FOLDER,
        collector=Address(host="10.0.0.1", port=3),
        peers={other: reached_at(name, other) for other in (*beside, *BESIDE) if other != name},
        settings=Settings(**settings),
    )
    return TARGET.launch(spec, version, TARGET.rules(version, changes))


def beside(name: str, version: str = "5.5.0") -> Launch:
    """Return how a service's process is started."""
    kind = name.rpartition("-")[0]
    (service,) = [each for each in SERVICES if each.name == kind]
    peers = [each for each in BESIDE if each.startswith(kind)]
    hosts = {node: reached_at(name, node).host for node in NODES}
    run = OfRun(folder=FOLDER, protocol=version, rules={}, hosts=hosts)
    made = [
        Process(name=each, number=number, place=place_of(each), run=run)
        for number, each in enumerate(peers, start=1)
    ]
    return service.launch(made[peers.index(name)], made, {})


def launched(name: str, version: str = "5.5.0") -> Launch:
    return broker(name, version) if name in NODES else beside(name, version)


def conf_of(launch: Launch) -> dict[str, str]:
    lines = launch.files["settings.conf"].splitlines()
    found = dict(line.split("=", 1) for line in lines)
    assert len(lines) == len(found)
    return found


def hosts_of(launch: Launch) -> dict[str, str]:
    """Return the address of each host that a process resolves."""
    found = [line.split(" ") for line in launch.files["hosts"].splitlines()]
    assert all(2 == len(line) for line in found)
    hosts = {host: address for address, host in found}
    assert len(found) == len(hosts)
    return hosts


# --- addresses -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ENDS)
def test_process_listens_on_loopback_alone(name: str) -> None:
    launch = launched(name)
    conf = conf_of(launch)
    assert "127.0.0.1" == conf["bindAddress"]
    texts = [*launch.files.values(), *launch.argv]
    assert not [text for text in texts if "0.0.0.0" in text or "10.0.0.1" in text]
    addresses = {found for text in texts for found in re.findall(r"\d+\.\d+\.\d+\.\d+", text)}
    assert addresses and all(address.startswith("127.") for address in addresses)


def test_broker_says_its_host_and_listens_on_its_own_ports() -> None:
    conf = conf_of(broker("B"))
    assert ("b", "b", "1010", "1011", "-1") == tuple(
        conf[name] for name in ("brokerIP1", "brokerIP2", "listenPort", "haListenPort", "brokerId")
    )
    assert "-Dfencepost.ha.address=127.0.0.1" in broker("B").argv
    assert ("/data/B", "/data/B/commitlog", "true") == tuple(
        conf[name] for name in ("storePathRootDir", "storePathCommitLog", "enableControllerMode")
    )


def test_broker_names_services_by_their_hosts_in_the_order_of_their_names() -> None:
    conf = conf_of(broker("A"))
    assert "namesrv-1:1030" == conf["namesrvAddr"]
    assert "controller-1:1040;controller-2:1050;controller-3:1060" == conf["controllerAddr"]


def test_brokers_of_a_run_differ_in_their_priority_and_are_one_group() -> None:
    confs = {name: conf_of(broker(name)) for name in NODES}
    assert {"A": 1, "B": 2, "C": 3} == {name: int(conf["brokerElectionPriority"]) for name, conf in confs.items()}
    assert {("fencepost", "brokers")} == {
        (conf["brokerClusterName"], conf["brokerName"]) for conf in confs.values()
    }


@pytest.mark.parametrize("name", NODES)
def test_broker_resolves_each_other_process_to_the_address_that_it_alone_is_given(name: str) -> None:
    expected = {other.lower(): reached_at(name, other).host for other in ENDS if other != name}
    assert {"localhost": "127.0.0.1", name.lower(): "127.0.0.1", **expected} == hosts_of(broker(name))


@pytest.mark.parametrize("name", BESIDE)
def test_service_resolves_each_node_to_the_address_that_it_alone_is_given(name: str) -> None:
    expected = {node.lower(): reached_at(name, node).host for node in NODES}
    peers = dict.fromkeys(BESIDE[1:], "127.0.0.1") if name in BESIDE[1:] else {}
    assert {"localhost": "127.0.0.1", **expected, **peers} == hosts_of(beside(name))


def test_controllers_name_their_peers_and_themselves() -> None:
    for number, name in enumerate(BESIDE[1:], start=1):
        conf = conf_of(beside(name))
        peers = "n1-controller-1:1040;n2-controller-2:1050;n3-controller-3:1060"
        assert (peers, f"n{number}", str(listens(name, 0).port), f"/data/{name}/controller") == tuple(
            conf[each]
            for each in ("controllerDLegerPeers", "controllerDLegerSelfId", "listenPort", "controllerStorePath")
        )
        assert "enableElectUncleanMaster" not in conf


# --- command lines ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "main"), [("A", MAIN), ("namesrv-1", NAMESRV_MAIN), ("controller-2", CONTROLLER_MAIN)]
)
def test_process_is_started_by_its_class_with_its_own_files(name: str, main: str, version: str) -> None:
    launch = launched(name, version)
    assert (main, "-c", f"/conf/{name}/settings.conf") == launch.argv[-3:]
    assert ("/usr/java", Runtime.JAVA, Path("/cache")) == (launch.argv[0], launch.runtime, launch.library)
    # The file that says what is printed comes before the jars, of which some have one too.
    assert f"/conf/{name}:/cache/classes:/cache/a.jar" == launch.argv[launch.argv.index("-cp") + 1]
    for flag in (f"-Djdk.net.hosts.file=/conf/{name}/hosts", f"-Duser.home=/conf/{name}"):
        assert flag in launch.argv
    assert {"settings.conf", "hosts", "rmq.logback.xml"} == {*launch.files}


def test_java_is_looked_for_if_the_place_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        executable = Path("/found/java")

    monkeypatch.setattr(config, "find_java", Found)
    place = Place(**{**{name: getattr(place_of("A"), name) for name in Place.__slots__}, "java": ""})
    launch = config.broker_launch(place, RELEASES["5.5.0"], {}, {})
    assert "/found/java" == launch.argv[0]


# --- settings --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"unclean_election": True}, "unclean_election=yes"),
        ({"retention_ms": 5}, "retention"),
        ({"retention_bytes": 5}, "retention"),
        ({"compact": True}, "compact=yes"),
        ({"keys": 3}, "keys"),
        ({"tombstones": ("m1",)}, "tombstones"),
    ],
)
def test_setting_for_which_rocketmq_has_nothing_is_refused_in_one_line(asked: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError) as raised:
        broker(**asked)
    assert f"Apache RocketMQ: setting {what}: it has nothing for it; expected none" == str(raised.value)


@pytest.mark.parametrize(
    "asked",
    [
        {"min_isr": 2},
        {"flush_messages": 1},
        {"message_format": MessageFormat.WITH_EPOCHS},
        {"heal_within_s": 2.5},
        {"replica_lag_ms_max": None},
        {"segment_bytes": None},
    ],
)
def test_setting_that_changes_nothing_is_taken(asked: dict[str, Any]) -> None:
    assert conf_of(broker()) == conf_of(broker(**asked))


@pytest.mark.parametrize(
    ("asked", "bytes_of_file"), [(None, 2**20), (2**20, 2**20), (100_000, 100_000), (14, 2**16)]
)
def test_files_of_the_log_are_as_large_as_the_scenario_says_and_hold_some_records(
    asked: int | None, bytes_of_file: int
) -> None:
    assert str(bytes_of_file) == conf_of(broker(segment_bytes=asked))["mappedFileSizeCommitLog"]


def test_lag_of_followers_is_the_scenario_s() -> None:
    assert ("60000", "300") == tuple(
        conf_of(each)["haMaxTimeSlaveNotCatchup"] for each in (broker(), broker(replica_lag_ms_max=300))
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_version_s_settings_are_in_the_file_and_its_release_is_not(version: str) -> None:
    conf = conf_of(broker(version=version))
    rules = dict(VERSIONS[version])
    assert rules.pop("release") not in conf.values()
    assert rules == {name: conf.get(name) for name in rules}
    assert "release" not in conf


@pytest.mark.parametrize(("beside", "size"), [((), "1"), (("B",), "2"), (NODES, "2")])
def test_as_many_must_be_in_sync_as_there_are_brokers_at_most(beside: tuple[str, ...], size: str) -> None:
    conf = conf_of(broker(beside=beside))
    assert (size, size) == (conf["inSyncReplicas"], conf["minInSyncReplicas"])


def test_rules_override_settings_of_the_version_and_of_the_harness() -> None:
    changes = ("slaveTimeout=77", "inSyncReplicas=3", "flushDiskType=ASYNC_FLUSH", "maxMessageSize=5")
    conf = conf_of(broker(changes=changes))
    assert {*changes} == {f"{name}={conf[name]}" for name in (each.partition("=")[0] for each in changes)}
    assert "3800" == conf_of(broker())["slaveTimeout"]


@pytest.mark.parametrize("name", sorted(OWNED))
def test_setting_that_the_harness_owns_is_no_rule(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        TARGET.rules("5.5.0", (f"{name}=x",))
    assert f"rule '{name}=x': the harness sets {name} itself; expected another setting" == str(raised.value)


def test_what_differs_between_brokers_is_owned() -> None:
    confs = [conf_of(broker(name)) for name in NODES]
    differs = {name for name in confs[0] if len({conf[name] for conf in confs}) > 1}
    assert differs <= OWNED
    # And what says where others are.
    assert {"bindAddress", "controllerAddr", "namesrvAddr", "brokerName"} <= OWNED


@pytest.mark.parametrize(
    "change",
    ["", "=", "x", "slaveTimeout", "slaveTimeout=", "=3", "a b=3", "a.b=3", " a=3", "a=3\nb=4", "a\n=3", "#a=3"],
)
def test_rule_that_is_no_setting_is_refused_in_one_line(change: str) -> None:
    with pytest.raises(UsageError) as raised:
        TARGET.rules("5.5.0", ("slaveTimeout=3000", change))
    said = f"rule {change!r}: expected a broker's setting, such as slaveTimeout=3000"
    assert said == str(raised.value)


@pytest.mark.parametrize("change", ["release=5.3.3", "release=9.9"])
def test_release_is_no_rule(change: str) -> None:
    with pytest.raises(UsageError, match=r"^rule 'release="):
        TARGET.rules("5.5.0", (change,))


@pytest.mark.parametrize("change", ["a=3\\", "a=3\rlistenPort=1"])
def test_rule_that_would_be_more_than_one_line_is_refused(change: str) -> None:
    """Java reads the file: a backslash at its end joins a line with the next one, and CR ends one."""
    with pytest.raises(UsageError, match=r"^rule '.*': expected a broker's setting"):
        TARGET.rules("5.5.0", (change,))


# --- services --------------------------------------------------------------------------------------------------
@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "ASKED_S", 20.0)


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize(
    ("kind", "serve", "mode"),
    [
        ("namesrv", answers(body=b"x=1"), "active"),
        *(("namesrv", serve, "") for serve in (answers(1), hangs_up, says(b"\xff" * 99))),
        ("controller", answers(fields={"isLeader": "true", "controllerLeaderAddress": "a:1"}), LEADER),
        ("controller", answers(fields={"isLeader": "false", "controllerLeaderAddress": "a:1"}), "follower"),
        *(("controller", serve, "") for serve in (answers(), answers(1), hangs_up, says(b"\xff" * 99))),
    ],
)
def test_service_is_what_its_process_says(kind: str, serve: Serve, mode: str) -> None:
    (service,) = [each for each in SERVICES if each.name == kind]
    with server(serve) as served:
        assert mode == service.mode(served.address)


def test_service_that_is_not_there_serves_nobody() -> None:
    with nobody() as address:
        assert ["", ""] == [service.mode(address) for service in SERVICES]


def test_services_are_linked_and_the_controller_holds_the_metadata() -> None:
    found: Mapping[str, tuple[bool, bool, bool, int]] = {
        each.name: (each.linked, each.shared, each.holds_metadata, each.several) for each in SERVICES
    }
    assert {"namesrv": (True, False, False, 1), "controller": (True, False, True, 3)} == found
