"""
The rules of one partition: what is committed stays, on every replica that may be elected, and followers agree.

Records are compared by content, never by epochs or ends.
A replica need not have a record that a power loss took from it, until it copies the record again or joins the ISR
without it. If such a replica leads, the record is excused from then on, and so is what it shows in its place: the
end checkers, which follow every copy, decide whether its loss was permitted. Where unclean elections are allowed,
one excuses what the new ISR lacks, and what a leader of before it commits on its own; what that leader commits
and the new ISR has, too, is committed. No other record is excused.
Below the start of a leader's log records were deleted on purpose: no rule asks for them any more. The start of a
log rises by such a deletion alone, on followers after their leaders, and falls only with the log itself.
A topic that is deleted and created again begins anew; where topics have ids, what is left of the old one is not
looked at any more.
Source:  hachikuji/kafka-specification, StrongIsr, remembering what was exposed instead of who exposed it, so that
         it outlives a leader that dies; PrefixMatch is our own.
"""

from __future__ import annotations

from collections.abc import Sequence

from targets.broker.core.fences import is_same_topic
from targets.broker.core.messages import NO_TOPIC_ID, TopicPartition
from targets.broker.core.state import Phase, Role
from targets.broker.core.zookeeper import leader_and_isr_path
from targets.simulator.broker.coordination import state_in
from targets.simulator.broker.oracles.compacted import Compacted
from targets.simulator.broker.oracles.lives import Lives
from targets.simulator.broker.oracles.records import HOLE, Records
from targets.simulator.broker.oracles.replicas import Before, Replicas
from targets.simulator.broker.oracles.violation import Rule, Violations
from targets.simulator.broker.storage.log import SimLog
from targets.simulator.broker.world import World


