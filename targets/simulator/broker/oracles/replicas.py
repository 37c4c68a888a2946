"""
The replicas of one partition as they were at the last look, node by node.

A look is quick where nothing has changed, as at most steps.
A record that a log lost while its node had no process went with the power: the node need not have it, until it
copies the record again or joins the ISR without it. So it is with what a follower cut to its high watermark while
the cluster is upgraded from a version without epochs (KIP-101, step 4.3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.cluster.disk_error import DiskError
from targets.broker.core.fences import is_same_topic
from targets.broker.core.messages import NO_TOPIC_ID, TopicPartition
from targets.broker.core.state import Phase, Replica, Role
from targets.simulator.broker.oracles.records import HOLE, Records
from targets.simulator.broker.storage.log import SimLog
from targets.simulator.broker.world import World


class Before(NamedTuple):
    """What a replica was before a step; replica is None where there was none."""

    replica: Replica | None
    role: Role
    epoch: int
    leader: int
    high_watermark: int


@dataclass(slots=True)
class Seen:
    """
    A node's replica at the last look.

    Attributes:
        records: the number of the record at every offset.
        batches: by their first offsets, the epoch of each and where it ends.
        replica: None while the node has no process, or no replica.
        was: what it was before the last look that found a change.
        moved: the number of the core's step at that look.
    """

    log: SimLog | None = None
    changes: int = -1
    records: list[int] = field(default_factory=list)
    batches: dict[int, tuple[int, int]] = field(default_factory=dict)
    replica: Replica | None = None
    role: Role = Role.NONE
    epoch: int = -1
    leader: int = -1
    phase: Phase = Phase.FAILED
    high_watermark: int = 0
    was: Before | None = None
    moved: int = -1

    def is_still(self, replica: Replica | None, log: SimLog | None) -> bool:
        """Return True if nothing that a rule uses has changed; called at every step, for every partition."""
        if replica is not self.replica or log is not self.log or (log is not None and log.changes != self.changes):
            return False
        return replica is None or (
            replica.high_watermark == self.high_watermark
            and replica.phase is self.phase
            and replica.leader_epoch == self.epoch
            and replica.role is self.role
            and replica.leader == self.leader
        )

    def forget(self) -> None:
        """Become as before the first look; `watch` keeps a reference to this object."""
        fresh = Seen()
        for name in self.__slots__:
            setattr(self, name, getattr(fresh, name))

    def now(self) -> Before:
        """Return the state as of the last look, to compare with a later one."""
        return Before(self.replica, self.role, self.epoch, self.leader, self.high_watermark)

    def before(self, core_step: int) -> Before:
        """Return the state before a core's step, if that is the last one that was looked at."""
        return self.was if self.was is not None and self.moved == core_step else self.now()


