"""Fixtures for the tests of hosts: a private state folder, and a small program that serves as a node."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from harness import limits
from harness.cleanup.process import until
from harness.hosts import HOSTS
from harness.hosts.base import Host
from harness.hosts.ssh import SshHost
from harness.launch import Launch
from harness.model import FencepostError
from tests.hosts.sshds import Sshd, root_server, servers, write_list

# Runs each action in turn and prints it, then waits for SIGTERM. Paths are relative to the data directory.
NODE = """
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
os.chdir(sys.argv[1])
for word in sys.argv[2:]:
    verb, path, *rest = word.split(":")
    if verb == "write":
        with open(path, "ab", 0) as file:
            file.write(rest[0].encode() * int(rest[1]))
    elif verb == "sync":
        with open(path, "ab", 0) as file:
            os.fsync(file.fileno())
    elif verb == "cut":
        os.truncate(path, int(rest[0]))
    elif verb == "rename":
        os.rename(path, rest[0])
    print("did", word, flush=True)
print("ready", flush=True)
while True:
    signal.pause()
"""

MakeHostFixture = Callable[..., Host]
MakeSsh = Callable[..., SshHost]


def node(data_dir: str, *actions: str, python: str = sys.executable) -> Launch:
    """Return a launch of the program NODE."""
    return Launch(argv=(python, "-c", NODE, data_dir, *actions))


def start_ready(host: Host, name: str, launch: Launch) -> None:
    """Start a node and wait until it has done its actions."""
    before = host.log_text(name).count("ready")
    host.start(name, launch)
    assert until(lambda: host.log_text(name).count("ready") > before, limits.PROCESS_START_S_MAX), host.log_text(
        name
    )


def launched(host: SshHost, name: str, *actions: str, disk: bool = True) -> Launch:
    """Add a node, start it, and return its launch when it has done its actions."""
    place = host.add_node(name, disk=disk)
    launch = node(place.data_dir, *actions, python=place.python)
    start_ready(host, name, launch)
    return launch


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test its own folder for ledgers, claims and templates."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def make_host(tmp_path: Path) -> Iterator[MakeHostFixture]:
    """Open hosts by kind and tier, and close them all after the test."""
    made: list[Host] = []

    def make(kind: str = "local", tier: str | None = "watermark", **wishes: Callable[[str], None]) -> Host:
        host = HOSTS[kind](tmp_path / f"run{len(made)}", power_tier=tier, **wishes)
        made.append(host)
        host.open()
        return host

    yield make
    for host in made:
        host.close()


@pytest.fixture(scope="package")
def machines() -> Iterator[list[Sshd]]:
    """Start three SSH servers on loopback; a test that kills one starts it again."""
    with servers(3) as made:
        yield made


@pytest.fixture(scope="package")
def root_machine() -> Iterator[Sshd]:
    """Start an SSH server whose user is root."""
    with root_server() as made:
        yield made


@pytest.fixture
def make_ssh(tmp_path: Path, machines: list[Sshd]) -> Iterator[MakeSsh]:
    """Open hosts on the machines, or others, and close them all after the test."""
    made: list[SshHost] = []

    def make(
        on: list[Sshd] | None = None, *top: str, tier: str | None = "watermark", **wishes: Callable[[str], None]
    ) -> SshHost:
        file = write_list(tmp_path / f"hosts{len(made)}.toml", on or machines, *top)
        host = SshHost(tmp_path / f"run{len(made)}", power_tier=tier, machines=file, **wishes)
        made.append(host)
        host.open()
        return host

    yield make
    for host in made:
        with suppress(FencepostError):  # a machine that the test has killed
            host.close()
