"""
The part of a host that all hosts share: calls for nodes that have a process and a disk on this machine.

Each host adds `open`, `start_zookeeper`, `add_node`, `start` and `close`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from harness import limits
from harness.ability import Ability
from harness.cleanup.ledger import Ledger, Reaped
from harness.cleanup.process import until
from harness.hosts.site import Site
from harness.launch import Address
from harness.model import UsageError
from harness.zookeeper import server

ZOOKEEPER: Final = "zookeeper"
# What needs nothing of a machine but what each run needs.
_EVERYWHERE: Final = frozenset(
    {Ability.OWN_ZOOKEEPER, Ability.ENSEMBLE, Ability.CLIENT_PROCESSES, Ability.CLIENT_LINKS}
)


class Node(Protocol):
    """One node: a process or a container."""

    def alive(self) -> bool:
        """Return True if it exists; a paused one does."""

    def kill(self) -> str:
        """SIGKILL it."""

    def stop(self) -> str:
        """SIGTERM it."""

    def pause(self) -> str:
        """Freeze it."""

    def resume(self) -> str:
        """Resume it."""

    def log_text(self) -> str:
        """Return everything that it has printed so far."""


N = TypeVar("N", bound=Node)


class NodesHost(Generic[N]):
    """Nodes by name, on one Site; see harness/hosts/base.py for every call."""

    java = ""

    def __init__(
        self, name: str, run_dir: Path, *, power_tier: str | None, drain: Callable[[str], None] | None
    ) -> None:
        """See harness.hosts.MakeHost."""
        self.name = name
        self.power_tier = ""
        self._site = Site(run_dir, power_tier=power_tier, drain=drain)
        self._nodes: dict[str, N] = {}

    @property
    def reaped(self) -> Reaped:
        """What `open` undid of killed runs, and what it could not undo."""
        return self._site.reaped

    @property
    def power_reason(self) -> str:
        """Why the run has its power tier."""
        return self._site.power_reason

    @property
    def ledger(self) -> Ledger:
        """The run's ledger; raises UsageError before `open`."""
        return self._site.ledger

    def lacks(self, ability: Ability) -> str:
        """Return why this host cannot do it."""
        if ability in _EVERYWHERE:
            return ""
        return f"host {self.name} has no {ability}; expected host sim"

    def alive(self, name: str) -> bool:
        """Return True if the node's process exists; a paused one does."""
        return self._node(name).alive()

    def kill(self, name: str) -> str:
        """SIGKILL the node's process; return when it has ended."""
        return self._node(name).kill()

    def stop(self, name: str) -> str:
        """SIGTERM the node's process; return when it has ended."""
        return self._node(name).stop()

    def pause(self, name: str) -> str:
        """Freeze the node's process; return when the kernel or the engine reports it as stopped."""
        return self._node(name).pause()

    def resume(self, name: str) -> str:
        """Resume a paused node; return when it runs."""
        return self._node(name).resume()

    def flush(self, name: str) -> str:
        """Make everything on the node's disk durable."""
        return self._site.disk(name).flush()

    def power_loss(self, name: str) -> str:
        """Kill the node's process and undo what was not durable on its disk."""
        return self._site.disk(name).power_loss(self._node(name), lambda: self._site.drain(name))

    def note_flushed(self, name: str, path: str, length: int) -> None:
        """Record that the node itself made the first `length` bytes of a file durable."""
        self._site.disk(name).note_flushed(path, length)

    def disk(self, name: str) -> Path:
        """Return the node's data directory, as a path of this machine."""
        return self._site.disk(name).data

    def log_text(self, name: str) -> str:
        """Return everything that the node's processes have printed so far."""
        return self._node(name).log_text()

    def _node(self, name: str) -> N:
        if name not in self._nodes:
            raise UsageError(f"node {name!r}: unknown; expected one of {', '.join(self._nodes) or 'none'}")
        return self._nodes[name]

    def _await_zookeeper(self, address: Address, name: str = ZOOKEEPER) -> Address:
        """Wait until a started ZooKeeper answers; raise UsageError, with its last output, if it does not."""
        node = self._node(name)
        ready = until(lambda: server.is_ready(address) or not node.alive(), limits.ZOOKEEPER_START_S_MAX)
        if ready and node.alive():
            return address
        what = "ended while starting" if ready else f"no answer within {limits.ZOOKEEPER_START_S_MAX} s"
        said = "\n".join(node.log_text().splitlines()[-20:])
        raise UsageError(f"ZooKeeper at {address}: {what}; it said:\n{said}")
