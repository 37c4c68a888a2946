"""
Real machines: the nodes of one run on one host, and what faults do to them.

harness/environment/opening.py makes the cluster of a run out of them. The simulator has machines of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random

from harness import limits
from harness.ability import Ability
from harness.beneath import Folder
from harness.bit_rot import Flip, Where
from harness.cleanup.ledger import Ledger
from harness.clocks import Reading, Setting
from harness.cluster.disk_error import DiskError
from harness.environment.clocks import NodesClocks, asked
from harness.environment.collector import Collector
from harness.environment.node_logs import NodeLogs
from harness.environment.of_target import why_lacking
from harness.environment.printed_lines import PrintedLines
from harness.hosts.base import Host
from harness.hosts.trees import copy_pass
from harness.launch import Address, Launch
from harness.logs.replica import BatchSeen, ReplicaLog
from harness.model import TargetError, UsageError
from harness.packets import Packets
from harness.run.spec import RunSpec
from harness.target.guarded import BrokenPartError
from harness.target.target import NodeSpec, Target


class RealMachines:
    """The nodes of one run on one host; see harness.cluster.interfaces.Machines for every call."""

    disk_error_s = limits.DISK_ERROR_S_MAX

    def __init__(
        self,
        *,
        host: Host,
        collector: Collector,
        printed_lines: PrintedLines | None,
        target: Target,
        spec: RunSpec,
        give_up: Callable[[Exception], object],
    ) -> None:
        """
        Keep an open host and collector; the caller adds node specs to `specs`.

        Args:
            give_up: Notes that an observation was lost: the run is unknown then, and says why.
            printed_lines: For targets whose nodes send no events; None for the others.
        """
        self.name = host.name
        self.power_tier = host.power_tier
        self.specs: dict[str, NodeSpec] = {}
        self._host = host
        self._collector = collector
        self._give_up = give_up
        self._printed_lines = printed_lines
        self._target = target
        self._logs = NodeLogs(target, self.disk, self._address, give_up)
        self._spec = spec
        self._torn = 0
        self._installed: dict[str, tuple[str, Mapping[str, str]]] = {}
        self._clocks = NodesClocks(spec, target)

    @property
    def ledger(self) -> Ledger:
        """The run's ledger, for processes besides its nodes."""
        return self._host.ledger

    def lacks(self, ability: Ability) -> str:
        """Return why the host or the target cannot do it, "" if they can."""
        return self._host.lacks(ability) or why_lacking(self._target, ability)

    def unfit(self, name: str, ability: Ability) -> str:
        """Return why the node's process cannot have it done to it: it was started with other clocks, say."""
        return self._clocks.unfit(name, ability)

    def boot(self, name: str) -> None:
        """Start the node's process as the target launches it."""
        try:
            launch = self._launch(name)
        except BrokenPartError as error:
            self._give_up(TargetError(str(error)))  # a schedule may go on without the node, and would prove less
            raise
        try:
            self._host.start(name, launch)
        except UsageError as error:
            raise UsageError(f"target {self._target.name}, launch: {error}") from error

    def _launch(self, name: str) -> Launch:
        clocks = self._clocks.at_start(name)
        spec = replace(self.specs[name], shows_clocks=clocks is not None)
        protocol, rules = self._installed.get(name, (self._spec.variant.protocol, self._spec.rules))
        launch = self._target.launch(spec, protocol, rules)
        return replace(launch, clocks=clocks)

    def install(self, name: str, protocol: str, rules: Mapping[str, str]) -> None:
        """Have the target launch it otherwise from its next start on."""
        self._installed[name] = protocol, rules

    def alive(self, name: str) -> bool:
        """Return True if the node's process exists; a paused one does."""
        return self._host.alive(name)

    def kill(self, name: str) -> str:
        """SIGKILL the node's process."""
        return self._host.kill(name)

    def stop(self, name: str) -> str:
        """SIGTERM the node's process, and return when it has ended."""
        return self._host.stop(name)

    def pause(self, name: str) -> str:
        """Freeze the node's process."""
        return self._host.pause(name)

    def paused(self, name: str) -> bool:
        """Return True if the kernel or the engine reports that the process is stopped."""
        return self._host.paused(name)

    def resume(self, name: str) -> str:
        """Resume a paused node."""
        return self._host.resume(name)

    def clocks(self, name: str) -> Reading:
        """Have the node's process print what it reads of its clocks, and return it."""
        return asked(self._host, self._target, name)

    def set_clocks(self, name: str, setting: Setting, seen: Reading) -> None:
        """Set the clocks of the node's process."""
        self._host.set_clocks(name, setting, seen)

    def flush(self, name: str) -> str:
        """Make everything on the node's disk durable."""
        return self._host.flush(name)

    def unflushed(self, name: str) -> tuple[str, ...]:
        """Return the files of the node's disk that have bytes which a power loss would take now."""
        return self._host.unflushed(name)

    def power_loss(self, name: str) -> str:
        """Kill the node's process and lose all data that was not flushed."""
        return self._host.power_loss(name)

    def torn_power_loss(self, name: str) -> str:
        """Kill the node's process and lose what was not flushed, but for pages that the run's seed chooses."""
        self._torn += 1
        return self._host.power_loss(name, Random(f"torn {self._spec.seed} {name} {self._torn}"))

    def lose_disk(self, name: str) -> str:
        """Give a node that is down an empty disk."""
        return self._host.lose_disk(name)

    def break_disk(self, name: str, error: DiskError) -> str:
        """Let the node's disk fail so from now on; return what was seen of it at once."""
        return self._host.break_disk(name, error)

    def disk_state(self, name: str) -> str:
        """Return what is wrong with the node's disk now, as the disk says."""
        return self._host.disk_state(name)

    def mend_disk(self, name: str) -> str:
        """Let the node's disk work again; return what it refused meanwhile."""
        return self._host.mend_disk(name)

    def impair_packets(self, name: str, how: Packets) -> None:
        """Let this become of the node's packets from now on."""
        self._host.impair_packets(name, how)

    def packets_impaired(self, name: str, how: Packets) -> bool:
        """Return True if this becomes of the node's packets now, as the kernel says."""
        return self._host.packets_impaired(name, how)

    def packets_met(self, name: str, how: Packets) -> int:
        """Return how many packets of the node it was done to so far."""
        return self._host.packets_met(name, how)

    def pass_packets(self, name: str, how: Packets) -> None:
        """Let the node's packets pass again."""
        self._host.pass_packets(name, how)

    def flip(self, name: str, topic: str, partition: int, where: Where) -> Flip:
        """
        Flip one byte of a replica's files, through the filesystem; see Machines.

        Raises:
            PreconditionError: There is no such file, or no batch in it; or the file may not be written.
        """
        found = self._logs.to_flip(name, topic, partition, where)
        was, now = bytes((found.before,)), bytes((found.after,))
        self._host.overwrite(name, found.path, found.position, was, now)
        return found

    def read_again(self, name: str, flip: Flip) -> str:
        """Return what a file of a state says since a byte of it was flipped, "" if nothing new."""
        return self._logs.read_again(name, flip)

    def delete_active_segment(self, name: str, topic: str, partition: int) -> str:
        """
        Remove the newest segment of a replica's log, with its indexes, as an operator does by hand.

        Source:  KAFKA-6361: "a workaround for the issue is to delete the log segment and restart".
        """
        gone = self._logs.newest_segment(name, topic, partition)
        for each in gone:
            self._host.unlink(name, each)
        return f"{', '.join(each.rpartition('/')[2] for each in gone)} deleted"

    def replica_log(self, name: str, topic: str, partition: int) -> ReplicaLog | None:
        """
        Return a replica's log as its files have it; None while there is none.

        Raises:
            PreconditionError: The node's data directory cannot be listed, or is a link by now.
        """
        return self._logs.whole(name, topic, partition)

    def second_store(self, name: str, topic: str, partition: int) -> tuple[str, Sequence[BatchSeen]]:
        """Return what a replica's second store is called and has; "" for none; raises as replica_log."""
        return self._logs.beside(name, topic, partition)

    def log_end(self, name: str, topic: str, partition: int) -> int:
        """Return where a replica's log ends, at little cost if its target can say it so; raises as replica_log."""
        return self._logs.end(name, topic, partition)

    def disk(self, name: str) -> Path:
        """Return the node's data directory, as a path of this machine."""
        return self._host.disk(name)

    def keep(self, name: str, folder: Path) -> None:
        """Copy the node's data directory to the folder, for later inspection."""
        folder.mkdir(parents=True, exist_ok=True)
        with Folder.no_link(self.disk(name)) as data, Folder.at(folder) as kept:
            copy_pass(data, kept, without=frozenset({"lost+found"}))

    def log_text(self, name: str) -> str:
        """Return everything that the node's processes have printed so far."""
        return self._host.log_text(name)

    def drain(self, name: str) -> None:
        """Wait until the history has every event and printed line of the node's dead processes."""
        self._collector.drain(name)
        if self._printed_lines is not None and name in self.specs:  # no line of a service is read
            self._printed_lines.look(name)

    def close(self) -> None:
        """Stop the nodes, then the collector and the printed lines; safe to call twice."""
        with ExitStack() as stack:
            stack.callback(self._collector.close)
            stack.callback(self._host.close)
            if self._printed_lines is not None:
                stack.callback(self._printed_lines.close)
            stack.callback(self._collector.end)

    def _address(self, name: str) -> Address | None:
        """Return where a node answers clients while it runs."""
        spec = self.specs.get(name)
        return None if spec is None else spec.place.client_outside
