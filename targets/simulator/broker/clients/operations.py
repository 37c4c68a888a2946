"""
One client operation as a state machine, driven by the world's events: find the broker, ask it, take its answer.

    produce   ok      acknowledged, with its offset; with acks=0 only sent
              fail    certainly not appended: not sent, or refused before the append
              info    all else: no answer in time, or an error after the append
    read      ok      every record from 0 to the high watermark of the first answer
              fail    it did not reach that; a read has no effect
Every request with an effect is sent once; only the search for the leader is repeated.
Source:  targets/kafka_family/clients/raw.py, whose operations and history these are.
Length:  the operations of one client share how it asks; a reader follows one from top to bottom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from harness import events
from harness.events import Event
from harness.kafka_errors import MOVED, surely_not_appended
from harness.limits import CLIENT_OPERATION_S_MAX
from harness.model import OpType, PreconditionError
from targets.broker.core.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    NewTopic,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    Request,
    Response,
    TopicErrors,
    TopicPartition,
)
from targets.broker.core.zookeeper import CONTROLLER, broker_path, leader_and_isr_path
from targets.simulator.broker.coordination import state_in
from targets.simulator.broker.storage.records import content_of, make_batch
from targets.simulator.broker.wire import WirePipe
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import EPOCH_MS, NS_PER_MS, NS_PER_S
from targets.simulator.engine.pipe import REQUESTS, Frame, Pipe

RETRY_NS: Final = 50 * NS_PER_MS
FETCH_BYTES: Final = 1_048_576
# The share of a client's time that the broker gets, so that "timed out" arrives before the client gives up.
BROKERS_SHARE: Final = 0.8
NO_ANSWER: Final = "no answer"
LOST: Final = "connection lost before an answer"
REFUSED_TO_CONNECT: Final = "connection refused"
NOBODY: Final = "the partition has no leader; expected one"


class Operation:
    """
    One operation of one client, in progress.

    Attributes:
        name: the client's name in the history and on the network.
        via: the node to ask, leader or not; "" for the leader.
        timeout_s: for the whole operation; None for the longest allowed.
        done: the operation is over.
        error: why it failed, "" if it did not.
    """

    def __init__(self, world: World, name: str, *, via: str = "", timeout_s: float | None = None) -> None:
        """Create the operation; `ask` starts it."""
        self.name = name
        self.done = False
        self.error = ""
        self.world = world
        self._via = via
        self._pipe: Pipe | None = None
        self._asked = 0
        self._sent = False
        seconds = CLIENT_OPERATION_S_MAX if timeout_s is None else timeout_s
        self._deadline_ns = world.clock.now_ns + int(seconds * NS_PER_S)
        world.add_end(name, self)
        world.on_call(name, self._on_call)
        world.clock.at(self._deadline_ns, ("call", name, "late", 0))

    @property
    def listening(self) -> bool:
        """Return False: clients accept no connections."""
        return False

    # --- for each kind of operation --------------------------------------------------------------------------
    def target(self) -> str | None:
        """Return the node to ask next, None while there is none."""
        raise NotImplementedError

    def request(self) -> Request:
        """Return the next request."""
        raise NotImplementedError

    def answered(self, response: Response) -> None:
        """Process an answer: send the next request, the same one again, or end."""
        raise NotImplementedError

    def failed(self, error: str, *, sent: bool) -> None:
        """Process a lost answer; `sent` says whether the request was sent."""
        raise NotImplementedError

    # --- asking ----------------------------------------------------------------------------------------------
    def ask(self) -> None:
        """Ask now, or later while there is no node to ask."""
        self._asked += 1
        self._sent = False
        self._try()

    def ask_later(self) -> None:
        """Ask after a while, within the operation's time."""
        self._asked += 1
        self._sent = False
        self.world.clock.after(RETRY_NS, ("call", self.name, "again", self._asked))

    def end(self, error: str = "") -> None:
        """End the operation and close the connection."""
        self.done, self.error = True, error
        self._close()
        self.world.network.ends.pop(self.name, None)

    @property
    def left_ms(self) -> int:
        """Return how much of its time the operation leaves to a broker."""
        return max(1, int((self._deadline_ns - self.world.clock.now_ns) * BROKERS_SHARE) // NS_PER_MS)

    def sent(self) -> None:
        """Record that the request was sent."""

    def _try(self) -> None:
        name = self._via or self.target()
        if name is None:
            self.ask_later()
            return
        if not self.world.nodes[name].listening:
            self.failed(f"{name}: {REFUSED_TO_CONNECT}", sent=False)
            return
        if self._pipe is None or self._pipe.over or self._pipe.dst != name:
            self._close()
            self._pipe = self.world.network.dial(self.name, name, "client", WirePipe, outside=True)
        request = self.request()
        self.world.network.send(self._pipe, REQUESTS, (self._asked, request), request)
        self._sent = True
        self.sent()

    def _close(self) -> None:
        if self._pipe is not None and not self._pipe.over:
            self.world.network.hang_up(self._pipe, REQUESTS)
        self._pipe = None

    def _on_call(self, what: str, asked: int) -> None:
        if self.done:
            return
        if what == "late":
            self.late()
        elif asked == self._asked:
            self._try()

    def late(self) -> None:
        """Fail: the time is over."""
        self._asked += 1
        self._close()
        self.failed(NO_ANSWER if self._sent else NOBODY, sent=self._sent)

    def on_frame(self, pipe: Pipe, _direction: int, frame: Frame) -> None:
        """Process an answer if the operation waits for it."""
        asked, response = frame.body
        if pipe is self._pipe and asked == self._asked and not self.done:
            self._sent = False
            self.answered(response)

    def on_end(self, pipe: Pipe) -> None:
        """Process a closed connection."""
        if pipe is self._pipe and not self.done:
            self._pipe = None
            if self._sent:
                self._asked += 1
                self.failed(LOST, sent=True)

    # --- the world's view --------------------------------------------------------------------------------
    def leader_of(self, tp: TopicPartition) -> str | None:
        """Return the leader, as brokers would report it from ZooKeeper: only a registered leader counts."""
        nodes = self.world.zookeeper.tree.nodes
        state = nodes.get(leader_and_isr_path(tp))
        leader = -1 if state is None else state_in(state).leader
        return self.world.name_of(leader) if broker_path(leader) in nodes else None

    def record(self, type_: OpType, event: Event) -> None:
        """Record one op of this client."""
        self.world.observe(self.name, type_, event)


# The answers after which what was asked of a topic may have happened all the same.
DOUBTFUL: Final = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_SERVER_ERROR})


