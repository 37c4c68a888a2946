"""A workload's producer in a simulated world: batch after batch, one request at a time, each with its outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from harness.kafka_errors import MOVED, surely_not_appended
from harness.model import OpType
from harness.workload.numbering import IDEMPOTENT_TRIES, Numbering
from harness.workload.plan import Place
from harness.workload.script import ProducerScript, Send
from targets.broker.core.messages import (
    Batch,
    ErrorCode,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    TopicPartition,
)
from targets.simulator.broker.clients.caller import Caller, Outcome
from targets.simulator.broker.clients.metadata import Metadata
from targets.simulator.broker.clients.operations import BROKERS_SHARE, NOBODY, RETRY_NS
from targets.simulator.broker.storage.records import content_of, make_batch
from targets.simulator.engine.clock import EPOCH_MS, NS_PER_MS


@dataclass(slots=True, kw_only=True)
class _Part:
    """
    What a request sends to one partition, while it has no outcome.

    Attributes:
        tries: how often it may still be sent.
        doubtful: whether a try may have been appended although it was not acknowledged.
    """

    place: Place
    values: tuple[str, ...]
    batches: tuple[Batch, ...]
    tries: int
    doubtful: bool = False


class SimProducer:
    """
    One producer of a world; it works until `stopping` is set, and then ends after its request's outcome.

    Args:
        split: decides which records are sent in two batches, where the world has that.
        after_ns: how long it does nothing at first.
    """

    def __init__(
        self, caller: Caller, script: ProducerScript, metadata: Metadata, split: Random, *, after_ns: int = 0
    ) -> None:
        self.done = False
        self.stopping = False
        self._caller = caller
        self._world = caller.world
        self._script = script
        self._metadata = metadata
        self._split = split
        self._send: Send | None = None
        self._deadline_ns = 0
        self._open: list[_Part] = []
        self._numbering = Numbering()
        self._doubtful = False  # a part of this request was not acknowledged
        self._pause(after_ns)

    def _pause(self, more_ns: int = 0) -> None:
        self._caller.later(more_ns + int(self._script.pause_ms() * NS_PER_MS), self._next)

    def _next(self) -> None:
        if self.stopping:
            self.done = True
            self._caller.close()
        elif self._script.plan.idempotent and not self._numbering.has_id:
            self._metadata.ask_any(InitProducerIdRequest(), self._begin)
        else:
            self._send_next()

    def _begin(self, outcome: Outcome) -> None:
        """Take a producer's id, or ask again after a while."""
        got = outcome.response
        if isinstance(got, InitProducerIdResponse) and got.error is ErrorCode.NONE:
            self._numbering.begin(got.producer_id, got.producer_epoch)
            self._next()
        else:
            self._caller.later(RETRY_NS, self._next)

    def _send_next(self) -> None:
        send, world = self._script.next(), self._world
        self._send = send
        self._deadline_ns = world.clock.now_ns + self._script.plan.within_ms * NS_PER_MS
        timestamp_ms = EPOCH_MS + world.clock.now_ns // NS_PER_MS
        for place, values in send.parts:
            batches = tuple(
                self._numbered(place, make_batch(some, codec=send.codec, timestamp_ms=timestamp_ms))
                for some in self._batched(values)
            )
            for batch in batches:
                for _, digest, value in content_of(batch.payload).records:
                    self._record(OpType.INVOKE, place, value, digest=digest)
            tries = self._script.plan.retries + 1
            self._open.append(_Part(place=place, values=values, batches=batches, tries=tries))
        self._ask(list(self._open))

    def _batched(self, values: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return the values of each batch: mostly there is one."""
        share = 0 if self._script.plan.idempotent else self._world.split_share  # a numbered batch comes alone
        if not share or len(values) < 2 or self._split.random() >= share:
            return [values]
        at = self._split.randrange(1, len(values))
        return [values[:at], values[at:]]

    def _numbered(self, place: Place, batch: Batch) -> Batch:
        """Return a batch with the producer's numbers, if it is idempotent."""
        if not self._script.plan.idempotent:
            return batch
        producer_id, epoch, sequence = self._numbering.number(place, batch.last_offset + 1)
        return replace(batch, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)

    # --- asking ----------------------------------------------------------------------------------------------
    def _ask(self, parts: list[_Part]) -> None:
        """Send batches to their leaders, those of one leader together; look for the leaders first if needed."""
        world = self._world
        if any(self._metadata.leader(part.place) is None for part in parts):
            if world.clock.now_ns >= self._deadline_ns:
                for part in parts:
                    self._end(part, OpType.INFO if part.doubtful else OpType.FAIL, error=NOBODY)
                return
            self._metadata.ask(lambda: self._ask_known(parts))
            return
        by_leader: dict[str, list[_Part]] = {}
        for part in parts:
            by_leader.setdefault(str(self._metadata.leader(part.place)), []).append(part)
        for leader, group in by_leader.items():
            self._ask_leader(leader, group)

    def _ask_known(self, parts: list[_Part]) -> None:
        """Go on after metadata was asked for: at once if it names every leader, else after a while."""
        if all(self._metadata.leader(part.place) is not None for part in parts):
            self._ask(parts)
        else:
            self._caller.later(RETRY_NS, lambda: self._ask(parts))

    def _ask_leader(self, leader: str, parts: list[_Part]) -> None:
        assert self._send is not None
        acks, left_ns = self._send.acks, self._deadline_ns - self._world.clock.now_ns
        if self._script.plan.idempotent:
            left_ns = min(left_ns, self._script.plan.within_ms * NS_PER_MS // IDEMPOTENT_TRIES)
        request = ProduceRequest(
            acks=acks,
            timeout_ms=max(1, int(left_ns * BROKERS_SHARE) // NS_PER_MS),
            partitions=tuple(
                ProducePartition(tp=TopicPartition(*part.place), batches=part.batches) for part in parts
            ),
        )
        for part in parts:
            part.tries -= 1
        if acks == 0:
            self._told(parts, self._caller.tell(leader, request))
        else:
            self._caller.ask(leader, request, max(NS_PER_MS, left_ns), lambda got: self._answered(parts, got))

    def _told(self, parts: list[_Part], refused: str) -> None:
        for part in parts:
            if refused:
                self._metadata.forget(part.place)
                self._end(part, OpType.FAIL, error=refused)
            else:
                self._end(part, OpType.OK)

    # --- outcomes --------------------------------------------------------------------------------------------
    def _answered(self, parts: list[_Part], outcome: Outcome) -> None:
        assert self._send is not None
        if outcome.response is None:
            for part in parts:
                self._metadata.forget(part.place)
                part.doubtful |= outcome.sent
                self._missed(part, outcome.error)
            return
        assert isinstance(outcome.response, ProduceResponse), f"{outcome.response!r} answers no Produce"
        results = {result.tp: result for result in outcome.response.results}
        for part in parts:
            result = results[TopicPartition(*part.place)]
            if result.error is ErrorCode.NONE:
                self._end(part, OpType.OK, base=result.base_offset)
                continue
            if result.error in MOVED:
                self._metadata.forget(part.place)
            part.doubtful |= not surely_not_appended(result.error, self._send.acks)
            self._missed(part, result.error.name)

    def _missed(self, part: _Part, error: str) -> None:
        """Send a batch again that was not acknowledged, if it may be, else end it."""
        if part.tries > 0 and self._world.clock.now_ns < self._deadline_ns:
            self._caller.later(RETRY_NS, lambda: self._ask([part]))
        else:
            self._end(part, OpType.INFO if part.doubtful else OpType.FAIL, error=error)

    def _end(self, part: _Part, type_: OpType, *, base: int | None = None, error: str = "") -> None:
        for at, value in enumerate(part.values):
            self._record(type_, part.place, value, offset=None if base is None else base + at, error=error)
        self._open.remove(part)
        self._doubtful |= type_ is not OpType.OK
        if not self._open:
            if self._doubtful and self._numbering.has_id:
                self._numbering.doubt()
            self._doubtful = False
            self._pause()

    def _record(self, type_: OpType, place: Place, value: str, **told: Any) -> None:
        assert self._send is not None
        name, acks, codec = self._script.plan.name, self._send.acks, self._send.codec
        self._caller.record_produce(type_, place, value, name=name, acks=acks, codec=codec, **told)
