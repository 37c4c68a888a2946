"""A process has ended when its last thread has ended: until then it keeps its files and ports."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from harness import limits
from harness.cleanup.process import Identity, end, ended_within, identity_of, is_alive, is_stopped, until

# The first thread ends while another keeps the listening socket open, as in a JVM that is dying of a SIGKILL.
HEADLESS = """
import ctypes, platform, socket, threading, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


@pytest.fixture
def headless() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a process whose first thread is a zombie; yield it and the port on which it listens."""
    with subprocess.Popen([sys.executable, "-c", HEADLESS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        assert until(lambda: state_of(process.pid) == "Z", limits.PROCESS_START_S_MAX)
        yield process, port
        process.kill()


def state_of(pid: int) -> str:
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def known(pid: int) -> Identity:
    found = identity_of(pid)
    assert found is not None
    return found


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_process_whose_first_thread_alone_has_ended_is_alive(headless: tuple[subprocess.Popen[str], int]) -> None:
    process, port = headless
    identity = known(process.pid)
    assert (True, True, False) == (listens(port), is_alive(identity), is_stopped(identity))
    assert not ended_within(identity, 0.01)


def test_process_is_ended_once_nothing_of_it_listens(headless: tuple[subprocess.Popen[str], int]) -> None:
    process, port = headless
    identity = known(process.pid)
    assert end(identity)
    assert (False, False) == (listens(port), is_alive(identity))


def test_zombie_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        identity = known(process.pid)
        assert ended_within(identity, limits.PROCESS_END_S_MAX)
        assert ("Z", False) == (state_of(process.pid), is_alive(identity))


def test_another_process_under_the_same_pid_is_another() -> None:
    now = known(os.getpid())
    assert is_alive(now)
    assert not is_alive(Identity(pid=now.pid, start=now.start + 1, boot=now.boot))
    assert not is_alive(Identity(pid=now.pid, start=now.start, boot="another"))
