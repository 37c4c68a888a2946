"""A workload's consumer in a simulated world: it polls all the time, the leaders or every node in turn."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from harness import events
from harness.model import OpType
from harness.workload.plan import Lookup, Place, Via
from harness.workload.script import Ask, ConsumerScript
from targets.broker.core.messages import (
    EpochQuestion,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsPartition,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    TopicPartition,
)
from targets.simulator.broker.clients.caller import Caller, Outcome
from targets.simulator.broker.clients.metadata import Metadata
from targets.simulator.broker.clients.operations import RETRY_NS
from targets.simulator.broker.storage.records import content_of
from targets.simulator.engine.clock import EPOCH_MS, NS_PER_MS

# How much longer than a broker may wait a consumer waits for its answer: a node may be paused.
PATIENCE_NS: Final = 250 * NS_PER_MS
# Kafka's timestamps for the first offset and for the one after the last.
TIMESTAMPS: Final = {Lookup.LATEST: -1, Lookup.EARLIEST: -2}
# The epochs that a consumer asks about, in turn: the first, later ones, and one that no leader has yet.
EPOCHS: Final = (0, 1_000, 1, 3)
# How old the records are that a lookup by time is about: some are not committed yet.
TIME_BACK_MS: Final = 5


class SimConsumer:
    """
    One consumer of a world; it works until `stopping` is set, and then ends after its poll.

    Args:
        after_ns: how long it does nothing at first.
        min_bytes: for so many a poll waits, if it may wait.
    """

    def __init__(
        self,
        caller: Caller,
        script: ConsumerScript,
        metadata: Metadata,
        *,
        after_ns: int = 0,
        min_bytes: int = 1,
    ) -> None:
        self.done = False
        self.stopping = False
        self._caller = caller
        self._world = caller.world
        self._script = script
        self._metadata = metadata
        self._min_bytes = min_bytes
        self._polls = 0
        self._epochs = 0
        self._open = 0
        self._pause(after_ns)

    def _pause(self, more_ns: int = 0) -> None:
        self._caller.later(more_ns + int(self._script.pause_ms() * NS_PER_MS), self._next)

    def _next(self) -> None:
        if self.stopping:
            self.done = True
            self._caller.close()
            return
        if (found := self._script.lookup()) is not None:
            self._look_up(*found)
        if self._script.plan.via is Via.EVERY:
            self._poll_next_node()
        elif any(self._metadata.leader(place) is None for place in self._script.plan.places):
            self._metadata.ask(self._poll_leaders)
        else:
            self._poll_leaders()

    def _poll_next_node(self) -> None:
        """Ask the next node that accepts connections, whether it leads or not."""
        nodes = [name for name, node in self._world.nodes.items() if node.listening]
        if not nodes:
            self._caller.later(RETRY_NS, self._next)
            return
        self._polls += 1
        self._poll({nodes[self._polls % len(nodes)]: self._script.asks()})

    def _poll_leaders(self) -> None:
        """Ask each leader that is known for the partitions which it leads, or look again after a while."""
        groups: dict[str, list[Ask]] = {}
        for ask in self._script.asks():
            if (leader := self._metadata.leader(ask.place)) is not None:
                groups.setdefault(leader, []).append(ask)
        if groups:
            self._poll(groups)
        else:
            self._caller.later(RETRY_NS, self._next)

    def _poll(self, groups: dict[str, list[Ask]]) -> None:
        plan = self._script.plan
        self._open = len(groups)
        for node, asks in groups.items():
            for ask in asks:
                self._record(OpType.INVOKE, _event(node, ask))
            request = FetchRequest(
                replica_id=-1,
                max_wait_ms=plan.wait_ms,
                min_bytes=self._min_bytes,
                max_bytes=plan.max_bytes,
                partitions=tuple(
                    FetchPartition(
                        tp=TopicPartition(*ask.place), fetch_offset=ask.position, max_bytes=plan.max_bytes
                    )
                    for ask in asks
                ),
            )
            within_ns = plan.wait_ms * NS_PER_MS + PATIENCE_NS
            self._caller.ask(node, request, within_ns, partial(self._answered, node, asks))

    def _look_up(self, place: Place, wanted: Lookup) -> None:
        """Ask a node for an offset; oracles judge its answer, and nothing follows from it."""
        nodes = [name for name, node in self._world.nodes.items() if node.listening]
        every = self._script.plan.via is Via.EVERY
        node = nodes[self._polls % len(nodes)] if every and nodes else self._metadata.leader(place)
        if node is not None:
            if wanted is Lookup.EPOCH:
                self._ask_epochs(node)
                return
            timestamp = TIMESTAMPS.get(wanted, EPOCH_MS + self._world.clock.now_ns // NS_PER_MS - TIME_BACK_MS)
            asked = ListOffsetsPartition(tp=TopicPartition(*place), timestamp=timestamp)
            request = ListOffsetsRequest(replica_id=-1, partitions=(asked,))
            self._caller.ask(node, request, PATIENCE_NS, lambda _: None)

    def _ask_epochs(self, node: str) -> None:
        """Ask where some epoch ends in every partition, as a consumer does that checks for truncation."""
        places, epoch = self._script.plan.places, EPOCHS[self._epochs % len(EPOCHS)]
        self._epochs += 1
        questions = tuple(EpochQuestion(tp=TopicPartition(*place), leader_epoch=epoch) for place in places)
        self._caller.ask(node, OffsetForLeaderEpochRequest(questions=questions), PATIENCE_NS, lambda _: None)

    # --- answers ---------------------------------------------------------------------------------------------
    def _answered(self, node: str, asks: list[Ask], outcome: Outcome) -> None:
        if outcome.response is None:
            for ask in asks:
                self._metadata.forget(ask.place)
                self._record(OpType.FAIL, replace(_event(node, ask), error=outcome.error))
        else:
            assert isinstance(outcome.response, FetchResponse), f"{outcome.response!r} answers no Fetch"
            results = {result.tp: result for result in outcome.response.results}
            for ask in asks:
                self._take(node, ask, results.get(TopicPartition(*ask.place)))
        self._open -= 1
        if not self._open:
            self._pause()

    def _take(self, node: str, ask: Ask, result: FetchResult | None) -> None:
        asked = _event(node, ask)
        if result is None:
            self._record(OpType.FAIL, replace(asked, error="the answer lacks the partition"))
            return
        if result.error is not ErrorCode.NONE:
            self._record(OpType.FAIL, replace(asked, error=result.error.name))
            if result.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                self._script.out_of_range(ask, result.log_start_offset)
            else:
                self._metadata.forget(ask.place)
            return
        records, following = [], ask.position
        for batch in result.batches:
            for delta, _, value in content_of(batch.payload).records:
                offset = batch.base_offset + delta
                if offset >= ask.position:
                    records.append((offset, value))
            following = batch.last_offset + 1
        read = replace(asked, records=tuple(records), high_watermark=result.high_watermark)
        self._record(OpType.OK, read)
        self._script.took(ask, records, following)

    def _record(self, type_: OpType, event: events.Poll) -> None:
        self._world.observe(self._caller.name, type_, event)


def _event(node: str, ask: Ask) -> events.Poll:
    return events.Poll(
        topic=ask.place.topic,
        partition=ask.place.partition,
        node=node,
        position=ask.position,
        sought=ask.sought,
    )
