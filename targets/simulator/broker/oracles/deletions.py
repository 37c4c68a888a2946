"""
What is deleted on purpose: answered when it is true, looked at again and again, and no more than was asked.

Source:  KIP-107; Kafka's DelayedDeleteRecords, LogManager.cleanupLogs, UnifiedLog.deleteOldSegments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from targets.broker.core.deletions import low_watermark
from targets.broker.core.events import Effect, Event, Observe, Tick
from targets.broker.core.messages import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteResult,
    ErrorCode,
    TopicPartition,
)
from targets.broker.core.state import State
from targets.broker.core.waiting import WaitingDeletion
from targets.simulator.broker.world import World

Wrong = tuple[TopicPartition | None, str]


class Deletions:
    """The rules, checked after every step of every node."""

    def __init__(self, world: World) -> None:
        """Watch a world whose limits do not change."""
        self._world = world
        configs = [node.config for node in world.nodes.values()]
        self._retains = any(config.retention_ms or config.retention_bytes for config in configs)

    def wrong(self, name: str, event: Event, effects: Sequence[Effect], state: State) -> Iterator[Wrong]:
        """Yield what a step did wrong, or left undone, with the partition that it is about."""
        if self._retains and type(event) is Tick and ("retention",) not in state.timers:
            yield None, f"{name} looks no more at the age and size of its logs"
        if state.deletions:
            yield from self._waiting(name, state)
        for effect in effects:
            if type(effect) is Observe and effect.f == "log-start":
                told = dict(effect.value)
                tp = TopicPartition(told["topic"], told["partition"])
                yield from self._moved(name, state, tp, told["reason"])

    def answered(
        self, name: str, request: DeleteRecordsRequest, response: DeleteRecordsResponse, state: State
    ) -> Iterator[Wrong]:
        """Yield what a step told a client, and is not so."""
        asked = {part.tp: part.offset for part in request.partitions}
        for result in response.results:
            if result.error is ErrorCode.NONE:
                yield from self._answered(name, state, result, asked.get(result.tp, -1))

    def _waiting(self, name: str, state: State) -> Iterator[Wrong]:
        """Yield deletions that wait, and should have been answered, or have no end."""
        for number, waiting in state.deletions.requests.items():
            if ("delete-records", number) not in state.timers:
                yield None, f"{name} lets a deletion wait without an end"
            yield from self._due(name, state, waiting)

    def _due(self, name: str, state: State, waiting: WaitingDeletion) -> Iterator[Wrong]:
        for tp, to in waiting.required.items():
            replica = state.replicas.get(tp)
            if replica is None:
                yield tp, f"{name} lets a deletion wait for a replica that it has not"
            elif to > replica.high_watermark:
                text = f"{name} lets a deletion up to {to} wait, past its high watermark, {replica.high_watermark}"
                yield tp, text
            elif low_watermark(replica, state.config.broker_id) >= to:
                yield tp, f"{name} has not answered a deletion up to {to}, which its ISR has followed"

    def _moved(self, name: str, state: State, tp: TopicPartition, reason: str) -> Iterator[Wrong]:
        """Yield what a move of a log's start left undone, or overdid."""
        log, own = self._world.nodes[name].disk.logs.get(tp), state.topic_configs.get(tp.topic)
        config = self._world.nodes[name].config if own is None else own.config
        if log is None:
            return
        size = sum(segment.size for segment in log.segments)
        if reason == "retention-size" and size < config.retention_bytes:
            yield tp, f"{name} keeps {size} bytes of {tp}; expected {config.retention_bytes} at least"
        for _, waiting in state.fetches.on(tp):
            if waiting.asked[tp].fetch_offset < log.start_offset:
                yield tp, f"{name} lets a fetch wait below {log.start_offset}, where its log starts"
                return

    def _answered(self, name: str, state: State, result: DeleteResult, before: int) -> Iterator[Wrong]:
        """Yield it if less is deleted than was asked, or by a member of the ISR than its leader says."""
        if result.low_watermark < max(0, before):
            yield result.tp, f"{name} has deleted up to {result.low_watermark}, and was asked to up to {before}"
        replica = state.replicas.get(result.tp)
        for member in () if replica is None else replica.isr:
            other = self._world.name_of(member)
            log = None if other is None else self._world.nodes[other].disk.logs.get(result.tp)
            # One that lost its disk since it said so has a shorter log.
            if log is not None and log.start_offset < result.low_watermark <= log.end_offset:
                text = f"{name} says that its ISR has deleted up to {result.low_watermark}, and the log of {other}"
                yield result.tp, f"{text} starts at {log.start_offset}"
