"""A server's file: links that are the given ones alone, a tag for each set of nodes, and what streams lack."""

from __future__ import annotations

import re
import subprocess
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pytest

from harness.launch import Address
from harness.model import UsageError
from harness.target.settings import MessageFormat, Settings
from targets.nats.config import conf, tag_of, tags_of
from targets.nats.versions import ALWAYS, DEFAULT_SYNC, RELEASES, SYNC, VERSIONS, library, program_of
from tests.needs import needs

LISTENS = Address(host="127.0.0.1", port=2001)
ROUTES = Address(host="127.0.0.1", port=2002)
PEERS = {"B": Address(host="127.0.0.1", port=3001), "C": Address(host="127.0.0.1", port=3002)}


def file_of(
    name: str = "A",
    *,
    peers: dict[str, Address] | None = None,
    data_dir: str = "/data/A",
    rules: dict[str, str] | None = None,
    **settings: Any,
) -> str:
    return conf(
        name,
        listens=LISTENS,
        routes=ROUTES,
        peers=PEERS if peers is None else peers,
        data_dir=data_dir,
        settings=Settings(**settings),
        rules=rules or {},
    )


def test_file_of_one_of_three_servers_is_this() -> None:
    assert file_of() == (
        """\
server_name: "A"
server_tags: [ "on-A", "on-A-B", "on-A-C", "on-A-B-C" ]
listen: "127.0.0.1:2001"
debug: true
logtime: true
max_payload: 1MB
accounts { $SYS { users: [ { user: sys, password: sys } ] } }
jetstream {
  store_dir: "/data/A"
  sync_interval: "2m"
  max_memory_store: 64M
  max_file_store: 4G
}
cluster {
  name: fencepost
  listen: "127.0.0.1:2002"
  pool_size: -1
  compression: off
  no_advertise: true
  advertise: "127.0.0.1:9"
  routes: [ nats-route://127.0.0.1:3001, nats-route://127.0.0.1:3002 ]
}
"""
    )


@pytest.mark.parametrize("names", ["", "B", "CB", "BCDE"])
def test_server_dials_the_links_that_it_is_given_and_nothing_else(names: str) -> None:
    peers = {name: Address(host="127.0.0.1", port=3000 + ord(name)) for name in names}
    file = file_of(peers=peers)
    assert [str(address) for address in peers.values()] == re.findall(r"nats-route://([0-9.:]+)", file)
    # Whatever else is an address is its own, or the one where nobody listens.
    rest = {*re.findall(r"\d+\.\d+\.\d+\.\d+:\d+", file)} - {*map(str, peers.values())}
    assert {str(LISTENS), str(ROUTES), "127.0.0.1:9"} == rest


@pytest.mark.parametrize("version", VERSIONS)
def test_flushes_are_as_far_apart_as_the_version_says(version: str) -> None:
    expected = ALWAYS if version.endswith("-always") else DEFAULT_SYNC
    assert f'sync_interval: "{expected}"' in file_of(rules=dict(VERSIONS[version]))
    assert f'sync_interval: "{DEFAULT_SYNC}"' in file_of()
    assert 'sync_interval: "7s"' in file_of(rules={SYNC: "7s"})


# --- tags ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("names", ["A", "AB", "ABC", "ABCD", "ABCDE", "ABCDEF"])
def test_nodes_with_the_tag_of_a_set_are_exactly_the_set(names: str) -> None:
    tags = {name: [*tags_of(name, names)] for name in names}
    assert all(len(each) == len({*each}) for each in tags.values())
    for wanted in chain.from_iterable(combinations(names, size + 1) for size in range(len(names))):
        assert {*wanted} == {name for name in names if tag_of(wanted) in tags[name]}


def test_tag_does_not_depend_on_the_order_of_the_nodes() -> None:
    assert tag_of("CAB") == tag_of(("A", "B", "C")) == "on-A-B-C"
    assert {*tags_of("B", "CAB")} == {*tags_of("B", "ABC")}


def test_of_many_nodes_only_the_set_of_all_has_a_tag() -> None:
    assert ["on-A-B-C-D-E-F-G"] == [*tags_of("D", "GFEDCBA")]


def test_server_has_the_tags_of_the_sets_that_it_is_in() -> None:
    (told,) = re.findall(r"server_tags: \[ (.*) \]", file_of("B", peers={"A": LISTENS, "C": ROUTES}))
    assert [f'"{tag}"' for tag in tags_of("B", "ABC")] == told.split(", ")


# --- settings --------------------------------------------------------------------------------------------------
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
def test_setting_for_which_streams_have_nothing_is_refused_in_one_line(asked: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError) as raised:
        file_of(**asked)
    said = f"NATS JetStream: setting {what}: it has nothing for it; expected none"
    assert said == str(raised.value)


@pytest.mark.parametrize(
    "asked",
    [
        {"min_isr": 2},
        {"flush_messages": 1},
        {"segment_bytes": 4096},
        {"replica_lag_ms_max": 300},
        {"message_format": MessageFormat.WITHOUT_EPOCHS},
        {"heal_within_s": 2.5},
    ],
)
def test_setting_of_an_in_sync_set_changes_nothing(asked: dict[str, Any]) -> None:
    assert file_of() == file_of(**asked)


# --- the real server -------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "version"),
    [
        pytest.param(RELEASES[rules["release"]], version, marks=needs(f"nats-{rules['release']}"), id=version)
        for version, rules in VERSIONS.items()
    ],
)
@pytest.mark.parametrize("names", ["", "BC", "BCDEF"])
def test_server_takes_the_file(release: Any, version: str, names: str, tmp_path: Path) -> None:
    peers = {name: Address(host="127.0.0.1", port=3000 + ord(name)) for name in names}
    file = tmp_path / "nats.conf"
    file.write_text(file_of(peers=peers, data_dir=str(tmp_path / "data"), rules=dict(VERSIONS[version])))
    argv = [str(program_of(release, library())), "-c", str(file), "-t"]
    tested = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (0, True) == (tested.returncode, f"{file} is valid" in tested.stderr), tested.stderr
