"""The kernel drops, throttles or loses packets of one node alone, says so itself, and lets them pass again."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Final

import pytest

from harness import limits
from harness.cleanup.process import until
from harness.hosts import shaping
from harness.hosts.base import Host
from harness.hosts.packets import why_not
from harness.launch import Address, Launch
from harness.model import PreconditionError
from harness.packets import NEEDS, Packets
from tests.hosts.conftest import MakeHostFixture, start_ready
from tests.hosts.sshds import rules
from tests.needs import needs

pytestmark = [pytest.mark.slow, pytest.mark.root]

# Takes all that it is sent, and sends each connection a byte.
SINK: Final = """
import socket, sys, threading
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
def take(connection):
    connection.sendall(b"!")
    while connection.recv(65536): pass
while True:
    threading.Thread(target=take, args=(server.accept()[0],), daemon=True).start()
"""
SHAPING: Final = (Packets.THROTTLED, Packets.LOSSY)


def sink(host: Host, name: str) -> tuple[Address, Launch]:
    """Start a node that listens; return its address from here, and its launch."""
    place = host.add_node(name, disk=False)
    listens = place.client if host.name == "local" else Address(host="0.0.0.0", port=place.client.port)
    launch = Launch(argv=(place.python, "-c", SINK, listens.host, str(listens.port)))
    start_ready(host, name, launch)
    return place.client_outside, launch


def answers(address: Address) -> bool:
    """Return True if who connects is sent a byte."""
    try:
        with socket.create_connection((address.host, address.port), 0.3) as connection:
            return connection.recv(1) == b"!"
    except OSError:
        return False


@contextmanager
def sending(address: Address) -> Iterator[None]:
    """Send more than a throttled interface passes at once, and do not wait for it to arrive."""
    with closing(socket.create_connection((address.host, address.port), limits.PROCESS_START_S_MAX)) as connection:
        connection.setblocking(False)
        with suppress(BlockingIOError):
            for _ in range(100):
                connection.send(bytes(10_000))
        yield


@pytest.fixture(params=["local", pytest.param("docker", marks=pytest.mark.docker)])
def host(request: pytest.FixtureRequest, make_host: MakeHostFixture) -> Host:
    made: Host = make_host(request.param)
    return made


@needs("iptables")
def test_packets_of_one_nodes_listeners_are_dropped_until_they_pass_again(host: Host) -> None:
    assert "" == host.lacks(NEEDS[Packets.DROPPED])
    (address, launch), (other, _) = sink(host, "A"), sink(host, "B")
    assert (True, True) == (answers(address), answers(other))
    host.impair_packets("A", Packets.DROPPED)
    assert (True, False) == tuple(host.packets_impaired(name, Packets.DROPPED) for name in "AB")
    assert (False, True) == (answers(address), answers(other))
    assert host.packets_met("A", Packets.DROPPED) > 0
    # A restart changes nothing.
    host.kill("A")
    start_ready(host, "A", launch)
    assert not answers(address)
    host.pass_packets("A", Packets.DROPPED)
    assert not host.packets_impaired("A", Packets.DROPPED)
    assert answers(address)
    host.impair_packets("B", Packets.DROPPED)
    assert "FENCEPOST-" in rules()
    host.close()
    assert "FENCEPOST-" not in rules()


@pytest.mark.docker
@needs("tc")
def test_what_is_sent_to_a_throttled_node_waits_also_after_a_restart(make_host: MakeHostFixture) -> None:
    host = make_host("docker")
    assert "" == host.lacks(NEEDS[Packets.THROTTLED])
    address, launch = sink(host, "A")
    other, _ = sink(host, "B")
    host.impair_packets("A", Packets.THROTTLED)
    with pytest.raises(PreconditionError, match="packets of A: made to wait already"):
        host.impair_packets("A", Packets.LOSSY)
    for _ in range(2):
        assert host.packets_impaired("A", Packets.THROTTLED)
        with sending(address), sending(other):
            met = until(lambda: host.packets_met("A", Packets.THROTTLED) > 0, limits.PROCESS_START_S_MAX)
            assert met
        host.kill("A")
        assert 0 == host.packets_met("A", Packets.THROTTLED)
        start_ready(host, "A", launch)
    host.pass_packets("A", Packets.THROTTLED)
    assert not host.packets_impaired("A", Packets.THROTTLED)
    assert answers(address)


@pytest.mark.docker
@needs("tc")
def test_throttle_that_somebody_else_has_undone_stands_no_more(make_host: MakeHostFixture) -> None:
    host = make_host("docker")
    sink(host, "A")
    host.impair_packets("A", Packets.THROTTLED)
    interface = shaping.interface_of(host._node("A").process())  # type: ignore[attr-defined]
    subprocess.run(["tc", "qdisc", "del", "dev", interface, "root"], check=True)
    assert not host.packets_impaired("A", Packets.THROTTLED)
    with pytest.raises(PreconditionError, match=rf"tc qdisc del dev {interface} root: .*; expected it to succeed"):
        host.pass_packets("A", Packets.THROTTLED)


@pytest.mark.docker
@needs("tc")
def test_node_that_is_down_has_no_interface_to_undo(make_host: MakeHostFixture) -> None:
    host = make_host("docker")
    _, launch = sink(host, "A")
    host.impair_packets("A", Packets.THROTTLED)
    host.kill("A")
    host.pass_packets("A", Packets.THROTTLED)
    start_ready(host, "A", launch)
    assert not host.packets_impaired("A", Packets.THROTTLED)


@pytest.mark.docker
@needs("tc")
def test_packets_are_late_and_lost_where_the_kernel_has_netem_and_else_it_is_said(
    make_host: MakeHostFixture,
) -> None:
    host = make_host("docker")
    if reason := why_not(Packets.LOSSY):
        assert f"host docker: {reason}" == host.lacks(NEEDS[Packets.LOSSY])
        assert reason.startswith("tc netem: ")
        assert reason.endswith("; expected a kernel with sch_netem")
        return
    address, _ = sink(host, "A")
    host.impair_packets("A", Packets.LOSSY)
    with sending(address):
        assert until(lambda: host.packets_met("A", Packets.LOSSY) > 0, limits.PROCESS_START_S_MAX)
    host.pass_packets("A", Packets.LOSSY)
    assert not host.packets_impaired("A", Packets.LOSSY)


@pytest.mark.parametrize("how", SHAPING)
def test_nodes_that_share_an_interface_are_refused_what_would_hit_all_of_them(
    make_host: MakeHostFixture, how: Packets
) -> None:
    host = make_host("local")
    sink(host, "A")
    assert host.lacks(NEEDS[how]).startswith("host local: its nodes share the interface of the machine; expected ")
    with pytest.raises(PreconditionError, match=r"packets of A: .*; expected an interface of its own"):
        host.impair_packets("A", how)


@pytest.mark.parametrize("how", SHAPING)
def test_shaping_needs_root_and_its_tools(monkeypatch: pytest.MonkeyPatch, how: Packets) -> None:
    untried = shaping.why_not.__wrapped__
    monkeypatch.setattr(shaping.shutil, "which", lambda tool: None if tool == "tc" else f"/sbin/{tool}")
    assert "no tc on PATH; expected iproute2 and util-linux" == untried(how)
    monkeypatch.setattr(shaping.os, "geteuid", lambda: 1000)
    assert untried(how).startswith("not root; expected root")
