"""
What is told to producers: the records are where the answer says, and with acks=all they are committed.

A produce to several partitions is answered once, when its last partition is decided: each must have been
committed, by enough replicas, at some step until then.
Source:  Kafka's acks and min.insync.replicas; Kafka Replication Design V3, G.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from targets.broker.core.messages import (
    NO_PRODUCER_ID,
    ErrorCode,
    ProduceRequest,
    ProduceResponse,
    Request,
    TopicPartition,
)
from targets.broker.core.state import Role
from targets.simulator.broker.oracles.partition import PartitionOracle
from targets.simulator.broker.oracles.violation import Rule
from targets.simulator.broker.world import World

ACKS_ALL: Final = -1


@dataclass(slots=True, kw_only=True)
class _Appended:
    """
    A produce's records in one partition.

    Attributes:
        base: where they should be, as they were appended last.
        held: the log has them there.
        gone: they are of an idempotent producer and not in the log, which may have had them below its start.
        start: where the log starts.
        committed: a step has ended in which the high watermark was past them and the ISR large enough.
    """

    base: int
    end: int
    held: bool
    gone: bool = False
    start: int = 0
    committed: bool = False


class Produced:
    """The produces that nodes have appended and not answered."""

    def __init__(self, world: World, oracles: Mapping[TopicPartition, PartitionOracle]) -> None:
        """Start without a produce."""
        self._world = world
        self._oracles = oracles
        self._open: dict[str, list[tuple[ProduceRequest, dict[TopicPartition, _Appended]]]] = {
            name: [] for name in world.nodes
        }

    def on_received(self, name: str, request: ProduceRequest) -> None:
        """Note where the records of a produce are, after the step that received it."""
        found: dict[TopicPartition, _Appended] = {}
        for part in request.partitions:
            oracle = self._oracles.get(part.tp)
            seen = None if oracle is None else oracle.replicas.seen[name]
            if oracle is not None and seen is not None and seen.log is not None:
                numbers = oracle.records.of_batches(part.batches)
                end = seen.log.end_offset
                base = end - len(numbers)
                held, gone = seen.records[base:end] == numbers, False
                self._judge_refused(name, oracle, request, held=held)
                if not held and any(batch.producer_id != NO_PRODUCER_ID for batch in part.batches):
                    # The log may have it already, further down (KIP-98).
                    base = _last_place(seen.records, numbers)
                    end, held, gone = base + len(numbers), base >= 0, base < 0
                start = seen.log.start_offset
                found[part.tp] = _Appended(base=base, end=end, held=held, gone=gone, start=start)
                # What is sent again may be committed by now, and then nothing changes.
                found[part.tp].committed = self._is_committed(name, part.tp, found[part.tp])
        self._open[name].append((request, found))

    def _judge_refused(self, name: str, oracle: PartitionOracle, request: ProduceRequest, *, held: bool) -> None:
        """Check that a produce with acks=all is refused before it is appended, if the ISR is too small."""
        seen, min_isr = oracle.replicas.seen[name], self._world.nodes[name].config.min_isr
        leads = seen.replica is not None and seen.role is Role.LEADER
        # A producer that tries again sends what the log may have at its end already.
        held = held and seen.moved == self._world.core_steps
        if held and leads and request.acks == ACKS_ALL and len(seen.replica.isr if seen.replica else ()) < min_isr:
            text = f"{oracle.replicas.place(name)} appends a produce with acks=all, and its ISR is below {min_isr}"
            oracle.violated(Rule.ACKNOWLEDGED, (name,), -1, text)

    def on_change(self, name: str) -> None:
        """Note which produces are committed now, after a step in which a replica of the node changed."""
        for request, found in self._open[name]:
            if request.acks == ACKS_ALL:
                for tp, appended in found.items():
                    appended.committed = appended.committed or self._is_committed(name, tp, appended)

    def on_answered(self, name: str, request: ProduceRequest, response: ProduceResponse) -> None:
        """Check what a producer was told."""
        found = self._pop(name, request)
        for result in response.results:
            appended, oracle = found.get(result.tp), self._oracles.get(result.tp)
            if oracle is None or result.error is not ErrorCode.NONE or oracle.replicas.is_of_older_topic(name):
                continue
            if appended is not None and appended.gone and 0 <= result.base_offset < appended.start:
                continue
            said = f"{oracle.replicas.place(name)} answers a producer that its records are at {result.base_offset}"
            if appended is None or not appended.held or appended.base != result.base_offset:
                text = f"{said}, where its log has others"
                oracle.violated(Rule.ACKNOWLEDGED, (name,), result.base_offset, text)
            elif request.acks == ACKS_ALL and not appended.committed:
                text = f"{said} and committed, {self._lacks(name, result.tp, appended)}"
                oracle.violated(Rule.ACKNOWLEDGED, (name,), result.base_offset, text)

    def forget(self, name: str, waiting: Iterable[Request]) -> None:
        """Drop the produces of a node that get no answer any more."""
        if not self._open[name]:
            return
        kept = {id(request) for request in waiting}
        self._open[name] = [each for each in self._open[name] if id(each[0]) in kept]

    def _is_committed(self, name: str, tp: TopicPartition, appended: _Appended) -> bool:
        seen, config = self._oracles[tp].replicas.seen[name], self._world.nodes[name].config
        if seen.replica is None or seen.role is not Role.LEADER:
            return False
        return seen.high_watermark >= appended.end and len(seen.replica.isr) >= config.min_isr

    def _lacks(self, name: str, tp: TopicPartition, appended: _Appended) -> str:
        """Return why the records are not committed as this node knows it."""
        seen, min_isr = self._oracles[tp].replicas.seen[name], self._world.nodes[name].config.min_isr
        if seen.replica is None or seen.role is not Role.LEADER:
            return "and does not lead"
        if seen.high_watermark < appended.end:
            return f"while its high watermark is {seen.high_watermark}, and they end at {appended.end}"
        return f"while its ISR has {len(seen.replica.isr)} members; expected min_isr={min_isr} at least"

    def _pop(self, name: str, request: ProduceRequest) -> dict[TopicPartition, _Appended]:
        waiting = self._open[name]
        index = next((at for at, (each, _) in enumerate(waiting) if each is request), None)
        return {} if index is None else waiting.pop(index)[1]


def _last_place(records: Sequence[int], numbers: Sequence[int]) -> int:
    """Return the last offset at which these records follow each other in a log, -1 if they are not there."""
    size = len(numbers)
    return next((at for at in range(len(records) - size, -1, -1) if records[at : at + size] == numbers), -1)
