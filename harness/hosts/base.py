"""
What a host is: the place where a run's nodes live, behind one interface.

A host knows processes, containers, disks and addresses; it knows nothing of Kafka, of scenarios or of
verdicts. A new host is one file beside this one and one line in `HOSTS` (`harness/hosts/__init__.py`).

Order of calls:  open -> start_zookeeper -> add_node (for each) -> place -> start -> faults -> close.
Every process, mount, container and network is written to the ledger before it comes to be.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from harness.launch import Address, Launch, Place


class Host(Protocol):
    """
    A place to run nodes in, and the faults that need its powers.

    Units:   every call is synchronous and bounded by harness/limits.py; threads may call concurrently for
             different nodes.
    Raises:  UsageError when the machine lacks something (says what); PreconditionError when a fault's own
             probe saw that it did not bite. Faults return what the probe saw, one short text.
    """

    name: str
    power_tier: str  # "loop" (real lost page cache), "watermark" (rootless stand-in); docs/power-loss.md
    java: str  # the Java inside its nodes, "" for this machine's own; known before it is open

    def open(self) -> None:
        """Take the run's lock, check the machine, reap what a killed run of ours left behind."""

    @property
    def bind_address(self) -> str:
        """The address on which the harness's own listeners must stand so that nodes reach them."""

    def start_zookeeper(self) -> Address:
        """Start a real ZooKeeper server and give its address as the harness's process reaches it."""

    def add_node(self, name: str, *, disk: bool) -> Place:
        """Make a node's disk (one that can lose power when `disk`) and addresses; start nothing yet."""

    def start(self, name: str, launch: Launch) -> None:
        """Start the node's process with its files in place; UsageError when it dies at once."""

    def alive(self, name: str) -> bool:
        """Whether the node's process is there (a paused one is)."""

    def kill(self, name: str) -> str:
        """SIGKILL the node's process; return when it is gone. Page cache survives."""

    def stop(self, name: str) -> str:
        """Ask the node's process to end (SIGTERM) and wait for it."""

    def pause(self, name: str) -> str:
        """Stop the node's process in its tracks; return when the kernel says so."""

    def resume(self, name: str) -> str:
        """Let a paused node go on."""

    def flush(self, name: str) -> str:
        """Make everything on the node's disk durable, from outside (syncfs)."""

    def power_loss(self, name: str) -> str:
        """Cut the node's power: unflushed bytes, sizes, names and truncations are gone, its process too.

        Afterwards the disk is mounted again, so that the files can be read back; the node is down.
        """

    def note_flushed(self, name: str, path: str, length: int) -> None:
        """Tell the host that the node itself made the first `length` bytes of a file durable.

        Shapes:  path is relative to data_dir. Only the watermark tier needs it.
        """

    def disk(self, name: str) -> Path:
        """The node's data directory as the harness reads it."""

    def log_text(self, name: str) -> str:
        """What the node's processes printed so far."""

    def close(self) -> None:
        """Take down all nodes, ZooKeeper, mounts and networks of this run; safe to call twice."""