class PartitionOracle:
    """
    The rules, checked on one partition of one world; `watch` calls it where something may have changed.

    Attributes:
        committed: the number of the record at every offset that a leader has exposed.
        start: the highest start of a leader's log, or of any where replicas delete on their own.
    """

    def __init__(self, world: World, tp: TopicPartition, violations: Violations, lives: Lives) -> None:
        """Look at every node for the first time."""
        self.tp = tp
        self.records = Records()
        self.committed: list[int] = []
        self.compacted = Compacted(world, self.records, self.committed)
        self.replicas = Replicas(world, tp, self.records, self.compacted.complete)
        self.start = 0
        # Whether replicas delete by their logs' age or size, each on its own.
        self._retains = any(
            node.config.retention_ms or node.config.retention_bytes for node in world.nodes.values()
        )
        self._starts: dict[str, tuple[SimLog, int, int]] = {}  # of each node's log, and how often it was begun
        self._world = world
        self._violations = violations
        self._lives = lives
        self._path = leader_and_isr_path(tp)
        self._ids = dict(world.ids)
        self._isr: tuple[str, ...] = ()
        self._leaders: dict[int, str] = {}
        self._asked: dict[str, int] = {}  # of each node the process that a leader last asked to have in the ISR
        self._excused: set[int] = set()
        # Whether unclean elections are allowed, and the epoch of the last one.
        self._may_be_unclean = any(node.config.unclean_election for node in world.nodes.values())
        self._unclean_epoch = -1
        # Of the topic: its id, whether it is deleted, and what was committed in those of its name before.
        self._topic_id = NO_TOPIC_ID
        self._deleted = False
        self._past: set[int] = set()
        for name in world.nodes:
            before = self.replicas.look(name, started=False)
            if before is not None:
                self._judge_leader(name, before)
        self.on_state()

    # --- events ----------------------------------------------------------------------------------------------
    def on_step(self, name: str, *, started: bool, fell_back: bool = False) -> None:
        """Look at a node that has just made a step, and check the rules that a change may have broken."""
        before = self.replicas.look(name, started=started, stepped=True, fell_back=fell_back)
        if before is None:
            return
        self._judge_leader(name, before)
        self._judge_start(name, before)
        self.replicas.look_at_dead()
        if self.replicas.seen[name].role is Role.LEADER:
            self._judge_exposed(name)
        else:
            self._judge_high_watermark(name)
        if name in self._isr:
            self._judge_isr((name,))
        if not self._broken(Rule.PREFIX):
            self._judge_prefix(name)

    def on_state(self) -> None:
        """Read the partition's state in ZooKeeper, and check the replicas that may be elected."""
        node = self._world.zookeeper.tree.nodes.get(self._path)
        if node is None:
            # The topic is deleted: its replicas go one by one.
            self._isr, self._deleted = (), True
            return
        state = state_in(node)
        if self._deleted or (self._topic_id != NO_TOPIC_ID and not is_same_topic(self._topic_id, state.topic_id)):
            self._renew(state.topic_id)
        self._topic_id = state.topic_id or self._topic_id
        names = (self._world.name_of(member) for member in state.isr)
        before, self._isr = self._isr, tuple(name for name in names if name is not None)
        self.replicas.look_at_dead()
        if self._may_be_unclean and not set(self._isr) & set(before):
            self._unclean_epoch = state.leader_epoch
            self._excused.update(self._lacking(self.committed))
        for member in self._isr:
            # A member that joins must have all; unless it was asked for an earlier process of it (KIP-903).
            if member not in before and self._is_as_when_asked(member):
                self.replicas.joined(member)
        self._judge_isr(self._isr)

    def on_isr_asked(self, leader: str, isr: Sequence[int]) -> None:
        """Note of which processes a leader has heard that it asks ZooKeeper to have in the ISR."""
        for member in filter(None, map(self._world.name_of, isr)):
            self._asked[member] = self._lives.heard(leader, member)

    def _is_as_when_asked(self, member: str) -> bool:
        life = self._lives.now(member)
        return self.replicas.seen[member].replica is not None and self._asked.get(member, life) == life

    def _renew(self, topic_id: int) -> None:
        """Forget what was committed: the topic was deleted and created again."""
        self._past.update(self.committed)
        self.committed.clear()
        self.compacted.forget()
        self.start = 0
        self._starts.clear()
        self._excused.clear()
        self._leaders.clear()
        self._deleted = False
        self.replicas.renew(topic_id)

    def on_acknowledged(self, offset: int, value: str) -> None:
        """Check that a record that a client was told to be committed is, at that offset."""
        if offset < self.start:
            return  # it was deleted meanwhile
        number = self.records.number_of(value)
        found = self.committed[offset] if offset < len(self.committed) else None
        if number is not None and (found == number or number in self._past or self.is_excused(number)):
            return
        instead = "nothing" if found is None else self.records.name(found)
        text = f"{value} was acknowledged at offset {offset}, where {instead} is committed"
        self.violated(Rule.ACKNOWLEDGED, (), offset, text)

    def is_excused(self, number: int) -> bool:
        """Return True if a power loss took the record from a leader, or from any node that has not it again."""
        return number in self._excused or any(number in taken for taken in self.replicas.taken.values())

    # --- checks ----------------------------------------------------------------------------------------------
    def _judge_leader(self, name: str, before: Before) -> None:
        """Check that a leader is the only one of its epoch, and its high watermark against the one before."""
        seen = self.replicas.seen[name]
        if seen.replica is None or seen.role is not Role.LEADER:
            return
        epoch, high = seen.epoch, seen.high_watermark
        end = 0 if seen.log is None else seen.log.end_offset
        first = self._leaders.setdefault(epoch, name)
        if first != name:
            self.violated(Rule.LEADERS, (first, name), end, f"{name} leads in epoch {epoch}, in which {first} led")
        led_on = before.replica is seen.replica and before.role is Role.LEADER and before.epoch == epoch
        said = f"the high watermark of {name}, leader in epoch {epoch}, is {high}"
        if led_on and high < before.high_watermark:
            text = f"{said}, and was {before.high_watermark} before"
            self.violated(Rule.HIGH_WATERMARK, (name,), high, text)
        elif high > end:
            self.violated(Rule.HIGH_WATERMARK, (name,), end, f"{said}, above the end of its log, {end}")
        elif seen.log is not None and high < seen.log.start_offset:
            start = seen.log.start_offset
            self.violated(Rule.HIGH_WATERMARK, (name,), start, f"{said}, below the start of its log, {start}")

    def _judge_start(self, name: str, before: Before) -> None:
        """Check that a log's start rises no further than a leader's, and does not fall while the log is there."""
        seen = self.replicas.seen[name]
        if seen.log is None:
            self._starts.pop(name, None)
            return
        start, end = seen.log.start_offset, seen.log.end_offset
        log, begun, earlier = self._starts.get(name, (seen.log, seen.log.begun, start))
        said = f"the log of {self.replicas.place(name)} starts at {start}"
        if log is seen.log and begun == log.begun and start < earlier <= end:
            self.violated(Rule.LOG_START, (name,), start, f"{said}, and started at {earlier} before")
        # A disk error may end a step once the new start is on the disk; then nobody else looks at what was there.
        ended = seen.replica is None
        mine, role = (before.replica, before.role) if ended else (seen.replica, seen.role)
        if mine is not None and ended and role is Role.LEADER and start > max(earlier, mine.high_watermark):
            text = f"{said}, past {mine.high_watermark}, its high watermark when it ended"
            self.violated(Rule.LOG_START, (name,), start, text)
        if mine is not None and (role is Role.LEADER or self._retains):
            self.start = max(self.start, start)
        elif mine is not None and start > self.start:
            self.violated(Rule.LOG_START, (name,), start, f"{said}, and no leader's past {self.start}")
        self._starts[name] = seen.log, seen.log.begun, start

    def _judge_high_watermark(self, name: str) -> None:
        """Check that a replica that does not lead has, below its high watermark, a log and what is committed."""
        seen = self.replicas.seen[name]
        if seen.replica is None or seen.log is None:
            return
        log, high = seen.log, seen.high_watermark
        mine, committed, start = seen.records[:high], self.committed, self.start
        if not log.start_offset <= high <= log.end_offset:
            text = f"{high}, outside its log, which spans {log.start_offset} to {log.end_offset}"
            self._high_watermark_is(name, high, text)
        elif mine[start:] != committed[start : len(mine)]:
            excused = self._excused | self.replicas.taken[name]
            for offset, number in enumerate(mine[start:], start=start):
                there = committed[offset] if offset < len(committed) else None
                if (
                    number == there
                    or number in excused
                    or offset in self.replicas.fallen
                    or (there is not None and (there == HOLE or there in excused))
                ):
                    continue
                instead = "nothing is" if there is None else f"{self.records.name(there)} was"
                text = (
                    f"{high}; it holds {self.records.name(number)} at offset {offset}, where {instead} committed"
                )
                self._high_watermark_is(name, offset, text)
                return

    def _high_watermark_is(self, name: str, offset: int, text: str) -> None:
        text = f"the high watermark of {self.replicas.place(name)} is {text}"
        self.violated(Rule.FOLLOWER_HIGH_WATERMARK, (name,), offset, text)

    def _lacking(self, records: Sequence[int]) -> set[int]:
        """Return those of the records, from offset 0 on, that are not deleted and that one of the ISR lacks."""
        members = [self.replicas.seen[member].records for member in self._isr]
        # A record that was sent twice may be in a member's log once, and its later copy not.
        return {
            record
            for offset, record in enumerate(records)
            if offset >= self.start and not all(offset < len(held) and held[offset] == record for held in members)
        }

    def _end_in_isr(self, records: Sequence[int], start: int) -> int:
        """Return the offset before which every member of the ISR has the records from `start` on."""
        members = [self.replicas.seen[member].records for member in self._isr]
        end = start
        while members and end < len(records) and all(held[end : end + 1] == [records[end]] for held in members):
            end += 1
        return end

    def _judge_exposed(self, name: str) -> None:
        """Remember the records that a leader exposes, and check that none contradicts a committed record."""
        seen, end = self.replicas.seen[name], self.replicas.seen[name].high_watermark
        self._excused |= self.replicas.taken[name]
        mine, committed = seen.records[:end], self.committed
        known = len(committed)
        if seen.epoch < self._unclean_epoch:
            # It was replaced by an unclean election and may not know it; nor may the new ISR, which copies on.
            self._excused.update(self._lacking(mine))
            self.compacted.learn(mine)
            committed += mine[known : self._end_in_isr(mine, known)]
            return
        start = self.start
        if mine[start:known] != committed[start : len(mine)]:
            pairs = zip(mine[start:], committed[start:], strict=False)
            for offset, (number, before) in enumerate(pairs, start=start):
                if number != before and number not in self._excused:
                    self._replace(name, offset, number)
        if len(mine) > known:
            committed += mine[known:]
            self._judge_isr(self._isr)

    def _replace(self, name: str, offset: int, number: int) -> None:
        before = self.committed[offset]
        if before not in self._excused and before != HOLE and offset not in self.replicas.fallen:
            text = (
                f"{self.replicas.place(name)} commits {self.records.name(number)} at offset {offset}, where "
                f"{self.records.name(before)} was committed before"
            )
            self.violated(Rule.COMMITTED, (name,), offset, text)
        elif before != HOLE:
            # A cut that its power loss undid brought this one back; the ISR never copied it.
            self._excused.add(number)
        self.committed[offset] = number

    def _judge_isr(self, members: Sequence[str]) -> None:
        """Check that every electable replica has all committed records."""
        if self._broken(Rule.COMMITTED):
            return
        committed, start = self.committed[self.start :], self.start
        for member in members:
            records = self.replicas.seen[member].records
            if records[start : start + len(committed)] != committed:
                self._find_missing(member, records)

    def _find_missing(self, member: str, records: Sequence[int]) -> None:
        excused = self._excused | self.replicas.taken[member]
        for offset, number in enumerate(self.committed[self.start :], start=self.start):
            held = records[offset] if offset < len(records) else None
            gone = number in excused or offset in self.replicas.fallen or self.compacted.may_remove(offset)
            if number not in (held, HOLE) and not gone:
                instead = "where its log ends" if held is None else f"which holds {self.records.name(held)} there"
                if held is None and offset > len(records):
                    instead = f"whose log ends at {len(records)}"
                place, isr = self.replicas.place(member), " ".join(self._isr)
                text = (
                    f"{self.records.name(number)} was committed at offset {offset} and is not on {place}, "
                    f"{instead}, though {member} may be elected: ISR {isr}"
                )
                self.violated(Rule.COMMITTED, (member,), offset, text)
                return

    def _judge_prefix(self, name: str) -> None:
        """Check each leader and follower pair that includes the node."""
        seen = self.replicas.seen[name]
        if seen.role is Role.LEADER:
            pairs = [(name, other) for other in self.replicas.seen if other != name]
        elif seen.role is Role.FOLLOWER:
            leader = self._world.name_of(seen.leader)
            pairs = [(leader, name)] if leader is not None else []
        else:
            return
        for leader, follower in pairs:
            if self._fetches_from(follower, leader):
                self._compare(leader, follower)

    def _fetches_from(self, follower: str, leader: str) -> bool:
        ours, theirs = self.replicas.seen[follower], self.replicas.seen[leader]
        return (
            theirs.role is Role.LEADER
            and ours.role is Role.FOLLOWER
            and ours.phase is Phase.FETCHING
            and ours.leader == self._ids[leader]
            and ours.epoch == theirs.epoch
        )

    def _is_gone(self, follower: str, leader: str, offset: int) -> bool:
        """Return True if a flipped byte, a cut within an upgrade or compaction took it from one of the two."""
        pairs = ((follower, leader), (leader, follower))
        held = {name: self.replicas.seen[name].records[offset] for name in (follower, leader)}
        return offset in self.replicas.fallen or any(
            held[one] == HOLE
            and (held[other] in self.replicas.taken[one] or self.compacted.is_replaced(held[other], offset))
            for one, other in pairs
        )

    def _compare(self, leader: str, follower: str) -> None:
        ours, theirs = self.replicas.seen[follower].records, self.replicas.seen[leader].records
        start, both = self.start, min(len(ours), len(theirs))
        if ours[start:both] == theirs[start:both]:
            return
        unlike = (at for at in range(start, both) if ours[at] != theirs[at])
        offset = next((at for at in unlike if not self._is_gone(follower, leader, at)), None)
        if offset is None:
            return
        text = (
            f"{follower} fetches from {self.replicas.place(leader)} and differs from it at offset {offset}: "
            f"{self.records.name(ours[offset])} against {self.records.name(theirs[offset])}"
        )
        self.violated(Rule.PREFIX, (leader, follower), offset, text)

    # --- violations ------------------------------------------------------------------------------------------
    def _broken(self, rule: Rule) -> bool:
        return (rule, self.tp) in self._violations.found

    def violated(self, rule: Rule, nodes: tuple[str, ...], offset: int, text: str) -> None:
        """Keep a violation of a rule in this partition, unless it is not the first."""
        self._violations.add(rule, self.tp, nodes, offset, text)
