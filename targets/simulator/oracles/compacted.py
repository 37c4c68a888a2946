"""
Which committed records compaction may remove: those whose key has a newer committed record.

The other oracles look at a log as if nothing had been removed that may be: whether it is there says nothing. What
is missing and may not be removed is a hole to all of them.
A leader that an unclean election has replaced, and that has not heard of it, compacts by what it commits on its
own: that counts as newer, though it is lost.
Source:  Kafka, LogCleaner: "the log contains the latest value for each key".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.keys import key_of
from targets.broker.core.events import Effect, Event, Observe, Tick
from targets.broker.core.messages import TopicPartition
from targets.broker.core.state import State
from targets.simulator.oracles.records import HOLE, Records
from targets.simulator.records import content_of
from targets.simulator.world import World


class Compaction:
    """What compaction had to do: look again and again, and leave one record of each key."""

    def __init__(self, world: World) -> None:
        """Watch a world whose settings do not change."""
        self._world = world
        self._is_on = is_compacted(world)

    def wrong(
        self, name: str, event: Event, effects: Sequence[Effect], state: State
    ) -> Iterator[tuple[TopicPartition | None, str]]:
        """Yield what a step left undone, with the partition that it is about."""
        if not self._is_on:
            return
        if type(event) is Tick and ("compaction",) not in state.timers:
            yield None, f"{name} compacts its logs no more"
        for effect in effects:
            if type(effect) is Observe and effect.f == "cleaned":
                told = dict(effect.value)
                yield from self._left(name, TopicPartition(told["topic"], told["partition"]), told["upto"])

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


def is_compacted(world: World) -> bool:
    """Return True if a world's brokers compact their logs."""
    return any(node.config.compact for node in world.nodes.values())


class Compacted:
    """The newest committed record of each key of a partition; it counts, too, if it is lost since."""

    def __init__(self, world: World, records: Records, committed: Sequence[int]) -> None:
        """Follow a list of committed records, which grows, is cleared, or has one replaced by another."""
        self._is_on = is_compacted(world)
        self._records = records
        self._committed = committed
        self._newest: dict[str, int] = {}
        self._known: list[int] = []  # what `_newest` was made of

    def complete(self, records: list[int]) -> None:
        """Put into a log's records those that compaction may have removed, as they were committed."""
        if self._is_on:
            for offset, number in enumerate(records[: len(self._committed)]):
                if number == HOLE and self.may_remove(offset):
                    records[offset] = self._committed[offset]

    def may_remove(self, offset: int) -> bool:
        """Return True if logs are compacted, and the key of what was committed there has a newer record."""
        return self.is_replaced(self._committed[offset], offset)

    def is_replaced(self, number: int, offset: int) -> bool:
        """Return True if logs are compacted, and the key of a record at this offset has a newer one."""
        key = self._key_of(number) if self._is_on else None
        return key is not None and self._newest_of(key) > offset

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

    def _key_of(self, number: int) -> str | None:
        return None if number == HOLE else key_of(self._records.name(number))
