"""
Answers are whole and come in time: each names all partitions that were asked, no wait is longer or shorter than
it may be, and a fetch that waits is answered once there are records.

Source:  Kafka's DelayedFetch and DelayedProduce: done when there is enough, or when the time is up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from targets.broker.core.assignments import decode_topic
from targets.broker.core.messages import (
    AlterConfigsResponse,
    ErrorCode,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
    Request,
    Response,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicPartition,
)
from targets.broker.core.state import Replica, Role
from targets.broker.core.zookeeper import BROKER_TOPICS, topic_path
from targets.simulator.broker.oracles.calls import Told
from targets.simulator.broker.oracles.violation import Rule, Violations
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS
from targets.simulator.zookeeper import ops

# Timers are exact in virtual time; this is for a step that has several of them.
SLACK_NS: Final = NS_PER_MS
_OF_PARTITIONS: Final = (FetchRequest, ProduceRequest, ListOffsetsRequest, LeaderAndIsrRequest, StopReplicaRequest)


class Waits:
    """Judges when and how completely requests are answered, whatever they ask."""

    def __init__(self, world: World, violations: Violations, main: TopicPartition) -> None:
        """Report what is about no partition with the main one."""
        self._world = world
        self._violations = violations
        self._main = main
        # When a partition of that topic, with its number and id, was first seen there.
        self._added: dict[tuple[str, int, int, int], int] = {}
        self._since: dict[tuple[str, int], int] = {}  # when a topic of that czxid was first seen in ZooKeeper

    def on_answered(self, name: str, request: Request, response: Response, received_ns: int) -> None:
        """Judge an answer and its time."""
        if isinstance(response, MetadataResponse):
            self._metadata(name, response, received_ns)
            return
        self._whole(name, request, response)
        # For how long a request waited that a slow disk held up is not known.
        timed = not self._world.nodes[name].held_up(received_ns)
        if isinstance(request, FetchRequest) and isinstance(response, FetchResponse):
            if timed:
                self._fetch(name, request, response, received_ns)
        elif isinstance(request, ProduceRequest) and isinstance(response, ProduceResponse):
            if timed:
                self._produce(name, request, response, received_ns)
        elif isinstance(request, ListOffsetsRequest) and isinstance(response, ListOffsetsResponse):
            if request.replica_id < 0:
                self._offsets(name, request, response)
        elif isinstance(request, OffsetForLeaderEpochRequest):
            self._epochs(name, request, response)

    # --- completeness ----------------------------------------------------------------------------------------
    def _whole(self, name: str, request: Request, response: Response) -> None:
        asked = _asked(request)
        told = None if asked is None else _told(response)
        if asked is not None and told is not None and sorted(asked) != sorted(told):
            missing = [str(tp) for tp in asked if tp not in told]
            lacks = f"lacks {', '.join(missing)}" if missing else f"has {', '.join(map(str, told))}"
            of = ", ".join(map(str, asked))
            text = f"{name} answers a {type(request).__name__} of {of}, and the answer {lacks}"
            self._violated(name, asked[0] if asked else self._main, text)

    def _metadata(self, name: str, response: MetadataResponse, received_ns: int) -> None:
        """
        Check that leaders are among the brokers of the answer, and that a topic's partitions are all from 0 on.

        A topic or partition that was made after the question may be missing: the broker may have read ZooKeeper
        before.
        """
        live = {broker.broker_id for broker in response.brokers}
        nodes = self._world.zookeeper.tree.nodes
        topics = {path.rpartition("/")[2] for path in nodes if path.rpartition("/")[0] == BROKER_TOPICS}
        for topic in response.topics:
            for found in topic.partitions:
                if found.leader >= 0 and found.leader not in live:
                    text = (
                        f"{name} names broker {found.leader} as leader of {found.tp}, and does not list it as live"
                    )
                    self._violated(name, found.tp, text)
            if topic.topic not in topics:
                continue
            made = (topic.topic, nodes[topic_path(topic.topic)].czxid)
            seen_ns = self._since.setdefault(made, self._world.clock.now_ns)
            if topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and seen_ns < received_ns:
                self._violated(
                    name, self._main, f"{name} does not know topic {topic.topic}, which is in ZooKeeper"
                )
            elif topic.error is ErrorCode.NONE:
                told = {found.tp.partition for found in topic.partitions}
                if told and max(told) >= len(told):
                    text = f"{name} names partitions {', '.join(map(str, sorted(told)))} of topic {topic.topic}; "
                    text += "expected all from 0 on"
                    self._violated(name, TopicPartition(topic.topic, max(told)), text)
                if missing := sorted(self._known(made, nodes[topic_path(topic.topic)], received_ns) - told):
                    text = f"{name}'s metadata of {topic.topic} lacks partition {', '.join(map(str, missing))}"
                    self._violated(name, TopicPartition(topic.topic, missing[0]), text)

    def _known(self, made: tuple[str, int], node: ops.Node, received_ns: int) -> set[int]:
        """
        Return the partitions of a topic that were there before a question came.

        A node that was written once has all of them from the start; of others only what was seen before counts.
        """
        has, now_ns = decode_topic(node.data), self._world.clock.now_ns
        if node.mzxid == node.czxid:
            return {*has.replicas}
        known = {each: (*made, each, has.ids.get(each, made[1])) for each in has.replicas}
        return {each for each, about in known.items() if self._added.setdefault(about, now_ns) < received_ns}

    # --- time ------------------------------------------------------------------------------------------------
    def _fetch(self, name: str, request: FetchRequest, response: FetchResponse, received_ns: int) -> None:
        if not request.partitions or request.max_wait_ms <= 0:
            return
        wait_ns, waited_ns = request.max_wait_ms * NS_PER_MS, self._waited(name, received_ns)
        if any(result.error is not ErrorCode.NONE for result in response.results):
            return
        size = sum(batch.size for result in response.results for batch in result.batches)
        about = f"a fetch that may wait {request.max_wait_ms} ms"
        if self._is_late(name, received_ns, wait_ns):
            self._violated(name, request.partitions[0].tp, f"{name} answers {about} after {_ms(waited_ns)}")
        elif not size and waited_ns < wait_ns and request.min_bytes > 0:
            text = f"{name} answers {about} without a record after {_ms(waited_ns)}"
            self._violated(name, request.partitions[0].tp, text)
        elif size and request.min_bytes <= 1 and waited_ns == wait_ns:
            text = f"{name} answers {about} at its end, with records that were there before"
            self._violated(name, request.partitions[0].tp, text)

    def in_order(self, name: str, told: Sequence[Told]) -> None:
        """Check that requests whose time is up in one step are answered in the order of their times."""
        last_ns = 0
        if any(self._world.nodes[name].held_up(received_ns) for _, _, received_ns in told):
            return
        for request, _, received_ns in told:
            if isinstance(request, FetchRequest | ProduceRequest):
                wait_ms = request.max_wait_ms if isinstance(request, FetchRequest) else request.timeout_ms
                due_ns = self._world.nodes[name].clock.own(received_ns) + wait_ms * NS_PER_MS
                if due_ns < last_ns:
                    text = f"{name} answers what was due {_ms(last_ns - due_ns)} ago after what was due later"
                    self._violated(name, self._main, text)
                last_ns = max(last_ns, due_ns)

    # --- what a leader knows ---------------------------------------------------------------------------------
    def _offsets(self, name: str, request: ListOffsetsRequest, response: ListOffsetsResponse) -> None:
        """Check that a consumer is told offsets by a leader, and none that is not committed."""
        times = {part.tp: part.timestamp for part in request.partitions}
        for result in response.results:
            replica = self._replica(name, result.tp)
            if replica is None or result.error is not ErrorCode.NONE:
                continue
            high = replica.high_watermark
            # By time it is told the offset of a record; else it may be the one that the next record gets.
            above = result.offset >= high if times.get(result.tp, -1) >= 0 else result.offset > high
            if replica.role is not Role.LEADER:
                self._violated(name, result.tp, f"{name} tells a consumer an offset, and does not lead")
            elif above and result.offset >= 0:
                text = f"{name} tells a consumer offset {result.offset}, above its high watermark {high}"
                self._violated(name, result.tp, text)

    def _epochs(self, name: str, request: OffsetForLeaderEpochRequest, response: Response) -> None:
        """Check that no end is told of an epoch that is newer than any that the leader knows."""
        asked = {question.tp: question.leader_epoch for question in request.questions}
        for told in response.answers if isinstance(response, OffsetForLeaderEpochResponse) else ():
            replica = self._replica(name, told.tp)
            if replica is None or told.error is not ErrorCode.NONE or told.end_offset < 0:
                continue
            if replica.epochs.entries and asked.get(told.tp, -1) > replica.epochs.latest:
                newest, epoch = replica.epochs.latest, asked[told.tp]
                text = f"{name} says that epoch {epoch} ends at {told.end_offset}, and knows none after {newest}"
                self._violated(name, told.tp, text)

    def _replica(self, name: str, tp: TopicPartition) -> Replica | None:
        broker = self._world.nodes[name].broker
        return None if broker is None else broker.state.replicas.get(tp)

    def _produce(self, name: str, request: ProduceRequest, response: ProduceResponse, received_ns: int) -> None:
        wait_ns, waited_ns = request.timeout_ms * NS_PER_MS, self._waited(name, received_ns)
        about = f"a produce that may wait {request.timeout_ms} ms"
        late = self._is_late(name, received_ns, wait_ns)
        early = waited_ns < wait_ns and any(r.error is ErrorCode.REQUEST_TIMED_OUT for r in response.results)
        if request.partitions and (late or early):
            what = "as timed out " if early else ""
            self._violated(name, request.partitions[0].tp, f"{name} answers {about} {what}after {_ms(waited_ns)}")

    def _waited(self, name: str, received_ns: int) -> int:
        """Return for how long a request has waited, by its node's clock."""
        clock = self._world.nodes[name].clock
        return clock.now_ns - clock.own(received_ns)

    def _is_late(self, name: str, received_ns: int, wait_ns: int) -> bool:
        """Return True if an answer comes later than its wait; a paused node's timers fire when it resumes."""
        node = self._world.nodes[name]
        due_ns = max(node.clock.own(received_ns) + wait_ns, node.clock.own(node.resumed_ns))
        return node.clock.now_ns > due_ns + SLACK_NS

    def _violated(self, name: str, tp: TopicPartition, text: str) -> None:
        self._violations.add(Rule.ANSWERS, tp, (name,), -1, text)


def _asked(request: Any) -> list[TopicPartition] | None:
    """Return the partitions that a request asks for, None if its answer need not name them."""
    if isinstance(request, OffsetForLeaderEpochRequest):
        return [question.tp for question in request.questions]
    if isinstance(request, _OF_PARTITIONS):
        return [part.tp for part in request.partitions]
    return None


def _told(response: Any) -> list[TopicPartition] | None:
    if isinstance(response, LeaderAndIsrResponse | StopReplicaResponse):
        return None if response.error is not ErrorCode.NONE else [tp for tp, _ in response.errors]
    if isinstance(response, AlterConfigsResponse):
        return None  # it is about topics
    parts = getattr(response, "results", None)
    parts = getattr(response, "answers", None) if parts is None else parts
    return None if parts is None else [part.tp for part in parts]


def _ms(time_ns: int) -> str:
    return f"{time_ns / NS_PER_MS:.1f} ms"
