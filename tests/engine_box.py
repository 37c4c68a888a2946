"""
A Docker engine of the tests' own, which may be stopped: with its own processes, mounts, networks and rules.

It cannot see the machine's engine. When the process that made it ends, the kernel ends every process in the box,
and its mounts, networks and chains of iptables with them.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import docker

from harness import limits
from harness.cleanup import engine
from harness.cleanup.process import until
from harness.hosts import image_build
from tests.needs import BOX_NAMESPACES

SOCKET, PIDFILE = "engine.sock", "/run/engine.pid"
CGROUPS = Path("/sys/fs/cgroup")
# The first process there. /run has the engine's sockets and iptables' lock, /dev/shm files that are named by pid.
# Its copies of mounts of runs beside it would keep their disks in use after they were unmounted there.
FIRST = """
import signal, subprocess, sys
for line in reversed(open("/proc/self/mounts").read().splitlines()):
    source, target = line.split()[:2]
    if source.startswith(("/dev/loop", "fencepost")):
        target = target.encode().decode("unicode_escape")
        subprocess.run(["umount", "--lazy", target], check=True)
for place in ("/run", "/dev/shm"):
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
sys.stdin.read()
"""


class EngineBox:
    """
    The box, with an engine that is started and stopped.

    Attributes:
        folder: is the same inside and outside, and has the engine's images and its socket.
        address: the value for DOCKER_HOST.
    """

    def __init__(self, folder: Path, first: int) -> None:
        """Take the id of the box's first process; `start` starts the engine."""
        self.folder = folder
        self.address = f"unix://{folder / SOCKET}"
        self.cgroup = f"fencepost-{secrets.token_hex(6)}"
        self._first = first
        self._engine: subprocess.Popen[bytes] | None = None

    def inside(self, *words: str) -> Sequence[str]:
        """Return the command that runs this one in the box."""
        return ("nsenter", "--target", str(self._first), *BOX_NAMESPACES, "--", *words)

    @contextmanager
    def running(self, *options: str) -> Iterator[None]:
        """Have the engine run during the block, with options of dockerd; the block may stop it."""
        self.start(*options)
        try:
            yield
        finally:
            self.stop(signal.SIGTERM)

    def start(self, *options: str) -> None:
        """Start the engine, with options of dockerd; return when it answers."""
        log = self.folder / "engine.log"
        with log.open("ab") as out:
            self._engine = started = subprocess.Popen(
                self.inside(
                    *("dockerd", "--host", self.address, "--data-root", str(self.folder / "data")),
                    *("--exec-root", "/run/engine", "--pidfile", PIDFILE, "--bridge", "none"),
                    *("--cgroup-parent", f"/{self.cgroup}", *options),
                ),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        answers = until(lambda: started.poll() is not None or self._answers(), limits.PROCESS_START_S_MAX)
        assert answers and started.poll() is None, log.read_text("utf-8")[-2000:]

    def stop(self, number: signal.Signals) -> None:
        """Signal the engine, if it runs; return when it has ended."""
        if self._engine is None or self._engine.poll() is not None:
            return
        pid = Path(f"/proc/{self._first}/root{PIDFILE}").read_text("ascii").strip()
        subprocess.run(self.inside("kill", f"-{number.value}", pid), check=True)
        self._engine.wait()

    @contextmanager
    def client(self) -> Iterator[docker.DockerClient]:
        """Yield a client of the engine."""
        client = docker.DockerClient(base_url=self.address, timeout=engine.ANSWER_S_MAX)
        try:
            yield client
        finally:
            client.close()

    def states(self) -> dict[str, str]:
        """Return each container with what the engine says of it."""
        with self.client() as client:
            return {each.name: each.status for each in client.containers.list(all=True)}

    def networks(self) -> list[str]:
        """Return the networks that somebody made."""
        with self.client() as client:
            return [each.name for each in client.networks.list() if each.name not in ("host", "none")]

    def processes(self) -> list[str]:
        """Return the commands of the processes there, but for the first one, the engine's two and this look."""
        asked = subprocess.run(self.inside("ps", "-eo", "args="), capture_output=True, text=True, check=True)
        known = (sys.executable + " -S -c", "dockerd ", "containerd ", "ps ")
        return [line for line in asked.stdout.splitlines() if not line.startswith(known)]

    def mounts(self, folder: Path) -> list[str]:
        """Return the mounts there that name this folder."""
        lines = Path(f"/proc/{self._first}/mounts").read_text("utf-8").splitlines()
        return [line for line in lines if str(folder) in line]

    def load_images(self) -> None:
        """Copy what a run needs from the machine's engine."""
        outer = engine.connect()
        try:
            made = image_build.ensure(outer)
            base = image_build._known_base(outer, image_build._base_name())
            with self.client() as client:
                for each in (base, outer.images.get(made.broker), outer.images.get(made.java)):
                    client.images.load(each.save(named=True))
        finally:
            outer.close()

    def forget_cgroups(self) -> None:
        """Remove the groups of containers that ended with the box."""
        for top in (*CGROUPS.glob(self.cgroup), *CGROUPS.glob(f"*/{self.cgroup}")):
            for path, _, _ in os.walk(top, topdown=False):
                os.rmdir(path)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                # The library would leak the socket of a connection that fails.
                probe.connect(str(self.folder / SOCKET))
                with self.client() as client:
                    return bool(client.ping())
            except (OSError, *engine.ENGINE_ERRORS):
                return False


@contextmanager
def engine_box() -> Iterator[EngineBox]:
    """Yield a box without an engine; at its end everything in it is gone."""
    # A socket's path has a hundred characters at most, which a test's own folder may exceed.
    with tempfile.TemporaryDirectory(prefix="fencepost-engine-") as folder:
        apart = ("unshare", *BOX_NAMESPACES, "--fork", "--kill-child", "--mount-proc")
        words = (*apart, sys.executable, "-S", "-c", FIRST)
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as outer:
            assert outer.stdout is not None and outer.stdin is not None, "they are pipes"
            assert "ready\n" == outer.stdout.readline()
            children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text("ascii")
            box = EngineBox(Path(folder), int(children))
            try:
                yield box
            finally:
                outer.stdin.close()
                outer.wait()
                box.forget_cgroups()