class CreateTopic(Operation):
    """Create a topic with a partition on each of these groups of brokers."""

    def __init__(self, world: World, name: str, topic: str, assignments: Sequence[Sequence[int]]) -> None:
        """Create the operation."""
        super().__init__(world, name)
        self._new = NewTopic(
            topic=topic,
            partitions=-1,
            replication_factor=-1,
            assignments=tuple((at, tuple(ids)) for at, ids in enumerate(assignments)),
        )
        self.ask()

    def target(self) -> str | None:
        """Return the controller."""
        node = self.world.zookeeper.tree.nodes.get(CONTROLLER)
        return None if node is None else self.world.name_of(int(node.data))

    def request(self) -> Request:
        """Return the CreateTopics request."""
        return CreateTopicsRequest(topics=(self._new,), timeout_ms=self.left_ms)

    def answered(self, response: Response) -> None:
        """End with the answer's error, if any."""
        assert isinstance(response, TopicErrors), f"{response!r} is not an answer to a CreateTopics request"
        (_, error, text), *_ = response.errors
        self.end("" if error is ErrorCode.NONE else f"{error.name} {text}".strip())

    def failed(self, error: str, *, sent: bool) -> None:  # noqa: ARG002
        """End: the topic may or may not exist."""
        self.end(error)


class DeleteTopic(Operation):
    """Delete a topic."""

    def __init__(self, world: World, name: str, topic: str) -> None:
        """Create the operation."""
        super().__init__(world, name)
        self._topic = topic
        self.ask()

    def target(self) -> str | None:
        """Return the controller."""
        node = self.world.zookeeper.tree.nodes.get(CONTROLLER)
        return None if node is None else self.world.name_of(int(node.data))

    def request(self) -> Request:
        """Return the DeleteTopics request."""
        return DeleteTopicsRequest(topics=(self._topic,), timeout_ms=self.left_ms)

    def answered(self, response: Response) -> None:
        """End with the answer's error, if any."""
        assert isinstance(response, TopicErrors), f"{response!r} is not an answer to a DeleteTopics request"
        (_, error, text), *_ = response.errors
        self.end("" if error is ErrorCode.NONE else f"{error.name} {text}".strip())

    def failed(self, error: str, *, sent: bool) -> None:  # noqa: ARG002
        """End: the topic may or may not exist."""
        self.end(error)


