"""What the engine asks of a system's nodes: a process that can be ended and paused, clocks, and a disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from harness.bit_rot import Flip, Where
from harness.cluster.disk_error import DiskError
from harness.logs.replica import ReplicaLog
from targets.simulator.engine.clock import Clock
from targets.simulator.engine.disk_errors import DiskErrors
from targets.simulator.engine.node_clock import WallClock


class Disk(Protocol):
    """A node's disk, which outlives its process."""

    errors: DiskErrors

    def sync(self) -> int:
        """Make the whole disk durable; return how many batches were not."""

    def unflushed(self) -> tuple[str, ...]:
        """Return the files of logs whose batches are not those that are durable."""

    def empty(self) -> int:
        """Become a new disk, with nothing on it; return how many logs the old one had."""

    def flip(self, topic: str, partition: int, where: Where) -> Flip | None:
        """Flip a byte of a log, or of its checkpoint; None if there is no batch there."""

    def delete_active_segment(self, topic: str, partition: int) -> str | None:
        """Remove a log's newest file; return its name, None when there is no log."""

    def replica_log(self, topic: str, partition: int) -> ReplicaLog | None:
        """Return a log as its files hold it; None while there is none."""


class Node(Protocol):
    """
    A machine, and while it is up, a process of the system. What it plans is an event (what, its name, ...).

    Attributes:
        clock: its own monotonic one.
        paused: whether its process is stopped and not ended.
        printed: what its processes printed.
    """

    clock: Clock
    wall: WallClock
    paused: bool

    @property
    def process(self) -> object | None:
        """Return what runs here, None while the node is down."""

    @property
    def disk(self) -> Disk:
        """Return its disk."""

    @property
    def printed(self) -> Sequence[str]:
        """Return what its processes printed."""

    def install(self, protocol: str, rules: Mapping[str, str]) -> None:
        """Have the processes from the next one on follow another protocol, on the same disk."""

    def boot(self) -> None:
        """Start a process on the contents of the disk."""

    def kill(self) -> None:
        """End the process at once; the page cache survives."""

    def stop(self) -> None:
        """End the process cleanly, now or later."""

    def pause(self) -> None:
        """Stop the process without ending it."""

    def resume(self) -> None:
        """Resume, with everything that arrived meanwhile."""

    def lose_power(self, *, torn: bool = False) -> str:
        """End the process and lose what was not flushed; return what was lost."""

    def break_disk(self, error: DiskError) -> None:
        """Have one of the disk's next calls fail, or all take longer."""

    def run_clocks(self, *, ahead_s: float, rate: float) -> None:
        """Have both clocks go on from what they show, moved on by that much, at another rate."""

    def wall_ns(self) -> int:
        """Return what the wall clock shows, in nanoseconds since the world began."""

    def gained_ns(self) -> int:
        """Return how far a fault has moved both clocks on."""

    def on_planned(self, what: str, life: int, *rest: Any) -> None:
        """Do what one of its processes planned, unless that one has ended."""