class Replicas:
    """
    The nodes' replicas of one partition.

    Attributes:
        seen: by node.
        taken: by node, the records that a power loss, a flipped byte or such a cut took from it.
        fallen: the offsets at which such a cut took records from any: replicas may differ there from then on.
    """

    def __init__(
        self, world: World, tp: TopicPartition, records: Records, complete: Callable[[list[int]], None]
    ) -> None:
        """Start without a look; `complete` puts in what compaction has removed from the records of a log."""
        self._complete = complete
        self.seen = {name: Seen() for name in world.nodes}
        self.taken: dict[str, set[int]] = {name: set() for name in world.nodes}
        self.fallen: set[int] = set()
        self._twice: dict[str, Counter[int]] = {name: Counter() for name in world.nodes}
        # By node what a power loss brought back, by offset, of records that it took from another offset.
        self._elsewhere: dict[str, dict[int, int]] = {name: {} for name in world.nodes}
        self._world = world
        self._tp = tp
        self._records = records
        self._topic_id = NO_TOPIC_ID

    def look(self, name: str, *, started: bool, stepped: bool = False, fell_back: bool = False) -> Before | None:
        """
        Read a node's replica; return what it was before, None if nothing has changed.

        Args:
            started: the node's process has just opened its disk.
            stepped: it has just made a step. One that ended it takes no records but those that it cut itself,
                unless a flush failed.
            fell_back: it has just cut its log to its high watermark, as it may within an upgrade.
        """
        seen, node = self.seen[name], self._world.nodes[name]
        replica = None if node.process is None else node.process.broker.state.replicas.get(self._tp)
        log = node.disk.logs.get(self._tp)
        if log is not None and not is_same_topic(log.topic_id, self._topic_id):
            replica, log = None, None
        if seen.is_still(replica, log):
            return None
        seen.was = before = seen.now()
        seen.moved = self._world.core_steps
        if log is not seen.log or (log is not None and log.changes != seen.changes):
            before_it = seen.records
            taken = not stepped or node.disk.errors.armed is DiskError.FLUSH
            self._look_at_log(name, log, cut_off=started or fell_back or (node.process is None and taken))
            if fell_back:
                self.fallen.update(range(len(seen.records), len(before_it)))
        seen.replica = replica
        if replica is None:
            seen.role, seen.phase = Role.NONE, Phase.FAILED
        else:
            seen.role, seen.phase, seen.leader = replica.role, replica.phase, replica.leader
            seen.epoch, seen.high_watermark = replica.leader_epoch, replica.high_watermark
        return before

    def renew(self, topic_id: int) -> None:
        """Look anew at all nodes, and from now on only at replicas of this topic: it was created again."""
        self._topic_id = topic_id
        for name, seen in self.seen.items():
            self.taken[name].clear()
            self._elsewhere[name].clear()
            seen.forget()
            self.look(name, started=False)

    def joined(self, name: str) -> None:
        """Excuse no more of a node than the batches that are damaged in its log: it has joined the ISR."""
        seen, taken = self.seen[name], self.taken[name]
        taken.clear()
        damaged = [] if seen.log is None else seen.log.lost
        there = (batch for batch in damaged if seen.records[batch.base_offset : batch.base_offset + 1] == [HOLE])
        taken.update(self._records.of_batches(there))

    def is_of_older_topic(self, name: str) -> bool:
        """Return True if a node's replica belongs to a deleted topic of this name: it has not heard yet."""
        log = self._world.nodes[name].disk.logs.get(self._tp)
        return log is not None and not is_same_topic(log.topic_id, self._topic_id)

    def look_at_dead(self) -> None:
        """Note what power losses took before any check: a power loss makes no step."""
        for name in self.seen:
            if self._world.nodes[name].process is None:
                self.look(name, started=False)

    def _look_at_log(self, name: str, log: SimLog | None, *, cut_off: bool) -> None:
        seen, taken = self.seen[name], self.taken[name]
        before, was = seen.records, seen.batches
        seen.batches = {} if log is None else _batches(log)
        seen.log, seen.changes = log, -1 if log is None else log.changes
        seen.records = [] if log is None else self._records.of_log(log)
        self._complete(seen.records)
        if cut_off and before:
            taken.update(before)
            self._twice[name] |= Counter({number: count for number, count in Counter(before).items() if count > 1})
            self._elsewhere[name] |= _moved(before, seen.records, was, seen.batches)
        if log is not None and log.lost:
            lost = self._records.of_batches(log.lost)
            taken.update(lost)
            counts = Counter(lost) + Counter(seen.records)
            self._twice[name] |= Counter({number: counts[number] for number in lost if counts[number] > 1})
        if taken:
            held = self._copied(name)
            # A record that was sent twice is there again when each of its copies is.
            short = {number for number, count in self._twice[name].items() if held.count(number) < count}
            taken.difference_update(set(held) - short if short else held)

    def _copied(self, name: str) -> list[int]:
        """Return what a node's log holds, without what an undone cut brought back where it was not before."""
        records, elsewhere = self.seen[name].records, self._elsewhere[name]
        for offset in [at for at, number in elsewhere.items() if records[at : at + 1] != [number]]:
            del elsewhere[offset]
        return [number for at, number in enumerate(records) if at not in elsewhere] if elsewhere else records

    # --- words -----------------------------------------------------------------------------------------------
    def place(self, name: str) -> str:
        """Return a node with its role, for sentences."""
        seen = self.seen[name]
        if seen.replica is None:
            return f"{name} (down)"
        if seen.role is Role.LEADER:
            return f"{name} (leader in epoch {seen.epoch}, high watermark {seen.high_watermark})"
        leader = self._world.name_of(seen.leader)
        return f"{name} ({seen.role.value} of {leader} in epoch {seen.epoch})"


def _batches(log: SimLog) -> dict[int, tuple[int, int]]:
    """Return, by its first offset, the epoch of each batch of a log, and where it ends."""
    batches = (batch for segment in log.segments for batch in segment.batches)
    return {batch.base_offset: (batch.leader_epoch, batch.next_offset) for batch in batches}


def _moved(
    before: list[int], after: list[int], was: dict[int, tuple[int, int]], now: dict[int, tuple[int, int]]
) -> dict[int, int]:
    """
    Return the records, by offset, that a log has after a power loss where it did not have them before.

    What one leader had at an offset another may have appended at the same one, and only that is committed.
    """
    known = set(before)
    other = {at for base, (epoch, end) in now.items() if was.get(base) != (epoch, end) for at in range(base, end)}
    return {
        at: number
        for at, number in enumerate(after)
        if number in known and (at in other or before[at : at + 1] != [number])
    }
