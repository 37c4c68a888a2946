"""
The part of a host that all hosts share: calls for nodes that have a process and a disk on this machine.

Each host adds `open`, `add_node`, `start` and `close`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from random import Random
from typing import Final, Generic, Protocol, TypeVar

from harness.ability import OF_PACKETS, Ability
from harness.beneath import Folder
from harness.cleanup.chains import Chain
from harness.cleanup.ledger import Ledger, Reaped
from harness.clocks import Reading, Setting
from harness.cluster.disk_error import DiskError
from harness.hosts import faketime
from harness.hosts.packets import NodePackets, Reached, why_not
from harness.hosts.site import Site
from harness.hosts.trees import exchange
from harness.launch import Address
from harness.model import PreconditionError, UsageError
from harness.packets import Packets

# What needs nothing of a machine but what each run needs.
EVERYWHERE: Final = frozenset(
    {
        Ability.OWN_SERVICES,
        Ability.SERVICE_ENSEMBLE,
        Ability.CLIENT_PROCESSES,
        Ability.CLIENT_LINKS,
        Ability.METADATA_LINKS,
        Ability.SEGMENTS,
    }
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
        self,
        name: str,
        run_dir: Path,
        *,
        power_tier: str | None,
        drain: Callable[[str], None] | None,
        ssh_ports: Collection[int] = (),
    ) -> None:
        """
        See harness.hosts.MakeHost.

        Args:
            ssh_ports: Ports of which no packet is ever dropped, besides 22.
        """
        self.name = name
        self.power_tier = ""
        self._site = Site(run_dir, power_tier=power_tier, drain=drain)
        self._nodes: dict[str, N] = {}
        # Node -> how many disks it has lost.
        self._lost: dict[str, int] = {}
        self._clocks: dict[str, faketime.NodeClock] = {}
        # Node -> where it listens, for clients and for other brokers.
        self._listeners: dict[str, tuple[Address, ...]] = {}
        self._packets = NodePackets(lambda: Chain(self.ledger, ssh_ports))

    @property
    def reaped(self) -> Reaped:
        """What `open` undid of killed runs, and what it could not undo."""
        return self._site.reaped

    @property
    def power_reason(self) -> str:
        """Why the run has its power tier."""
        return self._site.power_reason

    def require_all(self) -> None:
        """Do nothing: the run has this machine alone."""

    @property
    def ledger(self) -> Ledger:
        """The run's ledger; raises UsageError before `open`."""
        return self._site.ledger

    def lacks(self, ability: Ability) -> str:
        """Return why this host cannot do it, "" if it can."""
        reason = self.missing(ability)
        return f"host {self.name}: {reason}" if reason else ""

    def missing(self, ability: Ability) -> str:
        """Return what this machine lacks for it, "" for nothing."""
        if ability in EVERYWHERE:
            return ""
        if ability in OF_PACKETS:
            return self._lacks_packets(ability)
        if ability in (Ability.WALL_CLOCK, Ability.CLOCKS):
            return self._lacks_clocks()
        return self._site.lacks(ability)

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

    def _lacks_packets(self, ability: Ability) -> str:
        if ability is Ability.PACKETS_DROPPED:
            return why_not(Packets.DROPPED)
        return "its nodes share the interface of the machine; expected one for each, as the host docker has"

    def _lacks_clocks(self) -> str:
        return faketime.lacks()

    def _clock(self, name: str) -> faketime.NodeClock:
        conf = self._site.folder("nodes", name, "conf")
        return self._clocks.setdefault(name, faketime.NodeClock(conf))

    def flush(self, name: str) -> str:
        """Make everything on the node's disk durable."""
        return self._site.disk(name).flush()

    def unflushed(self, name: str) -> tuple[str, ...]:
        """Return the files of the node's disk that have bytes which a power loss would take now."""
        return self._site.disk(name).unflushed()

    def power_loss(self, name: str, torn: Random | None = None) -> str:
        """Kill the node's process and undo what was not durable on its disk, but for some pages if torn."""
        return self._site.disk(name).power_loss(self._node(name), lambda: self._site.drain(name), torn)

    def lose_disk(self, name: str) -> str:
        """Give a node that is down an empty disk; what it had is copied beside it."""
        if self.alive(name):
            raise PreconditionError(f"lose the disk of {name}: it runs; expected a node that is down")
        self._lost[name] = self._lost.get(name, 0) + 1
        aside = self._site.folder("nodes", name, f"lost-{self._lost[name]}")
        return self._site.disk(name).lose(aside)

    def break_disk(self, name: str, error: DiskError) -> str:
        """Let the node's disk fail so from now on; return what was seen of it at once."""
        return self._site.disk(name).break_down(error, self._node(name))

    def disk_state(self, name: str) -> str:
        """Return what is wrong with the node's disk now, as the disk says."""
        return self._site.disk(name).state()

    def mend_disk(self, name: str) -> str:
        """Let the node's disk work again; return what it refused meanwhile."""
        return self._site.disk(name).mend(self._node(name))

    def impair_packets(self, name: str, how: Packets) -> None:
        """Let this become of the node's packets from now on, after a restart of the node too."""
        self._packets.impair(name, self._reached(name), how)

    def packets_impaired(self, name: str, how: Packets) -> bool:
        """Return True if this becomes of the node's packets now, as the kernel says."""
        return self._packets.stands(name, self._reached(name), how)

    def packets_met(self, name: str, how: Packets) -> int:
        """Return how many packets of the node it was done to, of an interface since the node's last start."""
        return self._packets.met(name, self._reached(name), how)

    def pass_packets(self, name: str, how: Packets) -> None:
        """Let the node's packets pass again."""
        self._packets.clear(name, self._reached(name), how)

    def _reached(self, name: str) -> Reached:
        """Return how packets reach a node: at its listeners, over an interface that it shares."""
        return Reached(listeners=self._listeners.get(name, ()), alive=self._node(name).alive)

    def note_flushed(self, name: str, path: str, length: int) -> None:
        """Record that the node itself made the first `length` bytes of a file durable."""
        self._site.disk(name).note_flushed(path, length)

    def disk(self, name: str) -> Path:
        """Return the node's data directory, as a path of this machine."""
        return self._site.disk(name).data

    def unlink(self, name: str, path: str) -> None:
        """Remove a file from the node's disk, through no link."""
        try:
            with Folder.no_link(self.disk(name)) as data:
                data.unlink(path)
        except OSError as error:
            raise PreconditionError(
                f"{name}: {path!r} cannot be removed: {error}; expected a file there"
            ) from error

    def overwrite(self, name: str, path: str, position: int, was: bytes, now: bytes) -> None:
        """Write over bytes of a file of the node's disk in place, through no link."""
        try:
            with Folder.no_link(self.disk(name)) as data:
                found = exchange(data, path, position, was, now)
        except OSError as error:
            raise PreconditionError(
                f"{name}: {path!r} cannot be written to: {error}; expected a file there"
            ) from error
        if found != was:
            raise PreconditionError(
                f"{name}: {path!r} has 0x{found.hex()} at byte {position} by now; expected 0x{was.hex()}, as seen"
            )

    def log_text(self, name: str) -> str:
        """Return everything that the node's processes have printed so far."""
        return self._node(name).log_text()

    def _node(self, name: str) -> N:
        if name not in self._nodes:
            raise UsageError(f"node {name!r}: unknown; expected one of {', '.join(self._nodes) or 'none'}")
        return self._nodes[name]