class Produce(Operation):
    """
    Produce records in one batch, or each in its own; one op of the history for every record.

    No batch is sent after one that was not acknowledged.
    `offsets` is by value; empty with acks=0, where brokers return none.
    """

    def __init__(
        self,
        world: World,
        name: str,
        tp: TopicPartition,
        group: str,
        values: Sequence[str],
        *,
        acks: int,
        codec: str = "none",
        singly: bool = False,
        via: str = "",
        timeout_s: float | None = None,
        age_ms: int | None = None,
    ) -> None:
        """Create the operation."""
        super().__init__(world, name, via=via, timeout_s=timeout_s)
        self._age_ms = age_ms or 0
        self.offsets: dict[str, int] = {}
        self._tp = tp
        self._acks = acks
        self._codec = codec
        self._group = group
        self._count = len(values)
        self._left = [(value,) for value in values] if singly else [tuple(values)]
        self._next()

    def result(self) -> list[int]:
        """Return the offsets of the records; raise PreconditionError if one was not acknowledged."""
        about = f"produce {self._group} acks={self._acks}"
        if not self.done:
            raise PreconditionError(f"{about}: still in progress; expected its result")
        if self.error:
            raise PreconditionError(
                f"{about}: {len(self.offsets)} of {self._count} records acknowledged; {self.error}"
            )
        return list(self.offsets.values())

    def _next(self) -> None:
        if not self._left:
            self.end()
            return
        timestamp_ms = EPOCH_MS + self.world.clock.now_ns // NS_PER_MS - self._age_ms
        self._batch = make_batch(self._left[0], codec=self._codec, timestamp_ms=timestamp_ms)
        for _, digest, value in content_of(self._batch.payload).records:
            self.record(OpType.INVOKE, self._event(value, digest=digest))
        self.ask()

    def target(self) -> str | None:
        """Return the leader."""
        return self.leader_of(self._tp)

    def request(self) -> Request:
        """Return a request that appends the next batch."""
        part = ProducePartition(tp=self._tp, batches=(self._batch,))
        return ProduceRequest(acks=self._acks, timeout_ms=self.left_ms, partitions=(part,))

    def sent(self) -> None:
        """With acks=0, a sent batch is done."""
        if self._acks == 0:
            self._outcome(OpType.OK)

    def answered(self, response: Response) -> None:
        """Record the broker's answer for every record of the batch."""
        assert isinstance(response, ProduceResponse), f"{response!r} is not an answer to a Produce request"
        result = response.results[0]
        if result.error is ErrorCode.NONE:
            self._outcome(OpType.OK, base=result.base_offset)
            return
        refused = surely_not_appended(result.error, self._acks)
        self._outcome(OpType.FAIL if refused else OpType.INFO, error=result.error.name)

    def failed(self, error: str, *, sent: bool) -> None:
        """Fail the batch: if it was sent, it may or may not have been appended."""
        self._outcome(OpType.INFO if sent else OpType.FAIL, error=error)

    def _outcome(self, type_: OpType, *, base: int | None = None, error: str = "") -> None:
        for number, value in enumerate(self._left.pop(0)):
            offset = None
            if base is not None:
                offset = self.offsets[value] = base + number
            self.record(type_, self._event(value, offset=offset, error=error))
        if type_ is OpType.OK:
            self._next()
        else:
            self.end(error)

    def _event(
        self, value: str, *, offset: int | None = None, error: str = "", digest: str = ""
    ) -> events.Produce:
        return events.Produce(
            topic=self._tp.topic,
            partition=self._tp.partition,
            name=self._group,
            acks=self._acks,
            codec=self._codec,
            value=value,
            offset=offset,
            error=error,
            digest=digest,
        )


class Read(Operation):
    """Read from the log's start to the high watermark, as a consumer does; records are (offset, value)."""

    def __init__(self, world: World, name: str, tp: TopicPartition, *, via: str = "") -> None:
        """Create the operation."""
        super().__init__(world, name, via=via)
        self.records: list[tuple[int, str]] = []
        self._tp = tp
        self._event = events.Read(topic=tp.topic, partition=tp.partition)
        self._start = self._position = 0
        self._end: int | None = None
        self._saw = "no node was asked"
        self.record(OpType.INVOKE, self._event)
        self.ask()

    def target(self) -> str | None:
        """Return the leader."""
        return self.leader_of(self._tp)

    def request(self) -> Request:
        """Return a fetch from the current position."""
        part = FetchPartition(tp=self._tp, fetch_offset=self._position, max_bytes=FETCH_BYTES)
        return FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=FETCH_BYTES, partitions=(part,))

    def answered(self, response: Response) -> None:
        """Continue to the first answer's high watermark; after a refusal look for the leader again."""
        assert isinstance(response, FetchResponse), f"{response!r} is not an answer to a Fetch request"
        result = response.results[0]
        if result.error is ErrorCode.OFFSET_OUT_OF_RANGE and self._position < result.log_start_offset:
            # Begin anew: what was there has been deleted, perhaps while this read it.
            self._start = self._position = result.log_start_offset
            self._end = None
            self.records.clear()
            self.ask()
            return
        if result.error is not ErrorCode.NONE:
            self._saw = f"{result.error.name} at {self._position}"
            if result.error in MOVED:
                self.ask_later()
            else:
                self._fail(self._saw)
            return
        self._end = result.high_watermark if self._end is None else self._end
        for batch in result.batches:
            for delta, _, value in content_of(batch.payload).records:
                offset = batch.base_offset + delta
                if self._position <= offset < self._end:
                    self.records.append((offset, value))
            self._position = max(self._position, batch.last_offset + 1)
        if self._position < self._end:
            if result.batches:
                self.ask()
            else:
                self._saw = f"nothing at {self._position}"
                self.ask_later()
            return
        records, start = tuple(self.records), self._start or None
        self.record(OpType.OK, replace(self._event, records=records, start=start, high_watermark=self._end))
        self.end()

    def failed(self, error: str, *, sent: bool) -> None:  # noqa: ARG002
        """Look for the leader again: a read has no effect."""
        self._saw = error
        self.ask_later()

    def late(self) -> None:
        """Fail: the time is over."""
        self._fail(f"{self._saw}; came to {self._position} of {self._end}")

    def _fail(self, error: str) -> None:
        position = None if self._end is None else self._position
        self.record(OpType.FAIL, replace(self._event, position=position, high_watermark=self._end, error=error))
        self.end(error)
