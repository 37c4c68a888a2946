"""The simulated machines and their time, as the runner and the nemeses see them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol, TypeVar

from harness import limits
from harness.ability import Ability
from harness.bit_rot import Flip, Where, nothing_to_flip
from harness.clocks import Moment, Reading, Setting, Which
from harness.cluster.disk_error import SLOW_MS, DiskError
from harness.logs.replica import BatchSeen, ReplicaLog
from harness.model import PreconditionError
from harness.packets import Packets
from targets.simulator.engine.clock import NS_PER_MS, NS_PER_S
from targets.simulator.engine.node import Node
from targets.simulator.engine.node_clock import WallClock
from targets.simulator.engine.simulation import Simulation

T = TypeVar("T")


class SimTime:
    """Virtual time: only waiting advances it."""

    def __init__(self, world: Simulation[Any]) -> None:
        """Use this world's time."""
        self._world = world

    def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Step until the condition holds; return False if it does not within the time."""
        return self._world.until(condition, seconds)

    def together(self, act: Callable[[str], T], names: Sequence[str]) -> list[T]:
        """Call `act` for one name after another: without a wait, no time passes in between."""
        return [act(name) for name in names]


class SimMachines:
    """
    The nodes of a world; see harness.cluster.interfaces.Machines for every call.

    Args:
        disks: the nodes whose disk can lose power.
    """

    def __init__(self, world: Simulation[Any], disks: Collection[str]) -> None:
        """Use this world's nodes."""
        self.name = "sim"
        self.power_tier = "sim"
        # Longer than the time between two checkpoints of the high watermarks, which every broker at work writes.
        self.disk_error_s = 0.12
        self._world = world
        self._nodes: Mapping[str, Node] = world.nodes
        self._disks = frozenset(disks)

    def lacks(self, ability: Ability) -> str:
        """Return "": simulated machines can do everything."""
        del ability
        return ""

    def unfit(self, name: str, ability: Ability) -> str:
        """Return "": every process can have everything done to it."""
        del name, ability
        return ""

    def boot(self, name: str) -> None:
        """Start the node's process."""
        node = self._nodes[name]
        if node.process is not None:
            raise PreconditionError(f"start {name}: it runs already; expected a node that is down")
        node.boot()

    def install(self, name: str, protocol: str, rules: Mapping[str, str]) -> None:
        """Have the node's next process follow these rules."""
        self._nodes[name].install(protocol, rules)

    def alive(self, name: str) -> bool:
        """Return True if the node has a process, paused or not."""
        return self._nodes[name].process is not None

    def kill(self, name: str) -> str:
        """End the process at once; the page cache survives."""
        self._running("kill", name).kill()
        return f"killed at {self._now()}"

    def stop(self, name: str) -> str:
        """End the process cleanly: everything is flushed, and the next start knows it."""
        node = self._running("stop", name)
        node.stop()
        self._world.until(lambda: node.process is None, limits.PROCESS_END_S_MAX)
        return f"ended cleanly at {self._now()}"

    def pause(self, name: str) -> str:
        """Stop the process without ending it."""
        self._running("pause", name).pause()
        return f"stopped at {self._now()}"

    def paused(self, name: str) -> bool:
        """Return True if the node's process is paused."""
        return self._nodes[name].paused

    def resume(self, name: str) -> str:
        """Resume a paused node."""
        node = self._running("resume", name)
        if not node.paused:
            raise PreconditionError(f"resume {name}: it is not paused; expected a paused node")
        node.resume()
        return f"runs at {self._now()}"

    def clocks(self, name: str) -> Reading:
        """Return what the node's clocks show; the harness's show the world's time."""
        node, now_ns = self._running("read the clocks of", name), self._world.clock.now_ns
        if node.paused:
            raise PreconditionError(f"read the clocks of {name}: it is paused; expected a process that runs")
        now = Moment(wall_ns=now_ns, monotonic_ns=now_ns)
        return Reading(wall_ns=node.wall_ns(), monotonic_ns=node.clock.now_ns, asked=now, answered=now)

    def set_clocks(self, name: str, setting: Setting, seen: Reading) -> None:
        """Set the node's clocks; they go on from what they show, whatever was seen of them."""
        del seen
        node, now_ns = self._nodes[name], self._world.clock.now_ns
        if setting.which is Which.BOTH:
            node.run_clocks(ahead_s=setting.ahead_s, rate=setting.rate)
            return
        ahead_ns = round(setting.ahead_s * NS_PER_S)
        frozen_ns = now_ns + ahead_ns if setting.frozen else None
        # Beside the right time, whatever both clocks have gained before.
        node.wall = WallClock(ahead_ns=ahead_ns - node.gained_ns(), frozen_ns=frozen_ns)

    def flush(self, name: str) -> str:
        """Make everything on the node's disk durable."""
        return f"{self._nodes[name].disk.sync()} batches were not durable"

    def unflushed(self, name: str) -> tuple[str, ...]:
        """Return the files of the node's logs that have batches which a power loss would take now."""
        return self._nodes[name].disk.unflushed()

    def power_loss(self, name: str) -> str:
        """End the process and lose what was not flushed."""
        if name not in self._disks:
            raise PreconditionError(f"power loss of {name}: its disk cannot lose power; expected a replica's")
        return f"killed; {self._nodes[name].lose_power()}"

    def torn_power_loss(self, name: str) -> str:
        """End the process and lose a part of what was not flushed, with torn batches and zeros behind the rest."""
        if name not in self._disks:
            raise PreconditionError(f"power loss of {name}: its disk cannot lose power; expected a replica's")
        return f"killed; {self._nodes[name].lose_power(torn=True)}"

    def lose_disk(self, name: str) -> str:
        """Give the node an empty disk in place of its own."""
        if self.alive(name):
            raise PreconditionError(f"lose the disk of {name}: it runs; expected a node that is down")
        return f"{self._nodes[name].disk.empty()} logs lost"

    def break_disk(self, name: str, error: DiskError) -> str:
        """Have one of the node's next calls fail, or all take longer."""
        self._nodes[name].break_disk(error)
        return f"every call takes {SLOW_MS} ms longer" if error is DiskError.SLOW else ""

    def disk_state(self, name: str) -> str:
        """Return what is wrong with the node's disk now."""
        return self._nodes[name].disk.errors.armed or ""

    def mend_disk(self, name: str) -> str:
        """Have the node's disk report no error any more; return what failed meanwhile."""
        return self._nodes[name].disk.errors.mend()

    def impair_packets(self, name: str, how: Packets) -> None:
        """Let this become of the node's packets from now on, after a restart of the node too."""
        self._world.network.impairments[name, how] = 0

    def packets_impaired(self, name: str, how: Packets) -> bool:
        """Return True if this becomes of the node's packets now."""
        return (name, how) in self._world.network.impairments

    def packets_met(self, name: str, how: Packets) -> int:
        """Return how many packets of the node it was done to so far."""
        return self._world.network.impairments.get((name, how), 0)

    def pass_packets(self, name: str, how: Packets) -> None:
        """Let the node's packets pass again."""
        self._world.network.let_pass(name, how)

    def flip(self, name: str, topic: str, partition: int, where: Where) -> Flip:
        """Flip a byte of a replica's log or checkpoint, in the page cache and on the medium."""
        found = None if where.is_state else self._nodes[name].disk.flip(topic, partition, where)
        if found is None:
            raise PreconditionError(f"{name}: {nothing_to_flip(topic, partition, where)}")
        return found

    def read_again(self, name: str, flip: Flip) -> str:
        """Return "": a broker of this kind has no file of a state."""
        del name, flip
        return ""

    def delete_active_segment(self, name: str, topic: str, partition: int) -> str:
        """Remove the newest segment of a replica's log."""
        if self.alive(name):
            raise PreconditionError(f"delete a segment of {name}: it runs; expected a node that is down")
        gone = self._nodes[name].disk.delete_active_segment(topic, partition)
        if gone is None:
            raise PreconditionError(f"{name}: no segment of {topic}-{partition} to delete; expected one at least")
        return f"{gone} deleted"

    def replica_log(self, name: str, topic: str, partition: int) -> ReplicaLog | None:
        """Return a replica's log as its disk holds it."""
        return self._nodes[name].disk.replica_log(topic, partition)

    def second_store(self, name: str, topic: str, partition: int) -> tuple[str, Sequence[BatchSeen]]:
        """Return that there is none: each replica has one log."""
        del name, topic, partition
        return "", ()

    def log_end(self, name: str, topic: str, partition: int) -> int:
        """Return where a replica's log ends."""
        found = self.replica_log(name, topic, partition)
        return -1 if found is None else found.log_end_offset

    def log_text(self, name: str) -> str:
        """Return the printed lines of the node's processes so far."""
        return "\n".join(self._nodes[name].printed)

    def drain(self, name: str) -> None:
        """Do nothing: events are recorded at once."""

    def close(self) -> None:
        """Do nothing: nodes end with their world, and the thread that cancels a run must not touch them."""

    def _running(self, what: str, name: str) -> Node:
        node = self._nodes[name]
        if node.process is None:
            raise PreconditionError(f"{what} {name}: no process is there; expected one that runs")
        return node

    def _now(self) -> str:
        return f"{self._world.clock.now_ns / NS_PER_MS:.1f} ms of virtual time"


