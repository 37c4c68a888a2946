"""A server's file: a listener for each sender, what the harness owns, and what Fluss has nothing for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.launch import Address, Launch, Place
from harness.model import UsageError
from harness.target.services import OfRun, Process
from harness.target.settings import Settings
from harness.target.target import NodeSpec
from targets.fluss import coordinator, launching
from targets.fluss.config import OWNED, settings_of
from targets.fluss.target import TARGET

JARS = (Path("/cache/a.jar"), Path("/cache/b/b.jar"))
NAMES = ("A", "B", "coordinator-1")
LISTENS = {name: Address(host="127.0.0.1", port=1000 + at) for at, name in enumerate(NAMES)}
CLIENTS = {name: Address(host="127.0.0.1", port=2000 + at) for at, name in enumerate(NAMES)}
# Where one reaches another, (who dials, who is dialled), by the fabric.
LINKS = {
    (src, dst): Address(host="127.0.0.1", port=3000 + 10 * NAMES.index(src) + NAMES.index(dst))
    for src in NAMES
    for dst in NAMES
    if src != dst
}
ZOOKEEPER = (Address(host="127.0.0.1", port=4001), Address(host="127.0.0.1", port=4002))
FOLDER = Path("/results/suite/run")


@pytest.fixture(autouse=True)
def _library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have jars without bytes, and no look for Java."""
    monkeypatch.setattr(launching, "class_path", lambda name, folder: JARS)
    monkeypatch.setattr(launching, "library", lambda: Path("/cache"))


def place_of(name: str, library: str = "") -> Place:
    return Place(
        data_dir=f"/data/{name}",
        conf_dir=f"/conf/{name}",
        python="python",
        client=CLIENTS[name],
        internal=LISTENS[name],
        client_outside=Address(host="10.0.0.1", port=CLIENTS[name].port),
        internal_outside=LISTENS[name],
        java="/usr/java",
        library=library,
    )


def reached(name: str) -> dict[str, Address]:
    return {src: address for (src, dst), address in LINKS.items() if dst == name}


def node(name: str, rules: Mapping[str, str], library: str = "", **settings: Any) -> Launch:
    spec = NodeSpec(
        name=name,
        broker_id=NAMES.index(name) + 7,
        place=place_of(name, library),
        advertised_internal=LISTENS[name],
        services=ZOOKEEPER,
        folder=FOLDER,
        collector=LISTENS[name],
        reached=reached(name),
        settings=Settings(**settings),
    )
    return TARGET.launch(spec, "0.9.1", rules)


def of_coordinator(rules: Mapping[str, str], library: str = "") -> Launch:
    run = OfRun(folder=FOLDER, protocol="0.9.1", rules=rules, metadata=ZOOKEEPER, reached=reached("coordinator-1"))
    process = Process(name="coordinator-1", number=1, place=place_of("coordinator-1", library), run=run)
    return coordinator.launch(process, (process,), {})


def launched(name: str, rules: Mapping[str, str] | None = None) -> Launch:
    return of_coordinator(rules or {}) if name == "coordinator-1" else node(name, rules or {})


def file_of(launch: Launch) -> dict[str, str]:
    lines = launch.files["server.yaml"].splitlines()
    found = dict(line.split(": ", 1) for line in lines)
    assert len(lines) == len(found)
    return found


def listeners(file: Mapping[str, str], key: str) -> dict[str, str]:
    """Return the address of each listener."""
    told = file[key].split(", ")
    found = dict(each.split("://") for each in told)
    assert len(told) == len(found)
    return found


# --- listeners -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
def test_every_other_server_has_a_listener_at_the_link_that_it_alone_is_given(name: str) -> None:
    file = file_of(launched(name))
    for other in NAMES:
        if other == name:
            continue
        # The other one dials the listener that its own file names.
        dialled = file_of(launched(other))["internal.listener.name"]
        assert str(LINKS[other, name]) == listeners(file, "advertised.listeners")[dialled]


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_a_listener_that_is_bound_and_clients_to_theirs(name: str) -> None:
    file = file_of(launched(name))
    bound, told = listeners(file, "bind.listeners"), listeners(file, "advertised.listeners")
    # Fluss takes no file whose listeners are not bound, or have other names.
    assert {*told} == {*bound}
    assert (str(LISTENS[name]), str(CLIENTS[name])) == (bound[file["internal.listener.name"]], bound["CLIENT"])
    assert f"10.0.0.1:{CLIENTS[name].port}" == told["CLIENT"]
    rest = {
        key: address for key, address in bound.items() if key not in (file["internal.listener.name"], "CLIENT")
    }
    assert ({"127.0.0.1:0"}, len(NAMES) - 1) == (set(rest.values()), len(rest))
    assert all(key.replace("_", "").isalnum() and key.isupper() for key in bound)


