"""
What a replica knows of idempotent producers: after a start and after a cut, what is left of its log says it.

Whoever becomes leader without it would append again what a producer sends once more.
Source:  KIP-98, Idempotent Producer Guarantees; Kafka, ProducerStateManager.truncateAndReload.
"""

from __future__ import annotations

from targets.broker.core.messages import NO_PRODUCER_ID, Batch, TopicPartition
from targets.broker.core.state import Replica, State
from targets.simulator.broker.storage.log import SimLog


class Numbered:
    """The last batches of the producers in the logs of one world."""

    def __init__(self) -> None:
        """Know no log yet."""
        self._ends: dict[tuple[str, TopicPartition], tuple[Replica, int]] = {}

    def wrong(self, name: str, tp: TopicPartition, state: State | None, log: SimLog | None) -> str:
        """Return what a replica does not know of a producer, "" if nothing; to be asked whenever it changed."""
        replica = None if state is None else state.replicas.get(tp)
        if state is None or replica is None or log is None or not state.config.rules.idempotence:
            return ""
        before, end = self._ends.get((name, tp), (None, 0))
        self._ends[name, tp] = replica, log.end_offset
        if (before is replica and log.end_offset >= end) or log.rotten:
            return ""
        # What lies below the log's start counts no more, though its file may still be there.
        there = (batch for batch in log.batches if batch.next_offset > log.start_offset)
        last: dict[int, Batch] = {
            batch.producer_id: batch for batch in there if batch.producer_id != NO_PRODUCER_ID
        }
        for producer, batch in last.items():
            known = replica.sequences.known.get(producer)
            if known is None or known.batches[-1].end < batch.next_offset:
                at = f"offset {batch.base_offset} of {tp}"
                return f"{name} does not know the batch at {at}, the last one of producer {producer} in its log"
        return ""
