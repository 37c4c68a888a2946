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
from harness.clocks import Reading, Setting
from harness.hosts import faketime
from harness.hosts.site import Site
from harness.launch import Address
from harness.model import UsageError
from harness.zookeeper import server

ZOOKEEPER: Final = "zookeeper"


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

    def paused(self) -> bool:
        """Return True if it is seen to be frozen."""

    def resume(self) -> str:
        """Resume it."""

    def ask_clocks(self) -> Callable[[], str]:
        """SIGQUIT it; return what says what it has printed since."""

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
        self._clocks: dict[str, faketime.NodeClock] = {}

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
        """Return why this host cannot do it, "" if it can."""
        if ability in (Ability.WALL_CLOCK, Ability.CLOCKS):
            return self._lacks_clocks()
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

    def paused(self, name: str) -> bool:
        """Return True if the kernel or the engine reports the node's process as stopped."""
        return self._node(name).paused()

    def resume(self, name: str) -> str:
        """Resume a paused node; return when it runs."""
        return self._node(name).resume()

    def set_clocks(self, name: str, setting: Setting, seen: Reading) -> None:
        """Set the clocks of the node's process."""
        self._clock(name).set(setting, seen)

    def ask_clocks(self, name: str) -> Callable[[], str]:
        """Send the node's process the signal at which it prints its clocks; return what it has printed since."""
        return self._node(name).ask_clocks()

    def _lacks_clocks(self) -> str:
        return faketime.lacks()

    def _clock(self, name: str) -> faketime.NodeClock:
        conf = self._site.folder("nodes", name, "conf")
        return self._clocks.setdefault(name, faketime.NodeClock(conf))

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

    def _await_zookeeper(self, address: Address) -> Address:
        """Wait until a started ZooKeeper answers; raise UsageError, with its last output, if it does not."""
        node = self._node(ZOOKEEPER)
        ready = until(lambda: server.is_ready(address) or not node.alive(), limits.ZOOKEEPER_START_S_MAX)
        if ready and node.alive():
            return address
        what = "ended while starting" if ready else f"no answer within {limits.ZOOKEEPER_START_S_MAX} s"
        said = "\n".join(node.log_text().splitlines()[-20:])
        raise UsageError(f"ZooKeeper at {address}: {what}; it said:\n{said}")