class Servers(Protocol):
    """The processes of a world's services."""

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """The servers of each kind."""

    def alive(self, name: str) -> bool:
        """Return True if the server has a process, paused or not."""

    def paused(self, name: str) -> bool:
        """Return True if the server's process is paused."""

    def kill(self, name: str) -> str:
        """End the server's process; what it promised is on its disk."""

    def pause(self, name: str) -> str:
        """Stop the server's process without ending it."""

    def resume(self, name: str) -> str:
        """Resume a paused server."""


class ServedMachines(SimMachines):
    """The nodes of a world, with the servers of its services: nodes that are no replicas."""

    def __init__(self, world: Simulation[Any], disks: Collection[str], servers: Servers) -> None:
        super().__init__(world, disks)
        self._servers = servers
        self._names = frozenset(chain(*servers.names.values()))

    def alive(self, name: str) -> bool:
        """Return True if the node has a process, paused or not."""
        return self._servers.alive(name) if name in self._names else super().alive(name)

    def kill(self, name: str) -> str:
        """End the process at once."""
        return self._servers.kill(name) if name in self._names else super().kill(name)

    def stop(self, name: str) -> str:
        """End the process cleanly."""
        return self._servers.kill(name) if name in self._names else super().stop(name)

    def power_loss(self, name: str) -> str:
        """End the process and lose what was not flushed; a server has flushed what it promised."""
        return self._servers.kill(name) if name in self._names else super().power_loss(name)

    def torn_power_loss(self, name: str) -> str:
        """As power_loss."""
        return self._servers.kill(name) if name in self._names else super().torn_power_loss(name)

    def pause(self, name: str) -> str:
        """Stop the process without ending it."""
        return self._servers.pause(name) if name in self._names else super().pause(name)

    def paused(self, name: str) -> bool:
        """Return True if the process is paused."""
        return self._servers.paused(name) if name in self._names else super().paused(name)

    def resume(self, name: str) -> str:
        """Resume a paused process."""
        return self._servers.resume(name) if name in self._names else super().resume(name)
