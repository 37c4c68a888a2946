"""
The interface of hosts; a host runs the nodes of a run.

A host handles processes, containers, disks and addresses. It has no knowledge of Kafka, scenarios or verdicts. A
new host needs one file in this folder and one line in `HOSTS` (`harness/hosts/__init__.py`).

A node is a replica, or a process of a service (harness/target/services.py): the host treats them alike.
Order of calls: open -> add_node (for each node) -> start -> faults -> close.
Every process, mount, container and network is recorded in the ledger before it is created.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Protocol

from harness.ability import Ability
from harness.cleanup.ledger import Ledger
from harness.clocks import Reading, Setting
from harness.cluster.disk_error import DiskError
from harness.launch import Launch, Place
from harness.packets import Packets


class Host(Protocol):
    """
    Runs nodes, and injects the faults that need its privileges.

    Every call is synchronous and bounded by harness/limits.py. Threads may call concurrently for different nodes.
    Faults return what their probe saw, as one short text.

    Attributes:
        power_tier: "loop" (the page cache is really lost) or "watermark" (needs no root); docs/power-loss.md.
        java: The Java inside its nodes, "" for this machine's own; known before open.

    Raises:
        UsageError: The machine lacks something; the text says what.
        PreconditionError: A fault's own probe saw that the fault had no effect.
    """

    name: str
    power_tier: str
    java: str

    def open(self) -> None:
        """Reap killed runs, check the machine, and acquire the run's lock."""

    def require_all(self) -> None:
        """Raise PreconditionError if a machine of the run is lost: what is waited for may never come."""

    @property
    def ledger(self) -> Ledger:
        """The run's ledger, for processes besides its nodes: its clients."""

    @property
    def bind_address(self) -> str:
        """The address on which the harness must listen, so that nodes can connect."""

    def lacks(self, ability: Ability) -> str:
        """Return why this host cannot do it, with what would have to be there; "" if it can. Known after open."""

    def add_node(
        self, name: str, *, disk: bool, fails: bool = False, listeners: int = 2, beside: bool = False
    ) -> Place:
        """
        Make a node's disk and addresses; start nothing yet.

        Args:
            disk: The disk can lose power.
            fails: It can also fail, in every way that this host has; that costs throughput.
            listeners: How many addresses it listens on: for clients, for other nodes, and further ones.
            beside: It runs beside the harness, also where nodes are on other machines, which reach it over links
                alone: a service.
        """

    def start(self, name: str, launch: Launch) -> None:
        """Write the launch's files and start the node's process; raise UsageError if it ends at once."""

    def alive(self, name: str) -> bool:
        """Return True if the node's process exists; a paused one does."""

    def kill(self, name: str) -> str:
        """SIGKILL the node's process; return when it is gone. The page cache survives."""

    def stop(self, name: str) -> str:
        """SIGTERM the node's process; return when it has ended."""

    def pause(self, name: str) -> str:
        """Freeze the node's process; return when the kernel or the engine reports it as stopped."""

    def paused(self, name: str) -> bool:
        """Return True if the kernel or the engine reports the node's process as stopped."""

    def resume(self, name: str) -> str:
        """Resume a paused node; return when it runs."""

    def set_clocks(self, name: str, setting: Setting, seen: Reading) -> None:
        """
        Set the clocks of the node's process, which must have been launched with them; a paused one sees it later.

        Args:
            seen: what the process read of its clocks last.
        """

    def ask_clocks(self, name: str) -> Callable[[], str]:
        """
        Send the node's process the signal at which it prints its clocks (harness/target/target.py).

        Returns:
            A function that returns what the process has printed since.
        """

    def flush(self, name: str) -> str:
        """Make everything on the node's disk durable, from outside (syncfs)."""

    def unflushed(self, name: str) -> tuple[str, ...]:
        """
        Return the files of the node's disk that have bytes which a power loss would take now.

        Each is told with the moment of its last write; () too where the machine's kernel does not tell.
        """

    def power_loss(self, name: str, torn: Random | None = None) -> str:
        """
        Kill the node's process, and lose the unflushed bytes, sizes, names and truncations of its disk.

        If torn, chance lets some unflushed pages reach the disk, and leaves zeros in place of those before them.

        Afterwards the node is down, and its disk is mounted again so that the files can be read.
        """

    def lose_disk(self, name: str) -> str:
        """Give a node that is down an empty disk; a copy of what it had is kept in the run's folder."""

    def break_disk(self, name: str, error: DiskError) -> str:
        """Let the node's disk fail so from now on; return what was seen; PreconditionError if this one cannot."""

    def disk_state(self, name: str) -> str:
        """Return what is wrong with the node's disk now, as the disk says: one of DiskError, "" for nothing."""

    def mend_disk(self, name: str) -> str:
        """Let the node's disk work again; return what it refused meanwhile, "" for nothing."""

    def impair_packets(self, name: str, how: Packets) -> None:
        """Let this become of the node's packets from now on, by the kernel; after a restart of the node too."""

    def packets_impaired(self, name: str, how: Packets) -> bool:
        """Return True if this becomes of the node's packets now, as the kernel says."""

    def packets_met(self, name: str, how: Packets) -> int:
        """Return how many packets of the node it was done to so far."""

    def pass_packets(self, name: str, how: Packets) -> None:
        """Let the node's packets pass again."""

    def note_flushed(self, name: str, path: str, length: int) -> None:
        """
        Record that the node itself made the first `length` bytes of a file durable; only `watermark` needs it.

        Args:
            path: Relative to the node's data directory.
        """

    def disk(self, name: str) -> Path:
        """
        Return the node's data directory as it is now, as a path of this machine.

        It may be a copy: what is written there need not reach the node.
        """

    def unlink(self, name: str, path: str) -> None:
        """
        Remove a file from the node's disk.

        Args:
            path: Relative to the node's data directory.
        """

    def overwrite(self, name: str, path: str, position: int, was: bytes, now: bytes) -> None:
        """
        Write over bytes of a file of the node's disk in place, which makes nothing durable.

        Args:
            path: Relative to the node's data directory.
            was: What is expected at the position; PreconditionError if the node has changed it.
            now: As many bytes, which are written there.
        """

    def log_text(self, name: str) -> str:
        """Return everything that the node's processes have printed so far."""

    def close(self) -> None:
        """Stop all nodes, remove the run's mounts and networks; safe to call twice."""