def test_servers_of_one_run_are_one_cluster_on_disks_of_their_own() -> None:
    files = {name: file_of(launched(name)) for name in NAMES}
    assert {"/suite-run"} == {file["zookeeper.path.root"] for file in files.values()}
    assert {"127.0.0.1:4001,127.0.0.1:4002"} == {file["zookeeper.address"] for file in files.values()}
    assert [f"/data/{name}" for name in NAMES] == [file["data.dir"] for file in files.values()]
    assert [f"/data/{name}/remote" for name in NAMES] == [file["remote.data.dir"] for file in files.values()]
    assert ["7", "8", None] == [file.get("tablet-server.id") for file in files.values()]


# --- rules and settings ----------------------------------------------------------------------------------------
def test_rule_is_a_setting_of_every_server_over_the_harness_s_own() -> None:
    change = "log.replica.max-lag-time=7s"
    rules = TARGET.rules("0.9.1", (change, "log.flush.interval-messages=1"))
    assert {"log.replica.max-lag-time": "7s", "log.flush.interval-messages": "1"} == rules
    for name in NAMES:
        assert "60s" == file_of(launched(name))["log.replica.max-lag-time"]
        file = file_of(launched(name, rules))
        assert ("7s", "1") == (file["log.replica.max-lag-time"], file["log.flush.interval-messages"])


@pytest.mark.parametrize("name", sorted(OWNED))
def test_setting_that_the_harness_owns_is_refused(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        TARGET.rules("0.9.1", (f"{name}=x",))
    said = f"rule '{name}=x': the harness sets {name} itself; expected another setting"
    assert said == str(raised.value)


def test_what_the_harness_sets_of_its_servers_alone_is_owned() -> None:
    one, other = file_of(launched("A")), file_of(launched("B"))
    apart = {key for key in one if one[key] != other[key]}
    assert apart < OWNED
    assert OWNED <= {*one}


@pytest.mark.parametrize("change", ["", "=", "=x", "a.b", "a.b=", "a.b=x\nc.d=y", "a\n=x", "a: b=c"])
def test_what_is_no_setting_is_refused(change: str) -> None:
    with pytest.raises(UsageError) as raised:
        TARGET.rules("0.9.1", (change,))
    assert f"rule {change!r}: expected a server's setting, such as default.replication.factor=3" == str(
        raised.value
    )


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"min_isr": 2}, {"log.replica.min-in-sync-replicas-number": "2"}),
        ({"replica_lag_ms_max": 300}, {"log.replica.max-lag-time": "300ms"}),
        ({"flush_messages": 1}, {"log.flush.interval-messages": "1"}),
        ({"segment_bytes": 4096}, {"log.segment.file-size": "4096b"}),
    ],
)
def test_setting_of_a_scenario_is_told_in_fluss_s_words(asked: dict[str, Any], told: dict[str, str]) -> None:
    file = file_of(node("A", {}, **asked))
    assert told == {key: file[key] for key in told}
    assert {**settings_of(Settings()), **told} == settings_of(Settings(**asked))


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"unclean_election": True}, "unclean_election=yes"),
        ({"retention_ms": 5}, "retention"),
        ({"retention_bytes": 5}, "retention"),
        ({"compact": True}, "compact=yes"),
        ({"keys": 3}, "keys"),
        ({"keys": 3, "tombstones": ("m1",)}, "keys"),
        ({"tombstones": ("m1",)}, "tombstones"),
    ],
)
def test_setting_that_fluss_lacks_is_refused_in_one_line(asked: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError) as raised:
        node("A", {}, **asked)
    said = f"Apache Fluss: setting {what}: it has nothing for it; expected none"
    assert said == str(raised.value)


# --- command lines ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "main"),
    [
        ("A", "org.apache.fluss.server.tablet.TabletServer"),
        ("coordinator-1", "org.apache.fluss.server.coordinator"),
    ],
)
def test_command_starts_the_server_with_the_files_of_its_place(name: str, main: str) -> None:
    launch = launched(name)
    argv = launch.argv
    assert ("/usr/java", ("--configDir", f"/conf/{name}")) == (argv[0], argv[-2:])
    assert argv[-3].startswith(main)
    assert "/cache/a.jar:/cache/b/b.jar" == argv[argv.index("-cp") + 1]
    assert f"-Dlog4j.configuration=file:/conf/{name}/log4j.properties" in argv
    assert {"server.yaml", "log4j.properties"} == {*launch.files}
    assert Path("/cache") == launch.library


def test_host_with_a_copy_of_the_library_has_the_jars_there() -> None:
    for launch in (node("A", {}, "/there"), of_coordinator({}, "/there")):
        assert "/there/a.jar:/there/b/b.jar" == launch.argv[launch.argv.index("-cp") + 1]
