"""
The table of hosts; a host runs the nodes of a run.

A suite makes one host object for each run, and one more whose services serve all runs. Their addresses are as seen
by the harness, so that every run's fabric can connect to them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from harness import extras
from harness.hosts.base import Host
from harness.model import UsageError


class MakeHost(Protocol):
    """
    Make a host for one run; nothing is created before its `open`.

    Args:
        run_dir: The run's own folder.
        power_tier: "loop" or "watermark" requires that tier; None: the best one that the machine supports.
        drain: Called as drain(node) during a power loss, when the node is dead and its disk not yet restored;
            waits until the flushes that the node reported are received.
        ports: The ports that nodes may use on their machine; None: the default range of limits.py.
        machines: The file that lists the machines of a host that has some; None: what the environment names.
    """

    def __call__(
        self,
        run_dir: Path,
        *,
        power_tier: str | None = None,
        drain: Callable[[str], None] | None = None,
        ports: range | None = None,
        machines: Path | None = None,
    ) -> Host:
        """Make the host."""


# Each module is imported only when its host is made: a run on this machine needs no extra.
def _local(run_dir: Path, *, machines: Path | None = None, **options: Any) -> Host:
    from harness.hosts.local import LocalHost

    _refuse("local", machines)
    return LocalHost(run_dir, **options)


def _docker(run_dir: Path, *, machines: Path | None = None, **options: Any) -> Host:
    _refuse("docker", machines)
    _require("docker")
    from harness.hosts.docker import DockerHost

    return DockerHost(run_dir, **options)


def _ssh(run_dir: Path, **options: Any) -> Host:
    _require("ssh")
    from harness.hosts.ssh import SshHost

    return SshHost(run_dir, **options)


HOSTS: Final[dict[str, MakeHost]] = {"local": _local, "docker": _docker, "ssh": _ssh}
# Those whose nodes listen on ports of their machine; containers have addresses of their own.
TAKE_PORTS: Final = frozenset({"local", "ssh"})


def machines_of(host: str, file: Path | None) -> Path | None:
    """
    Return the file of a host's machines, None for a host that has none to list; asked before anything is opened.

    Args:
        host: a name of an environment.
        file: the file that the command line names.

    Raises:
        UsageError: The host needs one and there is none, or it is wrong; or the host takes none; or a package that
            the host needs is not installed.
    """
    _require(host)
    if host != "ssh":
        _refuse(host, file)
        return None
    from harness.hosts.machine_list import read_machines
    from harness.hosts.ssh import listed

    return read_machines(listed(file)).file


def _require(host: str) -> None:
    """Raise UsageError if a package of the host's extra, which has its name, is not installed."""
    if host in extras.EXTRAS:
        extras.require(host, f"host {host}")


def _refuse(host: str, machines: Path | None) -> None:
    if machines is not None:
        raise UsageError(f"--hosts {machines}: host {host} lists no machines; expected it with host ssh")
