"""
What every host does alike with its nodes, once each is a process somewhere and a disk on this machine.

A host adds how it opens, where nodes get their addresses, how a node is started, and what it closes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from harness import limits
from harness.cleanup.ledger import Reaped
from harness.cleanup.process import until
from harness.hosts.site import Site
from harness.launch import Address
from harness.model import UsageError
from harness.zookeeper import server

ZOOKEEPER: Final = "zookeeper"


class Node(Protocol):
    """One node's process, wherever it runs."""

    def alive(self) -> bool:
        """Whether it is there; a paused one is."""

    def kill(self) -> str:
        """End it at once."""

    def stop(self) -> str:
        """Ask it to end."""

    def pause(self) -> str:
        """Stop it in its tracks."""

    def resume(self) -> str:
        """Let it go on."""

    def log_text(self) -> str:
        """What it printed so far."""


N = TypeVar("N", bound=Node)


class NodesHost(Generic[N]):
    """Nodes by name, on one Site; see harness/hosts/base.py for every call."""

    java = ""

    def __init__(
        self, name: str, run_dir: Path, *, power_tier: str | None, drain: Callable[[str], None] | None
    ) -> None:
        """Take the wishes; see harness.hosts.MakeHost."""
        self.name = name
        self.power_tier = ""
        self._site = Site(run_dir, power_tier=power_tier, drain=drain)
        self._nodes: dict[str, N] = {}

    @property
    def reaped(self) -> Reaped:
        """What open found of killed runs, and what it could not undo."""
        return self._site.reaped

    @property
    def power_reason(self) -> str:
        """Why that tier."""
        return self._site.power_reason

    def alive(self, name: str) -> bool:
        """Whether the node's process is there; a paused one is."""
        return self._node(name).alive()

    def kill(self, name: str) -> str:
        """SIGKILL the node's process; return when it has ended."""
        return self._node(name).kill()

    def stop(self, name: str) -> str:
        """SIGTERM the node's process; return when it has ended."""
        return self._node(name).stop()

    def pause(self, name: str) -> str:
        """Stop the node's process in its tracks; return when the kernel says so."""
        return self._node(name).pause()

    def resume(self, name: str) -> str:
        """Let a paused node go on; return when it runs."""
        return self._node(name).resume()

    def flush(self, name: str) -> str:
        """Make everything on the node's disk durable."""
        return self._site.disk(name).flush()

    def power_loss(self, name: str) -> str:
        """End the node's process and undo what was not durable on its disk."""
        return self._site.disk(name).power_loss(self._node(name), lambda: self._site.drain(name))

    def note_flushed(self, name: str, path: str, length: int) -> None:
        """Take note of a flush that the node made itself."""
        self._site.disk(name).note_flushed(path, length)

    def disk(self, name: str) -> Path:
        """The node's data directory, as the harness reads it."""
        return self._site.disk(name).data

    def log_text(self, name: str) -> str:
        """What the node's processes printed so far."""
        return self._node(name).log_text()

    def _node(self, name: str) -> N:
        if name not in self._nodes:
            raise UsageError(f"node {name!r}: unknown; expected one of {', '.join(self._nodes) or 'none'}")
        return self._nodes[name]

    def _await_zookeeper(self, address: Address) -> Address:
        """Wait until the ZooKeeper that was just started answers; UsageError with its last words when it ends."""
        node = self._node(ZOOKEEPER)
        ready = until(lambda: server.is_ready(address) or not node.alive(), limits.ZOOKEEPER_START_S_MAX)
        if ready and node.alive():
            return address
        what = "ended while starting" if ready else f"no answer within {limits.ZOOKEEPER_START_S_MAX} s"
        said = "\n".join(node.log_text().splitlines()[-20:])
        raise UsageError(f"ZooKeeper at {address}: {what}; it said:\n{said}")
