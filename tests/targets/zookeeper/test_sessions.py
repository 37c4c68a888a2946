"""Closing another client's session: the password as Java generates it, the server's dump, and a real session."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient, KazooState

from harness import limits
from harness.hosts.local import LocalHost
from harness.launch import Address
from harness.model import PreconditionError
from targets.zookeeper.sessions import close_session, owner_of, owners_in, password_of
from tests.services import zookeeper_on

DUMP = """SessionTracker dump:
Session Sets (1)/(1):
1 expire at Sat Nov 21 15:26:24 UTC 2026:
\t0x1000017dfb00000
ephemeral nodes dump:
Sessions with Ephemerals (2):
0x1000017dfb00000:
\t/run-1/brokers/ids/7
\t/run-1/controller
0xf00001:
\t/other
Connections dump:
Connections Sets (1)/(1):
0x3:
\t/not/an/ephemeral
"""


@pytest.mark.parametrize(
    ("session_id", "password"),
    [
        (0x1000017DFB00000, "a2ee2f738758bb6150c7c244a80563f9"),
        (0xF000017DFB000001, "05c1a52b3703532a15e4d2ad0c2ccde6"),
        (0, "f22acd4a97e69d6d20a49bb638eadb38"),
    ],
)
def test_password_is_the_one_that_java_draws(session_id: int, password: str) -> None:
    """Source: java.util.Random.nextBytes of a JDK 25, seeded with id ^ 0xB3415C00."""
    assert password == password_of(session_id).hex()


def test_owners_are_read_from_the_ephemerals_of_a_dump_alone() -> None:
    assert owners_in(DUMP) == {
        "/run-1/brokers/ids/7": 0x1000017DFB00000,
        "/run-1/controller": 0x1000017DFB00000,
        "/other": 0xF00001,
    }
    assert owners_in("") == {}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Start a real server for the tests of this module."""
    folder: Path = tmp_path_factory.mktemp("zookeeper")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        host = LocalHost(folder / "run", power_tier="watermark")
        try:
            host.open()
            yield zookeeper_on(host)
        finally:
            host.close()


@pytest.fixture
def victim(address: Address) -> Iterator[KazooClient]:
    """Start a client whose session has a timeout of one minute."""
    maker = KazooClient(str(address))
    maker.start()
    maker.ensure_path("/chroot")
    maker.stop()
    maker.close()
    client = KazooClient(f"{address}/chroot", timeout=60)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.mark.slow
def test_closed_session_loses_its_ephemerals_and_its_client_learns_of_it(
    address: Address, victim: KazooClient
) -> None:
    lost = threading.Event()
    victim.add_listener(lambda state: lost.set() if state == KazooState.LOST else None)
    victim.create("/id", b"", ephemeral=True)
    owner = owner_of(address, "/chroot/id")
    assert victim.client_id[0] == owner
    assert owner is not None
    took_ms = close_session(address, owner)
    assert owner_of(address, "/chroot/id") is None
    assert took_ms < limits.CONDITION_WAIT_S_MAX * 1000
    assert lost.wait(limits.CONDITION_WAIT_S_MAX) is True


@pytest.mark.slow
def test_other_sessions_keep_their_ephemerals(address: Address, victim: KazooClient) -> None:
    other = KazooClient(str(address), timeout=60)
    other.start()
    other.create("/other", b"", ephemeral=True)
    victim.create("/id", b"", ephemeral=True)
    owner = owner_of(address, "/chroot/id")
    assert owner is not None
    close_session(address, owner)
    assert other.client_id[0] == owner_of(address, "/other")
    other.stop()
    other.close()


@pytest.mark.slow
def test_persistent_node_has_no_owner(address: Address, victim: KazooClient) -> None:
    victim.create("/persistent", b"")
    assert owner_of(address, "/chroot/persistent") is None
    assert owner_of(address, "/id") is None


@pytest.mark.slow
def test_session_that_the_server_does_not_know_did_not_bite(address: Address) -> None:
    with pytest.raises(PreconditionError, match="does not know it"):
        close_session(address, 0x123456789)


@pytest.mark.slow
def test_wrong_password_did_not_bite(
    address: Address, victim: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim.create("/guarded", b"", ephemeral=True)
    monkeypatch.setattr("targets.zookeeper.sessions.password_of", lambda _session_id: b"x" * 16)
    owner = owner_of(address, "/chroot/guarded")
    assert owner is not None
    with pytest.raises(PreconditionError, match="does not know it"):
        close_session(address, owner)
    assert owner == owner_of(address, "/chroot/guarded")
