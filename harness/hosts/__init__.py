"""
Where a run's nodes live: the table of hosts.

A suite makes one host object for each cell, and one more whose `start_zookeeper` serves them all: the address
that it gives is the harness's own view, which every cell's fabric can connect to.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from harness.hosts.base import Host


class MakeHost(Protocol):
    """
    Make a host for one run; nothing is touched before its `open`.

    Shapes:  run_dir is the run's own folder. power_tier: "loop" or "watermark" insists on that tier; None
             takes the best that the machine can. drain(node) is called in the middle of a power loss, when
             the node is dead and its disk not yet cut: take in there what it still said of its flushes.
             ports limits which of this machine's ports nodes may take; None is the usual range.
    """

    def __call__(
        self,
        run_dir: Path,
        *,
        power_tier: str | None = None,
        drain: Callable[[str], None] | None = None,
        ports: range | None = None,
    ) -> Host:
        """Make it."""


# Each is imported when it is made: a run on this machine needs no Docker SDK.
def _local(run_dir: Path, **wishes: Any) -> Host:
    from harness.hosts.local import LocalHost

    return LocalHost(run_dir, **wishes)


def _docker(run_dir: Path, **wishes: Any) -> Host:
    from harness.hosts.docker import DockerHost

    return DockerHost(run_dir, **wishes)


HOSTS: Final[dict[str, MakeHost]] = {"local": _local, "docker": _docker}
