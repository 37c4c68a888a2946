"""
The parts of a cluster as the runner and the nemeses see them: machines, links, an eye on ZooKeeper, time.

Two grounds make them: real nodes on a host (harness/cluster/cluster.py), and the simulator, in one process and
in virtual
time. Whoever plays a scenario waits through `Time`, never by a clock of its own: in the simulator waiting is what
makes anything happen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from harness.cluster.target import PartitionTruth
from harness.logdir.scan import ReplicaLog

T = TypeVar("T")


class Time(Protocol):
    """How time passes for a run."""

    def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Let things happen until the condition holds; False when it does not within the time."""

    def together(self, act: Callable[[str], T], names: Sequence[str]) -> list[T]:
        """Do the same to several nodes at once; give what each gave, in the order of names."""


class Machines(Protocol):
    """
    Where nodes run, by name.

    Raises:  PreconditionError when a fault's own probe saw that it did not bite. Faults return what it saw.
    """

    name: str
    power_tier: str

    def boot(self, name: str) -> None:
        """Start the node's process; UsageError when it dies at once."""

    def alive(self, name: str) -> bool:
        """Whether the node's process is there (a paused one is)."""

    def kill(self, name: str) -> str:
        """End the process at once; what it wrote stays in the page cache."""

    def pause(self, name: str) -> str:
        """Stop the process in its tracks."""

    def resume(self, name: str) -> str:
        """Let a paused node go on."""

    def flush(self, name: str) -> str:
        """Make everything on the node's disk durable, from outside."""

    def power_loss(self, name: str) -> str:
        """End the process and lose what was not flushed; the disk can be read afterwards."""

    def delete_active_segment(self, name: str, topic: str, partition: int) -> str:
        """Remove the newest segment of a replica's log, files of its index included; the node is down."""

    def replica_log(self, name: str, topic: str, partition: int) -> ReplicaLog | None:
        """A replica's log as its disk holds it now; None while there is none."""

    def log_text(self, name: str) -> str:
        """What the node's processes printed so far."""

    def drain(self, name: str) -> None:
        """Wait until everything that the node's dead processes told is in the history."""

    def close(self) -> None:
        """Take everything down; safe to call twice."""


class Held(Protocol):
    """A hold that stands."""

    @property
    def held(self) -> Sequence[object]:
        """All frames that it has stopped so far, in order."""


class Links(Protocol):
    """
    The links between nodes, and from each to ZooKeeper (whose name is "zookeeper").

    Shapes:  a link is (src, dst) in the direction of its requests; direction is "request" or "answer".
             What cut, delay and double give is handed to heal.
    """

    def hold(self, api: str, src: str, dst: str, direction: str, from_offset: int | None = None) -> Held:
        """Stop every such frame from now on, and all behind it."""

    def release(self, hold: Held) -> None:
        """Let held frames go on, in order."""

    def release_all(self) -> None:
        """Release every hold, oldest first."""

    def cut(self, src: str, dst: str, *, both_ways: bool = False, close: bool = False) -> object:
        """Lose all that is sent on the link; with close its connections are reset, now and later."""

    def delay(self, api: str, src: str, dst: str, direction: str, seconds: float) -> object:
        """Hand every such frame on that much later."""

    def double(self, api: str, src: str, dst: str) -> object:
        """Deliver every such request twice from now on; its sender sees one answer."""

    def heal(self, rule: object) -> None:
        """Undo a cut, a delay or a doubling."""

    def heal_all(self) -> None:
        """Undo every cut, delay and doubling, and release every hold."""

    def connections(self, src: str, dst: str) -> int:
        """Count the link's connections that are open now."""

    def close(self) -> None:
        """End all links."""


class ZooKeeperView(Protocol):
    """What ZooKeeper holds, read past the links; and what only an operator of ZooKeeper can do."""

    def watch(self, topic: str, partition: int) -> None:
        """Record every change of the partition, the controller and the registrations from now on."""

    def name_of(self, broker_id: int) -> str | None:
        """A node's name, None for no broker (-1)."""

    def truth(self, topic: str, partition: int) -> PartitionTruth | None:
        """What ZooKeeper holds of the partition now; None when there is nothing yet."""

    def controller(self) -> str | None:
        """Who holds the controller's office now."""

    def office(self) -> int:
        """The session that holds the controller's office now, 0 when nobody does."""

    def registered(self, name: str) -> int:
        """The session that holds a node's registration now, 0 when it is not registered."""

    def expire(self, name: str) -> str:
        """End the session that holds a node's registration; give what was seen of it."""

    def depose(self) -> str:
        """Remove the controller's node, so that its holder loses office without failing."""

    def elect(self, topic: str, partition: int, name: str) -> str:
        """Ask the controller to make an ISR member leader, though nobody failed; give what was asked."""

    def close(self) -> None:
        """End the session; safe to call twice."""
