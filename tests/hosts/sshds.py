"""
SSH servers of the tests' own on loopback, each with an address, a key and a folder, and as root a user of its own.

A user is named after the process of the tests, so that the next one removes the users of one that was killed.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import paramiko

from harness import limits
from harness.cleanup import mounts, process
from harness.hosts import HOSTS, MakeHost
from harness.hosts.ports import PortClaims
from tests.needs import UID, found

USER = "fencepost-test-"
SYSTEM_PYTHON = "/usr/bin/python3"
PRIVILEGES = Path("/run/sshd")

CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host-key
AuthorizedKeysFile {folder}/authorized
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AllowTcpForwarding no
Subsystem sftp internal-sftp
"""


class Sshd:
    """One server, which can be killed with all its connections, and started again at the same port."""

    def __init__(self, folder: Path, number: int, port: int, *, user: str = "") -> None:
        """Write its keys and its configuration; `start` starts it."""
        self.folder = folder
        # Another pid, other addresses: nodes of two test processes never meet at a port.
        self.address = f"127.{number + 10}.{os.getpid() >> 8 & 255}.{os.getpid() % 254 + 1}"
        self.port = port
        self.name = f"m{number}"
        self.user = user or pwd.getpwuid(UID).pw_name
        self.home = folder / "home"
        self.key = folder / "key"
        self.known_hosts = folder / "known"
        for path in (folder, self.home):
            path.mkdir(exist_ok=True)
        owner = pwd.getpwnam(self.user)
        os.chown(self.home, owner.pw_uid, owner.pw_gid)
        for path in (self.key, folder / "host-key"):
            _keygen(path)
        (folder / "authorized").write_bytes(self.key.with_suffix(".pub").read_bytes())
        host = paramiko.PKey.from_path(folder / "host-key")
        self.known_hosts.write_text(f"[{self.address}]:{port} {host.get_name()} {host.get_base64()}\n")
        text = CONFIG.format(port=port, address=self.address, folder=folder)
        (folder / "config").write_text(text, encoding="utf-8")
        self.python = _python_of(self.uid, folder / "python")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uid(self) -> int:
        """The user's id."""
        return pwd.getpwnam(self.user).pw_uid

    @property
    def root(self) -> Path:
        """The folder of everything that Fencepost makes there."""
        return self.home / "fencepost"

    def start(self) -> None:
        """Start the server; return when it answers."""
        self._process = subprocess.Popen(
            [found("sshd"), "-D", "-E", str(self.folder / "log"), "-f", str(self.folder / "config")],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        started = process.until(
            lambda: self._process is None or self._process.poll() is not None or self._answers(),
            limits.PROCESS_START_S_MAX,
        )
        assert started and self._process.poll() is None, (self.folder / "log").read_text()

    def kill(self) -> None:
        """SIGKILL the server and the processes that serve its connections, and nothing that these have started."""
        assert self._process is not None, "it was started"
        for pid in [*_servers_below(self._process.pid), self._process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """End the server and its connections; safe to call twice."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def table(self, **changed: object) -> str:
        """Return its [[machine]] table, with these values changed; None leaves a key out."""
        values: dict[str, object] = {
            "name": self.name,
            "address": self.address,
            "port": self.port,
            "user": self.user,
            "key": str(self.key),
            "known_hosts": str(self.known_hosts),
            "folder": str(self.root),
            "python": self.python,
            **changed,
        }
        lines = [
            f"{key} = {str(value) if isinstance(value, int) else repr(value)}" for key, value in values.items()
        ]
        return "\n".join(["[[machine]]", *(line for line in lines if not line.endswith("= None")), ""])

    def processes(self) -> list[str]:
        """Return the command lines of its user's processes that Fencepost has started there."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                at_work = Path(f"/proc/{pid}/cwd").readlink()
                # A process of FUSE leaves its folder, but is told of it.
                fuse = "hosts.faultfs" in line and f" {self.root}/" in line
                if fuse or self.root == at_work or self.root in at_work.parents:
                    found.append(f"{pid} {line}")
        return found

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection((self.address, self.port), 1) as probe:
            return bool(probe.recv(4).startswith(b"SSH"))
        return False


def write_list(path: Path, servers: Sequence[Sshd], *top: str) -> Path:
    """Write the file that lists these servers as machines; `top` are lines before the tables."""
    path.write_text("\n".join([*top, *(server.table() for server in servers)]), encoding="utf-8")
    return path


def agents(machine: Sshd) -> list[int]:
    """Return the pids of a machine's agents, and of their guards."""
    return [int(line.split()[0]) for line in machine.processes() if "remote.agent" in line]


def files_of(machine: Sshd) -> list[str]:
    """Return the files that are left of runs on a machine, relative to its folder."""
    kept = ("code", "lib", "state/fencepost/ports", "state/fencepost/templates")
    found = (str(path.relative_to(machine.root)) for path in machine.root.rglob("*") if not path.is_dir())
    return [name for name in found if not name.startswith(kept) and not name.endswith("registry.lock")]


def is_clean(machine: Sshd) -> bool:
    """Return True if no process, file or mount of a run is left on a machine."""
    return machine.processes() == [] and mounts.mounts_below(machine.root) == [] and files_of(machine) == []


def rules() -> str:
    """Return what iptables has, in its own words."""
    return subprocess.run(["iptables", "-w", "-S"], capture_output=True, text=True, check=True).stdout


@contextmanager
def servers(count: int) -> Iterator[list[Sshd]]:
    """Start so many servers, as root each with a user of its own; remove users and folders afterwards."""
    names = [f"{USER}{os.getpid()}-{number}" for number in range(1, count + 1)] if UID == 0 else []
    if names:
        remove_users_of_the_dead()
    try:
        with _started(count, names) as made:
            yield made
    finally:
        for name in names:
            _remove_user(name)


def made_on(stack: ExitStack, host: str, folder: Path) -> MakeHost:
    """Return what opens a host; over SSH the machines are three servers, until the stack is closed."""
    if host != "ssh":
        return HOSTS[host]
    return partial(HOSTS[host], machines=write_list(folder / "hosts.toml", stack.enter_context(servers(3))))


@contextmanager
def root_server() -> Iterator[Sshd]:
    """Start one server whose user is root."""
    with _started(1, ["root"], first=9) as (made,):
        yield made


@contextmanager
def _started(count: int, users: Sequence[str], first: int = 1) -> Iterator[list[Sshd]]:
    """Start servers for these users, which are made unless they exist; for our own user without any."""
    # Not in a folder of pytest's, which other users may not enter.
    folder = Path(tempfile.mkdtemp(prefix="fencepost-sshd-"))
    folder.chmod(0o755)
    made: list[Sshd] = []
    claims = PortClaims()
    try:
        if UID == 0:
            PRIVILEGES.mkdir(mode=0o755, exist_ok=True)
        for number, user in enumerate(users or [""] * count, start=first):
            if user.startswith(USER):
                _add_user(user, folder / f"m{number}" / "home")
            made.append(Sshd(folder / f"m{number}", number, claims.claim(), user=user))
            if number == count and Path(SYSTEM_PYTHON).exists() and made[-1].uid != UID:
                made[-1].python = SYSTEM_PYTHON  # which has no libraries: the last machine is given them
            made[-1].start()
        yield made
    finally:
        for each in made:
            each.stop()
        for each in made:
            # A test that failed may have left a run: the guards undo it, and what they leave is taken away.
            process.until(partial(is_clean, each), limits.CONDITION_WAIT_S_MAX)
            if each.user.startswith(USER):
                _end_processes(each.uid)
            for mount_point in mounts.mounts_below(each.root):
                mounts.detach(mount_point, mounts.source_of(mount_point))
        claims.close()
        shutil.rmtree(folder)


def remove_users_of_the_dead() -> None:
    """Remove the users of test processes that were killed."""
    for entry in pwd.getpwall():
        match = re.fullmatch(rf"{USER}(\d+)-\d+", entry.pw_name)
        if match and not Path(f"/proc/{match[1]}").exists():
            _end_processes(entry.pw_uid)
            _remove_user(entry.pw_name)


def _add_user(name: str, home: Path) -> None:
    subprocess.run(
        [
            *("useradd", "--no-create-home", "--no-log-init", "--home-dir", str(home)),
            *("--shell", "/bin/sh", "--password", "*", name),
        ],
        check=True,
        capture_output=True,
    )


def _remove_user(name: str) -> None:
    subprocess.run(["userdel", "--force", name], check=False, capture_output=True)


def _end_processes(uid: int) -> None:
    """SIGKILL every process of a user of the tests' own."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if os.stat(f"/proc/{pid}").st_uid == uid:
                os.kill(int(pid), signal.SIGKILL)


def _servers_below(pid: int) -> list[int]:
    """Return the servers of connections below a server."""
    found = []
    with suppress(OSError):
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        for child in map(int, text.split()):
            if Path(f"/proc/{child}/comm").read_text().strip().startswith("sshd"):
                found += [child, *_servers_below(child)]
    return found


def _python_of(uid: int, wrapper: Path) -> str:
    """Return a Python that a user may run: this one, or the system's with the libraries of this one."""
    if uid == UID or _may_read(uid, Path(sys.executable)):
        return sys.executable
    libraries = Path(paramiko.__file__).parents[1]
    wrapper.write_text(f'#!/bin/sh\nexport PYTHONPATH="$PYTHONPATH:{libraries}"\nexec {SYSTEM_PYTHON} "$@"\n')
    wrapper.chmod(0o755)
    return str(wrapper) if _may_read(uid, libraries) and _is_like_ours(SYSTEM_PYTHON) else SYSTEM_PYTHON


def _may_read(uid: int, path: Path) -> bool:
    """Return True if a user may search every folder above a path, and above what it is a link to."""
    above = {*path.absolute().parents, *path.resolve().parents}
    return all(os.stat(folder).st_mode & 0o001 or os.stat(folder).st_uid == uid for folder in above)


def _is_like_ours(python: str) -> bool:
    """Return True if libraries of this Python are libraries of that one."""
    words = [python, "-c", "import sys; print(*sys.version_info[:2])"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.split() == list(map(str, sys.version_info[:2]))


def _keygen(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
