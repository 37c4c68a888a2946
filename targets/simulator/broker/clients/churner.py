"""A workload's churner in a simulated world: creates, writes to, deletes and creates again a topic of its own."""

from __future__ import annotations

from typing import Any, Final

from harness import events
from harness.kafka_errors import MOVED, surely_not_appended
from harness.model import OpType
from harness.workload.plan import ACKS_ALL, Place
from harness.workload.script import ChurnAct, ChurnScript, Create, Write
from targets.broker.core.messages import (
    Batch,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ErrorCode,
    NewTopic,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    TopicErrors,
    TopicPartition,
)
from targets.broker.core.zookeeper import CONTROLLER
from targets.simulator.broker.clients.caller import Caller, Outcome
from targets.simulator.broker.clients.metadata import Metadata
from targets.simulator.broker.clients.operations import BROKERS_SHARE, DOUBTFUL, NOBODY, RETRY_NS
from targets.simulator.broker.storage.records import content_of, make_batch
from targets.simulator.engine.clock import EPOCH_MS, NS_PER_MS

_CODEC: Final = "none"
NO_CONTROLLER: Final = "there is no controller; expected one to ask"


class SimChurner:
    """One churner of a world; it works until `stopping` is set, and then ends after its request's outcome."""

    def __init__(self, caller: Caller, script: ChurnScript) -> None:
        self.done = False
        self.stopping = False
        self._caller = caller
        self._world = caller.world
        self._script = script
        self._plan = script.plan
        # Leaders are those of one generation, so that all are forgotten whenever the topic may have changed.
        self._metadata = Metadata(caller, dict.fromkeys(self._plan.places), script.any_of)
        self._deadline_ns = 0
        self._next()

    def _next(self) -> None:
        pause_ms, act = self._script.next()
        self._caller.later(int(pause_ms * NS_PER_MS), lambda: self._begin(act))

    def _begin(self, act: ChurnAct) -> None:
        if self.stopping:
            self.done = True
            self._caller.close()
            return
        self._deadline_ns = self._world.clock.now_ns + self._plan.within_ms * NS_PER_MS
        if isinstance(act, Write):
            self._write(act)
        else:
            self._change(act)

    @property
    def _left_ns(self) -> int:
        return max(NS_PER_MS, self._deadline_ns - self._world.clock.now_ns)

    @property
    def _left_ms(self) -> int:
        """How much of its time it leaves to a broker."""
        return max(1, int(self._left_ns * BROKERS_SHARE) // NS_PER_MS)

    # --- create and delete -----------------------------------------------------------------------------------
    def _change(self, act: ChurnAct) -> None:
        """Ask the controller to create or to delete the topic, once."""
        topic, world = self._plan.topic, self._world
        event: events.CreateTopic | events.DeleteTopic = events.DeleteTopic(topic=topic)
        request: CreateTopicsRequest | DeleteTopicsRequest
        request = DeleteTopicsRequest(topics=(topic,), timeout_ms=self._left_ms)
        if isinstance(act, Create):
            event = events.CreateTopic(topic=topic, assignments=act.assignments)
            new = NewTopic(
                topic=topic,
                partitions=-1,
                replication_factor=-1,
                assignments=tuple(
                    (at, tuple(world.ids[name] for name in names)) for at, names in enumerate(act.assignments)
                ),
            )
            request = CreateTopicsRequest(topics=(new,), timeout_ms=self._left_ms)
        world.observe(self._caller.name, OpType.INVOKE, event)
        office = world.zookeeper.tree.nodes.get(CONTROLLER)
        node = None if office is None else world.name_of(int(office.data))
        if node is None:
            self._changed(event, OpType.FAIL, NO_CONTROLLER)
        else:
            self._caller.ask(node, request, self._left_ns, lambda outcome: self._answered(event, outcome))

    def _answered(self, event: events.CreateTopic | events.DeleteTopic, outcome: Outcome) -> None:
        if outcome.response is None:
            self._changed(event, OpType.INFO if outcome.sent else OpType.FAIL, outcome.error)
            return
        assert isinstance(outcome.response, TopicErrors), f"{outcome.response!r} answers no create or delete"
        (_, error, text), *_ = outcome.response.errors
        if error is ErrorCode.NONE:
            self._changed(event, OpType.OK, "")
        else:
            type_ = OpType.INFO if error in DOUBTFUL else OpType.FAIL
            self._changed(event, type_, f"{error.name} {text}".strip())

    def _changed(self, event: events.CreateTopic | events.DeleteTopic, type_: OpType, error: str) -> None:
        ended: events.CreateTopic | events.DeleteTopic = events.DeleteTopic(topic=event.topic, error=error)
        if isinstance(event, events.CreateTopic):
            ended = events.CreateTopic(topic=event.topic, assignments=event.assignments, error=error)
        self._world.observe(self._caller.name, type_, ended)
        for place in self._plan.places:
            self._metadata.forget(place)
        self._next()

    # --- write -----------------------------------------------------------------------------------------------
    def _write(self, act: Write) -> None:
        timestamp_ms = EPOCH_MS + self._world.clock.now_ns // NS_PER_MS
        batch = make_batch(act.values, codec=_CODEC, timestamp_ms=timestamp_ms)
        for _, digest, value in content_of(batch.payload).records:
            self._record(OpType.INVOKE, act.place, value, digest=digest)
        self._send(act, batch)

    def _send(self, act: Write, batch: Batch) -> None:
        """Send the batch to the leader, once; look for it first if needed."""
        leader = self._metadata.leader(act.place)
        if leader is not None:
            part = ProducePartition(tp=TopicPartition(*act.place), batches=(batch,))
            request = ProduceRequest(acks=ACKS_ALL, timeout_ms=self._left_ms, partitions=(part,))
            self._caller.ask(leader, request, self._left_ns, lambda outcome: self._wrote(act, outcome))
        elif self._world.clock.now_ns >= self._deadline_ns:
            self._written(act, OpType.FAIL, error=NOBODY)
        else:
            self._metadata.ask(lambda: self._send_known(act, batch))

    def _send_known(self, act: Write, batch: Batch) -> None:
        """Go on after metadata was asked for: at once if it names the leader, else after a while."""
        if self._metadata.leader(act.place) is not None:
            self._send(act, batch)
        else:
            self._caller.later(RETRY_NS, lambda: self._send(act, batch))

    def _wrote(self, act: Write, outcome: Outcome) -> None:
        if outcome.response is None:
            self._metadata.forget(act.place)
            self._written(act, OpType.INFO if outcome.sent else OpType.FAIL, error=outcome.error)
            return
        assert isinstance(outcome.response, ProduceResponse), f"{outcome.response!r} answers no Produce"
        result = outcome.response.results[0]
        if result.error is ErrorCode.NONE:
            self._written(act, OpType.OK, base=result.base_offset)
            return
        if result.error in MOVED:
            self._metadata.forget(act.place)
        refused = surely_not_appended(result.error, ACKS_ALL)
        self._written(act, OpType.FAIL if refused else OpType.INFO, error=result.error.name)

    def _written(self, act: Write, type_: OpType, *, base: int | None = None, error: str = "") -> None:
        for at, value in enumerate(act.values):
            self._record(type_, act.place, value, offset=None if base is None else base + at, error=error)
        self._next()

    def _record(self, type_: OpType, place: Place, value: str, **told: Any) -> None:
        name = self._plan.name
        self._caller.record_produce(type_, place, value, name=name, acks=ACKS_ALL, codec=_CODEC, **told)
