"""
Which committed records compaction may remove: those whose key has a newer one, and tombstones after their delay.

The other oracles look at a log as if nothing had been removed that may be: whether it is there says nothing. What
is missing and may not be removed is a hole to all of them.
A leader that an unclean election has replaced, and that has not heard of it, compacts by what it commits on its
own: that counts as newer, though it is lost.
Source:  Kafka, LogCleaner: "the log contains the latest value for each key".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from harness.keys import is_tombstone, key_of
from targets.broker.core.events import Effect, Event, Observe, Start, Tick
from targets.broker.core.messages import TopicPartition
from targets.broker.core.state import State
from targets.simulator.broker.oracles.records import HOLE, Records
from targets.simulator.broker.storage.records import content_of
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import EPOCH_MS, NS_PER_MS

# What brokers tell of their logs after which a horizon is another one: a cleaning, or a cut.
_CHANGES: Final = frozenset({"cleaned", "truncate", "stopped"})


class Compaction:
    """What compaction had to do: look again and again, leave one record of each key, keep tombstones a while."""

    def __init__(self, world: World, parts: Mapping[TopicPartition, Compacted]) -> None:
        """Watch a world whose settings do not change."""
        self._world = world
        self._parts = parts
        self._is_on = is_compacted(world)
        # Of each log: offset of a tombstone -> when it may go, as its batch said when the log was cleaned.
        self._horizons: dict[tuple[str, TopicPartition], dict[int, int]] = {}

    def wrong(
        self, name: str, event: Event, effects: Sequence[Effect], state: State
    ) -> Iterator[tuple[TopicPartition | None, str]]:
        """Yield what a step left undone, with the partition that it is about."""
        if not self._is_on:
            return
        if type(event) is Tick and ("compaction",) not in state.timers:
            yield None, f"{name} compacts its logs no more"
        if type(event) is Start:
            self._horizons = {log: found for log, found in self._horizons.items() if log[0] != name}
        for effect in effects:
            if type(effect) is Observe and effect.f in _CHANGES:
                told = dict(effect.value)
                tp = TopicPartition(told["topic"], told["partition"])
                before = self._horizons.pop((name, tp), {})
                if effect.f == "cleaned":
                    yield from self._left(name, tp, told["upto"])
                    yield from self._delayed(name, tp, told["upto"], before)

    def _left(self, name: str, tp: TopicPartition, upto: int) -> Iterator[tuple[TopicPartition, str]]:
        """Yield a key of which a log has two records in what was compacted."""
        log, seen = self._world.nodes[name].disk.logs.get(tp), dict[str, str]()
        for batch in log.batches if log is not None else ():
            for _, _, value in content_of(batch.payload).records if batch.last_offset < upto else ():
                key = key_of(value)
                if key is not None and key in seen:
                    yield tp, f"{name} has compacted {tp} up to {upto}, and left {seen[key]} and {value}"
                    return
                if key is not None:
                    seen[key] = value

    def note(self, name: str, effects: Sequence[Effect]) -> None:
        """Note what a step has cleaned, before the logs are looked at."""
        for effect in effects if self._is_on else ():
            if type(effect) is Observe and effect.f == "cleaned":
                told = dict(effect.value)
                part = self._parts.get(TopicPartition(told["topic"], told["partition"]))
                if part is not None:
                    part.on_cleaned(told["upto"], self._over_ms(name))

    def _over_ms(self, name: str) -> int:
        """Return from when on what a node has cleaned now may be gone, in ms: at once, if files' times decide."""
        node, now_ns = self._world.nodes[name], self._world.clock.now_ns
        if not node.config.rules.tombstone_horizon or node.wall_ns() != now_ns:
            return 0
        return now_ns // NS_PER_MS + node.config.delete_retention_ms

    def _delayed(
        self, name: str, tp: TopicPartition, upto: int, before: Mapping[int, int]
    ) -> Iterator[tuple[TopicPartition, str]]:
        """Yield a tombstone whose delay a cleaning has begun again, or that stayed though its delay was over."""
        node = self._world.nodes[name]
        log, now_ms = node.disk.logs.get(tp), EPOCH_MS + node.wall_ns() // NS_PER_MS
        if log is None or not node.config.rules.tombstone_horizon:
            return
        found: dict[int, int] = {}
        for batch in log.batches:
            content = content_of(batch.payload)
            if content.horizon_ms is not None and batch.last_offset < upto:
                deletes = (batch.base_offset + at for at, _, value in content.records if is_tombstone(value))
                found |= dict.fromkeys(deletes, content.horizon_ms)
        self._horizons[name, tp] = found
        slow = node.held_up(0)  # then the step was earlier than now
        for offset, horizon_ms in before.items():
            left = found.get(offset)
            if left is None or (left == horizon_ms and (left > now_ms or slow)):
                continue
            what = f"may go at {left} ms now" if left != horizon_ms else f"is there at {now_ms} ms"
            yield tp, f"{name} has cleaned {tp}: a tombstone at {offset} that might go at {horizon_ms} ms {what}"
            return


