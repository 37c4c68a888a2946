"""
The oracle of topics that are deleted and created again: no replica holds a record of another topic of its name.

A record belongs to the topic of the log to which a leader first appends it, as that log's own topic id says. A
log with another id that holds it has copied it from a replica of another topic. Protocols without topic ids say
nothing of this while they run; the checker `generations` judges what is left of theirs.
Source:  KIP-516, Motivation; Kafka Replication Design V3, discussion 5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from harness.events import OracleViolation
from targets.broker.core.events import Effect, Event
from targets.broker.core.messages import NO_TOPIC_ID, Payload, TopicPartition
from targets.simulator.broker.storage.log import SimLog
from targets.simulator.broker.storage.records import content_of
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_S

RULE: Final = "generation"


class GenerationOracle:
    """
    Watches the partitions of churned topics in one world.

    Attributes:
        violations: the first of each partition, in the order of steps.
    """

    def __init__(self, world: World, tps: Collection[TopicPartition]) -> None:
        """Start to watch."""
        self.violations: dict[TopicPartition, OracleViolation] = {}
        self._world = world
        self._tps = tuple(tps)
        self._seen: dict[tuple[str, TopicPartition], tuple[SimLog, int]] = {}
        self._topic_of: dict[Payload, int] = {}
        if self._tps:
            world.watchers.append(self._on_step)

    def _on_step(self, name: str, event: Event, effects: Sequence[Effect]) -> None:
        del event, effects
        if self._world.carrier.mixed:
            return  # who knows topics by their names alone hands one's records to another one
        logs = self._world.nodes[name].disk.logs
        for tp in self._tps:
            log = logs.get(tp)
            if log is None or log.topic_id == NO_TOPIC_ID:
                continue
            before = self._seen.get((name, tp))
            if before is None or before[0] is not log or before[1] != log.changes:
                self._seen[name, tp] = log, log.changes
                self._judge(name, tp, log)

    def _judge(self, name: str, tp: TopicPartition, log: SimLog) -> None:
        for offset, payload in _payloads(log):
            topic_id = self._topic_of.setdefault(payload, log.topic_id)
            if topic_id != log.topic_id and tp not in self.violations:
                value = next((value for _, _, value in content_of(payload).records), "nothing")
                now_s = self._world.clock.now_ns / NS_PER_S
                self.violations[tp] = OracleViolation(
                    rule=RULE,
                    step=self._world.steps,
                    nodes=(name,),
                    offset=offset,
                    sentence=f"Step {self._world.steps}, at {now_s:.3f} s: {name} holds {value} of the "
                    f"topic {tp.topic} with id {topic_id} in its log of {tp.topic}-{tp.partition}, whose id is "
                    f"{log.topic_id}.",
                    topic=tp.topic,
                    partition=tp.partition,
                )


def _payloads(log: SimLog) -> Iterator[tuple[int, Payload]]:
    for segment in log.segments:
        for batch in segment.batches:
            yield batch.base_offset, batch.payload
