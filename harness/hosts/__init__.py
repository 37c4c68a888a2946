"""
The table of hosts; a host runs the nodes of a run.

A suite makes one host object for each run, and one more whose `start_zookeeper` serves all runs. The address that
it returns is as seen by the harness, so that every run's fabric can connect to it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from harness.hosts.base import Host


class MakeHost(Protocol):
    """
    Make a host for one run; nothing is created before its `open`.

    Args:
        run_dir: The run's own folder.
        power_tier: "loop" or "watermark" requires that tier; None: the best one that the machine supports.
        drain: Called as drain(node) during a power loss, when the node is dead and its disk not yet restored;
            waits until the flushes that the node reported are received.
        ports: The ports of this machine that nodes may use; None: the default range of limits.py.
    """

    def __call__(
        self,
        run_dir: Path,
        *,
        power_tier: str | None = None,
        drain: Callable[[str], None] | None = None,
        ports: range | None = None,
    ) -> Host:
        """Make the host."""


# Each module is imported only when its host is made: a run on this machine needs no Docker SDK.
def _local(run_dir: Path, **options: Any) -> Host:
    from harness.hosts.local import LocalHost

    return LocalHost(run_dir, **options)


def _docker(run_dir: Path, **options: Any) -> Host:
    from harness.hosts.docker import DockerHost

    return DockerHost(run_dir, **options)


HOSTS: Final[dict[str, MakeHost]] = {"local": _local, "docker": _docker}