def is_compacted(world: World) -> bool:
    """Return True if a world's brokers compact their logs."""
    return any(node.config.compact for node in world.nodes.values())


class Compacted:
    """The newest committed record of each key of a partition; it counts, too, if it is lost since."""

    def __init__(self, world: World, records: Records, committed: Sequence[int]) -> None:
        """Follow a list of committed records, which grows, is cleared, or has one replaced by another."""
        self._is_on = is_compacted(world)
        self._world = world
        self._records = records
        self._committed = committed
        self._newest: dict[str, int] = {}
        self._known: list[int] = []  # what `_newest` was made of
        # Offsets before which tombstones may be gone, and from which time on, in ms: the first cleanings.
        self._over: list[tuple[int, int]] = []

    def complete(self, records: list[int]) -> None:
        """Put into a log's records those that compaction may have removed, as they were committed."""
        if self._is_on:
            for offset, number in enumerate(records[: len(self._committed)]):
                if number == HOLE and self.may_remove(offset):
                    records[offset] = self._committed[offset]

    def may_remove(self, offset: int) -> bool:
        """Return True if what was committed there may be gone, as logs are compacted."""
        return self.is_replaced(self._committed[offset], offset)

    def is_replaced(self, number: int, offset: int) -> bool:
        """Return True if a record there may be gone: its key has a newer one, or as a tombstone it is over."""
        key = self._key_of(number) if self._is_on else None
        return key is not None and (self._newest_of(key) > offset or self._is_over(number, offset))

    def on_cleaned(self, upto: int, over_ms: int) -> None:
        """Note that a log was cleaned up to an offset, so that its tombstones may be gone from a time on."""
        if all(before < upto or ms > over_ms for before, ms in self._over):
            self._over = [(before, ms) for before, ms in self._over if before > upto or ms < over_ms]
            self._over.append((upto, over_ms))

    def _is_over(self, number: int, offset: int) -> bool:
        """Return True if a tombstone there may be gone."""
        if not is_tombstone(self._records.name(number)):
            return False
        if any(node.held_up(0) for node in self._world.nodes.values()):
            return True  # what a slow disk has held up was done before it is told, and may never be
        now_ms = self._world.clock.now_ns // NS_PER_MS
        return any(offset < upto and over_ms <= now_ms for upto, over_ms in self._over)

    def learn(self, records: Sequence[int]) -> None:
        """Note what a replaced leader commits on its own, from offset 0 on: it and its followers compact by it."""
        if self._is_on:
            for offset, number in enumerate(records):
                if (key := self._key_of(number)) is not None:
                    self._newest[key] = max(offset, self._newest.get(key, -1))

    def _newest_of(self, key: str) -> int:
        if self._known != self._committed:
            self._known = list(self._committed)
            keys = map(self._key_of, self._known)
            found = {each: offset for offset, each in enumerate(keys) if each is not None}
            # What a fault took since was committed when a broker compacted: whatever it replaced then is gone.
            self._newest = {
                each: max(found.get(each, -1), self._newest.get(each, -1)) for each in found | self._newest
            }
        return self._newest.get(key, -1)

    def forget(self) -> None:
        """Forget what was committed: the topic was deleted and created again."""
        self._newest.clear()
        self._known.clear()
        self._over.clear()

    def _key_of(self, number: int) -> str | None:
        return None if number == HOLE else key_of(self._records.name(number))
