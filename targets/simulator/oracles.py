"""
Invariants of every step of a world, not only of its end; a rule is checked where its data has changed.

    committed       every record that was once below the high watermark of a broker that claims leadership is on
                    every electable replica (ZooKeeper's ISR), and no other record is committed at its offset
    prefix          a follower that has truncated its log and fetches from a leader in that leader's epoch agrees
                    with it below both ends
    acknowledged    a record that was acknowledged to a client with acks=all is committed at that very offset
    leaders         one broker leads in one epoch
    high-watermark  that of a leader does not fall within its epoch, and is not above the end of its log

Records are compared by content, never by epochs or ends.
A replica need not have a record that a power loss took from it, until it copies the record again or joins the ISR
without it. If such a replica leads, the record is excused from then on: the end checkers, which follow every copy,
decide whether its loss was permitted. No other record is excused.
Only the first violation of a rule is kept; its consequences are not recorded.
Source:  hachikuji/kafka-specification, StrongIsr, remembering what was exposed instead of who exposed it, so that
         it outlives a leader that dies; PrefixMatch is our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from harness.events import OracleViolation, Produce
from harness.model import Op, OpType, Source
from targets.broker.core.events import Effect, Event, Start
from targets.broker.core.messages import Payload, TopicPartition
from targets.broker.core.state import Phase, Replica, Role
from targets.broker.core.zookeeper import ZkNode, decode_state, leader_and_isr_path
from targets.simulator.clock import NS_PER_S
from targets.simulator.log import SimLog
from targets.simulator.records import content_of
from targets.simulator.world import World

ACKS_ALL: Final = -1
HOLE: Final = -1


class Rule(StrEnum):
    """The rule that was broken."""

    COMMITTED = "committed"
    PREFIX = "prefix"
    ACKNOWLEDGED = "acknowledged"
    LEADERS = "leaders"
    HIGH_WATERMARK = "high-watermark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """
    One rule, broken at one step.

    Attributes:
        step: the number of the world's step.
        time_ns: the world's time.
        nodes: the nodes whose logs or answers contradict each other.
        offset: the first offset at which they do.
    """

    rule: Rule
    step: int
    time_ns: int
    nodes: tuple[str, ...]
    offset: int
    sentence: str

    def event(self) -> OracleViolation:
        """Return it as the history records it."""
        return OracleViolation(
            rule=self.rule.value, step=self.step, nodes=self.nodes, offset=self.offset, sentence=self.sentence
        )


@dataclass(slots=True)
class _Seen:
    """
    A node's state at the last look.

    Attributes:
        records: the number of the record at every offset.
        replica: None while the node has no process.
    """

    log: SimLog | None = None
    changes: int = -1
    records: list[int] | None = None
    replica: Replica | None = None
    role: Role = Role.NONE
    epoch: int = -1
    leader: int = -1
    fetching: bool = False
    high_watermark: int = 0


class Oracles:
    """
    The rules, checked on one partition of one world.

    listen(op) receives the world's history; without it `acknowledged` checks nothing.
    """

    def __init__(self, world: World, tp: TopicPartition) -> None:
        """Start to watch."""
        self.violations: dict[Rule, Violation] = {}
        self._world = world
        self._tp = tp
        self._path = leader_and_isr_path(tp)
        self._seen = {name: _Seen(records=[]) for name in world.nodes}
        self._ids = dict(world.ids)
        self._isr: tuple[str, ...] = ()
        self._leaders: dict[int, str] = {}
        self._committed: list[int] = []
        self._excused: set[int] = set()
        self._taken: dict[str, set[int]] = {name: set() for name in world.nodes}
        self._numbers: dict[Payload, list[int]] = {}
        self._values: list[str] = []
        self._number_of: dict[str, int] = {}
        world.watchers.append(self._on_step)
        world.zookeeper.tree.changed.append(self._on_zookeeper)
        for name in world.nodes:
            self._look(name, started=False)
        self._on_zookeeper(self._path)

    # --- events ----------------------------------------------------------------------------------------------
    def listen(self, op: Op) -> None:
        """Note the client answers in an op of the history."""
        if op.source is not Source.CLIENT or op.type is not OpType.OK or Rule.ACKNOWLEDGED in self.violations:
            return
        match op.event:
            case Produce(topic=t, partition=p, acks=acks, offset=int(offset), value=value) if (
                acks == ACKS_ALL and self._tp == (t, p)
            ):
                self._judge_acknowledged(offset, value)

    def _on_step(self, name: str, event: Event, effects: Sequence[Effect]) -> None:
        del effects
        if self._look(name, started=isinstance(event, Start)):
            self._judge(name)

    def _on_zookeeper(self, path: str) -> None:
        if path != self._path:
            return
        node = self._world.zookeeper.tree.nodes.get(path)
        if isinstance(node, ZkNode):
            names = (self._world.name_of(member) for member in decode_state(node).isr)
            before, self._isr = self._isr, tuple(name for name in names if name is not None)
            self._look_at_dead()
            for member in self._isr:
                # A member that joins must have all; unless the write was in flight when it lost power (KIP-903).
                if member not in before and self._seen[member].replica is not None:
                    self._taken[member].clear()
            self._judge_isr(self._isr)

    # --- looking ---------------------------------------------------------------------------------------------
    def _look(self, name: str, *, started: bool) -> bool:
        """Read a node's state; return True if data that a rule uses has changed."""
        seen, process = self._seen[name], self._world.nodes[name].process
        replica = None if process is None else process.broker.state.replicas.get(self._tp)
        log = self._world.nodes[name].disk.logs.get(self._tp)
        changed = log is not seen.log or (log is not None and log.changes != seen.changes)
        if changed:
            self._look_at_log(name, log, cut_off=started or process is None)
        if replica is None:
            changed |= seen.replica is not None
            seen.replica, seen.role, seen.fetching = None, Role.NONE, False
            return changed
        fetching = replica.phase is Phase.FETCHING
        now = (replica.role, replica.leader_epoch, replica.leader, fetching, replica.high_watermark)
        if seen.replica is replica and now == (
            seen.role,
            seen.epoch,
            seen.leader,
            seen.fetching,
            seen.high_watermark,
        ):
            return changed
        if replica.role is Role.LEADER:
            self._judge_leader(name, replica)
        seen.replica = replica
        seen.role, seen.epoch, seen.leader, seen.fetching, seen.high_watermark = now
        return True

    def _look_at_log(self, name: str, log: SimLog | None, *, cut_off: bool) -> None:
        """Read a log that has changed; records that it lost without a process were lost with the power."""
        seen, taken = self._seen[name], self._taken[name]
        before = seen.records or []
        seen.log, seen.changes = log, -1 if log is None else log.changes
        seen.records = [] if log is None else self._read(log)
        if cut_off:
            taken.update(before)
        if taken:
            taken.difference_update(seen.records)

    def _look_at_dead(self) -> None:
        """Note what power losses took before any check: a power loss makes no step."""
        for name, seen in self._seen.items():
            if self._world.nodes[name].process is None:
                self._look(name, started=False)
                seen.replica = None

    def _read(self, log: SimLog) -> list[int]:
        records: list[int] = []
        for segment in log.segments:
            for batch in segment.batches:
                if batch.base_offset > len(records):
                    records.extend([HOLE] * (batch.base_offset - len(records)))
                elif batch.base_offset < len(records):
                    del records[batch.base_offset :]
                numbers = self._numbers.get(batch.payload)
                records.extend(self._learn(batch.payload) if numbers is None else numbers)
        return records

    def _learn(self, payload: Payload) -> list[int]:
        """Number the records of a new batch; return the numbers."""
        numbers: list[int] = []
        for _, value in content_of(payload).records:
            numbers.append(len(self._values))
            self._number_of[value] = len(self._values)
            self._values.append(value)
        self._numbers[payload] = numbers
        return numbers

    # --- checks ----------------------------------------------------------------------------------------------
    def _judge(self, name: str) -> None:
        """Check the rules that one node's change may have broken."""
        self._look_at_dead()
        if self._seen[name].role is Role.LEADER:
            self._judge_exposed(name)
        if name in self._isr:
            self._judge_isr((name,))
        if Rule.PREFIX not in self.violations:
            self._judge_prefix(name)

    def _judge_leader(self, name: str, replica: Replica) -> None:
        """Check that a leader is the only one of its epoch, and its high watermark against the one before."""
        seen, epoch, high = self._seen[name], replica.leader_epoch, replica.high_watermark
        end = 0 if seen.log is None else seen.log.end_offset
        first = self._leaders.setdefault(epoch, name)
        if first != name:
            self._violated(
                Rule.LEADERS, (first, name), end, f"{name} leads in epoch {epoch}, in which {first} led"
            )
        led_on = seen.replica is replica and seen.role is Role.LEADER and seen.epoch == epoch
        said = f"the high watermark of {name}, leader in epoch {epoch}, is {high}"
        if led_on and high < seen.high_watermark:
            text = f"{said}, and was {seen.high_watermark} before"
            self._violated(Rule.HIGH_WATERMARK, (name,), high, text)
        elif high > end:
            self._violated(Rule.HIGH_WATERMARK, (name,), end, f"{said}, above the end of its log, {end}")

    def _judge_exposed(self, name: str) -> None:
        """Remember the records that a leader exposes, and check that none contradicts a committed record."""
        seen, end = self._seen[name], self._seen[name].high_watermark
        self._excused |= self._taken[name]
        mine, committed = (seen.records or [])[:end], self._committed
        known = len(committed)
        if mine[:known] != committed[: len(mine)]:
            for offset, (number, before) in enumerate(zip(mine, committed, strict=False)):
                if number != before and number not in self._excused:
                    self._replace(name, offset, number)
        if len(mine) > known:
            committed += mine[known:]
            self._judge_isr(self._isr)

    def _replace(self, name: str, offset: int, number: int) -> None:
        before = self._committed[offset]
        if before not in self._excused and before != HOLE:
            text = (
                f"{self._place(name)} commits {self._record(number)} at offset {offset}, where "
                f"{self._record(before)} was committed before"
            )
            self._violated(Rule.COMMITTED, (name,), offset, text)
        self._committed[offset] = number

    def _judge_isr(self, members: Sequence[str]) -> None:
        """Check that every electable replica has all committed records."""
        if Rule.COMMITTED in self.violations:
            return
        committed = self._committed
        for member in members:
            records = self._seen[member].records or []
            if records[: len(committed)] != committed:
                self._find_missing(member, records)

    def _find_missing(self, member: str, records: Sequence[int]) -> None:
        excused = self._excused | self._taken[member]
        for offset, number in enumerate(self._committed):
            held = records[offset] if offset < len(records) else None
            if number not in (held, HOLE) and number not in excused:
                instead = "where its log ends" if held is None else f"which holds {self._record(held)} there"
                if held is None and offset > len(records):
                    instead = f"whose log ends at {len(records)}"
                text = (
                    f"{self._record(number)} was committed at offset {offset} and is not on "
                    f"{self._place(member)}, {instead}, though {member} may be elected: ISR {' '.join(self._isr)}"
                )
                self._violated(Rule.COMMITTED, (member,), offset, text)
                return

    def _judge_prefix(self, name: str) -> None:
        """Check each leader and follower pair that includes the node."""
        seen = self._seen[name]
        if seen.role is Role.LEADER:
            pairs = [(name, other) for other in self._seen if other != name]
        elif seen.role is Role.FOLLOWER:
            leader = self._world.name_of(seen.leader)
            pairs = [(leader, name)] if leader is not None else []
        else:
            return
        for leader, follower in pairs:
            if self._fetches_from(follower, leader):
                self._compare(leader, follower)

    def _fetches_from(self, follower: str, leader: str) -> bool:
        ours, theirs = self._seen[follower], self._seen[leader]
        return (
            theirs.role is Role.LEADER
            and ours.role is Role.FOLLOWER
            and ours.fetching
            and ours.leader == self._ids[leader]
            and ours.epoch == theirs.epoch
        )

    def _compare(self, leader: str, follower: str) -> None:
        ours, theirs = self._seen[follower].records or [], self._seen[leader].records or []
        both = min(len(ours), len(theirs))
        if ours[:both] == theirs[:both]:
            return
        offset = next(at for at in range(both) if ours[at] != theirs[at])
        text = (
            f"{follower} fetches from {self._place(leader)} and differs from it at offset {offset}: "
            f"{self._record(ours[offset])} against {self._record(theirs[offset])}"
        )
        self._violated(Rule.PREFIX, (leader, follower), offset, text)

    def _judge_acknowledged(self, offset: int, value: str) -> None:
        number = self._number_of.get(value)
        found = self._committed[offset] if offset < len(self._committed) else None
        if number is not None and (found == number or number in self._excused.union(*self._taken.values())):
            return
        instead = "nothing" if found is None else self._record(found)
        text = f"{value} was acknowledged at offset {offset}, where {instead} is committed"
        self._violated(Rule.ACKNOWLEDGED, (), offset, text)

    # --- violations ------------------------------------------------------------------------------------------
    def _violated(self, rule: Rule, nodes: tuple[str, ...], offset: int, text: str) -> None:
        if rule not in self.violations:
            now_ns = self._world.clock.now_ns
            self.violations[rule] = Violation(
                rule=rule,
                step=self._world.steps,
                time_ns=now_ns,
                nodes=nodes,
                offset=offset,
                sentence=f"Step {self._world.steps}, at {now_ns / NS_PER_S:.3f} s: {text}.",
            )

    def _record(self, number: int) -> str:
        return "nothing" if number == HOLE else self._values[number]

    def _place(self, name: str) -> str:
        seen = self._seen[name]
        if seen.replica is None:
            return f"{name} (down)"
        if seen.role is Role.LEADER:
            return f"{name} (leader in epoch {seen.epoch}, high watermark {seen.high_watermark})"
        leader = self._world.name_of(seen.leader)
        return f"{name} ({seen.role.value} of {leader} in epoch {seen.epoch})"
