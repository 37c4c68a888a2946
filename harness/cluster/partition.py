"""
One partition of a cluster under test: its state, its replicas' logs, and what its replicas reported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from harness.cluster.interfaces import Machines
from harness.events import (
    Append,
    Awaiting,
    Corrupt,
    Event,
    Follower,
    Leader,
    Learned,
    LogCleaned,
    LogStart,
    Printed,
    Recovered,
    Repaired,
    Started,
    Stopped,
    Stuck,
    TookFormat,
    Truncate,
)
from harness.logs.replica import BatchSeen, ReplicaLog
from harness.target.metadata import Metadata, PartitionTruth
from harness.target.operator import Operator
from harness.target.target import Target
from harness.workload.plan import Place

# The events that `note` understands.
NOTED: Final = (
    *(Leader, Follower, Started, Stopped, Stuck, Awaiting, Printed, Learned),
    *(Append, Corrupt, LogCleaned, LogStart, Recovered, Repaired, TookFormat, Truncate),
)


@dataclass(slots=True, kw_only=True)
class Partition:
    """
    One partition, as files, the metadata and the events of nodes show it.

    Attributes:
        replicas: its nodes in the order of assignment; the first one leads at first.
        addresses: node's name -> the "host:port" that clients connect to; {} if clients need none.
        emits_events: whether its nodes say themselves what they do.
        exited: the nodes that ended by themselves, which its cluster keeps.
    """

    place: Place
    replicas: tuple[str, ...]
    host: Machines
    target: Target
    emits_events: bool
    metadata: Metadata
    operator: Operator
    addresses: Mapping[str, str]
    exited: Collection[str]
    _leads_in: dict[str, int] = field(default_factory=dict)
    _heard: dict[str, int] = field(default_factory=dict)
    _compacted: dict[str, int] = field(default_factory=dict)
    # Node -> the topic's message format, if the node has taken up another one than it was started with.
    _formats: dict[str, int] = field(default_factory=dict)
    _stuck: set[str] = field(default_factory=set)
    _awaiting: set[str] = field(default_factory=set)
    # Node -> the first offsets of the batches that it reported as damaged, and has not copied again.
    _damaged: dict[str, set[int]] = field(default_factory=dict)
    # Node -> where its log ends by its own reports, which may come a little later than what they tell of.
    _ends: dict[str, int] = field(default_factory=dict)

    # --- files and metadata ----------------------------------------------------------------------------------
    def log(self, name: str) -> ReplicaLog | None:
        """Return a replica's log as read from its files, None if there is none."""
        return self.host.replica_log(name, *self.place)

    def second_store(self, name: str) -> tuple[str, Sequence[BatchSeen]]:
        """Return what a replica's second store is called and has; "" and nothing for none."""
        return self.host.second_store(name, *self.place)

    def log_end(self, name: str) -> int:
        """Return the log end offset in a replica's files, -1 if there is no log."""
        return self.host.log_end(name, *self.place)

    def log_start(self, name: str) -> int:
        """Return the log start offset in a replica's files, -1 if there is no log."""
        found = self.log(name)
        return -1 if found is None else found.log_start_offset

    def checkpoint(self, name: str) -> int:
        """Return the high watermark in a replica's checkpoint file, -1 if there is none."""
        found = self.log(name)
        return -1 if found is None or found.high_watermark is None else found.high_watermark

    def truth(self) -> PartitionTruth | None:
        """Return the partition's state in the metadata; None while there is none."""
        return self.metadata.truth(*self.place)

    def leader(self) -> str | None:
        """Return the leader that the metadata name, None for no leader."""
        truth = self.truth()
        return None if truth is None else truth.leader

    def isr(self) -> frozenset[str | None]:
        """Return the ISR that the metadata show; None is a node that is no node of the run."""
        truth = self.truth()
        return frozenset() if truth is None else frozenset(truth.in_sync)

    def is_moving(self) -> bool:
        """Return True while the nodes that the partition is asked to be on are not those that it is on."""
        (topic, partition) = self.place
        return {*self.operator.wanted(topic, partition)} != {*self.metadata.assignment(topic).get(partition, ())}

    # --- what nodes reported -----------------------------------------------------------------------------------
    def reported_epoch(self, name: str) -> int:
        """Return the epoch in which a node last reported that it leads, -1 if it never did or follows since."""
        return self._leads_in.get(name, -1)

    def heard_epoch(self, name: str) -> int:
        """Return the epoch in which a node last reported that it leads or follows, -1 if not since it started."""
        return self._heard.get(name, -1)

    def is_stuck(self, name: str) -> bool:
        """Return True if a node reported that it cannot go on following."""
        return name in self._stuck

    def is_awaiting(self, name: str) -> bool:
        """Return True if a node reported that it restarted as leader and waits for a newer epoch."""
        return name in self._awaiting

    def claims_leadership(self, name: str, epoch: int) -> bool:
        """
        Return True if a node claims to be the leader.

        If nodes emit events, the node's last report must name this epoch. Otherwise the node itself is asked, if
        it has an address, and the epoch is not checked.
        """
        if self.emits_events:
            return self.reported_epoch(name) == epoch
        return name not in self.addresses or self.target.clients.leads(self.addresses[name], *self.place)

    def note(self, name: str, event: Event) -> None:
        """Track a node's role by an event of its own, or by what the wire and its printed lines show."""
        if isinstance(event, Append | Recovered):
            self._ends[name] = event.end if isinstance(event, Append) else event.log_end_offset
        match event:
            case Leader(epoch=epoch):
                self._heard[name] = self._leads_in[name] = epoch
                self._note_moving(name)
            case Follower(epoch=epoch, kept=kept):
                self._heard[name] = epoch
                self._leads_in.pop(name, None)
                if not kept:
                    self._note_moving(name)
            case Started():
                self._leads_in.pop(name, None)
                self._heard.pop(name, None)
                self._formats.pop(name, None)
                self._damaged.pop(name, None)  # it finds and reports it anew
                self._note_moving(name)
            case Corrupt(base=base):
                self._damaged.setdefault(name, set()).add(base)
            case Repaired(base=base):
                self._damaged.get(name, set()).discard(base)
            case LogCleaned(upto=upto):
                self._compacted[name] = upto
            case TookFormat(to=to) | Printed(what="format", to=int(to)):
                self._formats[name] = to
            case Truncate(to=to, end=end):
                self._ends[name] = end
                self._damaged[name] = {base for base in self._damaged.get(name, ()) if base < to}
            case LogStart(to=to):
                self._damaged[name] = {base for base in self._damaged.get(name, ()) if base >= to}
            case Stopped():  # its topic was deleted, and epochs begin anew with the next one
                self._leads_in.pop(name, None)
                self._heard.pop(name, None)
                self._ends.pop(name, None)
                self._note_moving(name)
            case Stuck() | Printed(what="stuck"):
                self._stuck.add(name)
            case Awaiting():
                self._awaiting.add(name)
            case Learned(error=0) as command:
                self._note_command(command)

    def compacted(self, name: str) -> int:
        """Return the offset up to which a node said last that it compacted its log, 0 if it did not."""
        return self._compacted.get(name, 0)

    def message_format(self, name: str) -> int:
        """Return in which message format a node would write as leader, by its own word; -1 before it has any."""
        return self._formats.get(name, -1)

    def starts(self, name: str) -> None:
        """Forget that a node was stuck: it is being started."""
        self._stuck.discard(name)

    def _note_moving(self, name: str) -> None:
        """Forget reports of a node that are void once it leads, follows or starts anew."""
        self._stuck.discard(name)
        self._awaiting.discard(name)

    def _note_command(self, command: Learned) -> None:
        """Note that a node took what it learned: it leads or follows in that epoch, and is stuck no more."""
        name = command.link[1]
        if command.epoch > self._heard.get(name, -1):
            self._heard[name] = command.epoch
            self._stuck.discard(name)

    # --- whether it works --------------------------------------------------------------------------------------
    def leads(self, name: str) -> bool:
        """Return True if the metadata name this node as the leader, and the node claims leadership."""
        truth = self.truth()
        if truth is None or truth.leader != name:
            return False
        return self.claims_leadership(name, truth.epoch)

    def settled(self, name: str) -> bool:
        """
        Return True if a replica's log ends where the leader's does, or the replica is stuck or has exited.

        The log of who has yet to hear of the partition may be that of another one, which ends there by chance.
        """
        truth = self.truth()
        if truth is None or truth.leader is None:
            return False
        ends = name not in truth.unheard and self.log_end(name) == self.log_end(truth.leader)
        return ends or self.is_stuck(name) or name in self.exited

    def whole(self, without: Collection[str] = ()) -> bool:
        """Return True if there is a leader, and every replica except `without` is settled."""
        leader = self.leader()
        awaited = (name for name in self.replicas if name not in without)
        return leader is not None and self.leads(leader) and all(map(self.settled, awaited))

    def is_told(self) -> bool:
        """Return True if no replica has more in its log than it has reported, as far as it reports."""
        return all(self._ends.get(name, end) >= end for name in self.replicas if (end := self.log_end(name)) >= 0)

    def in_sync(self) -> bool:
        """Return True if the ISR is all replicas."""
        return self.isr() == frozenset(self.replicas)

    def outside(self) -> tuple[str, ...]:
        """Return the replicas that could be in the ISR and are not: a stuck one, or one that exited, cannot."""
        isr = self.isr()
        able = (name for name in self.replicas if name not in self.exited and not self.is_stuck(name))
        return tuple(name for name in able if name not in isr)

    def successor(self) -> str:
        """
        Return who should lead so that the ISR can become whole, "" if the leader may go on.

        A leader keeps a damaged batch, and a follower that has yet to copy it never gets it (docs/bit-rot.md).
        """
        if not any(self._damaged.values()):  # asked at every step of the simulator, so first what costs nothing
            return ""
        leader = self.leader()
        if leader is None or not self._damaged.get(leader) or self.in_sync():
            return ""
        isr = self.isr()
        return next((name for name in self.replicas if name in isr and not self._damaged.get(name)), "")

    def lacking(self) -> str:
        """Return what is missing for the partition to be whole, or who is missing in its ISR."""
        truth, leader = self.truth(), self.leader()
        if leader is None:
            return f"a leader, not {truth}"
        if self.is_awaiting(leader):
            return f"{leader} to lead; it waits for an epoch newer than {truth.epoch if truth else -1}"
        if not self.leads(leader):
            return f"{leader} to lead in the epoch that it was elected for, {truth}"
        if unheard := sorted(truth.unheard.intersection(self.replicas)) if truth else []:
            return f"{', '.join(unheard)} to hear of the partition, whose leader is {leader}"
        ends = {name: self.log_end(name) for name in self.replicas}
        if not all(map(self.settled, self.replicas)) or not (outside := self.outside()):
            return f"all replicas caught up with leader {leader}; log ends {ends}, ISR {self.isr_text()}"
        return f"{', '.join(outside)} in the ISR, which is {self.isr_text()}; log ends {ends}"

    def isr_text(self) -> str:
        """Return the ISR that the metadata show, as text."""
        return ", ".join(sorted(map(str, self.isr()))) or "empty"
