"""
The broker's whole state as plain data, so that it can be copied, restored and fingerprinted.

No closures, futures or callbacks: a continuation of an open question is a `Pending` value under the
question's tag, and a timeout is a timer key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from targets.broker.core.controller_state import Controller
from targets.broker.core.epochs import EpochCache
from targets.broker.core.events import Caller, Effect, Exit, Observe, Send, ZkAsk
from targets.broker.core.fetcher import Fetcher
from targets.broker.core.log_port import LATEST_FORMAT, LogPort
from targets.broker.core.messages import (
    NO_TOPIC_ID,
    LeaderAndIsrRequest,
    Request,
    StopReplicaRequest,
    TopicPartition,
)
from targets.broker.core.producer_block import ProducerBlock
from targets.broker.core.rules import Rules
from targets.broker.core.sequences import Sequences
from targets.broker.core.sessions import Sessions
from targets.broker.core.timers import TimerKey, Timers
from targets.broker.core.waiting import WaitingDeletion, WaitingElection, WaitingFetch, WaitingProduce
from targets.broker.core.waits import Waits
from targets.broker.core.zookeeper import Registration, ZkMulti, ZkOp, ZkResult
from targets.broker.limits import Limits

NS_PER_MS = 1_000_000
# Operations of one ask, a multi's counted one by one; the client for ZooKeeper takes some 0.1 ms for each.
ASK_OPS_MAX = 250
# A controller's decisions in flight to ZooKeeper at once, those in one multi, and the bytes of one: ZooKeeper
# takes no more than 1 MB in one request.
WRITES_IN_FLIGHT_MAX = 250
# So many new partitions one reading of the controller takes: other topics wait until they are written.
FIRSTS_TOGETHER_MAX = 1_000
WRITES_TOGETHER_MAX = 125
WRITE_BYTES_MAX = 512 * 1024
# Replicas that one command deletes; each takes a broker about a millisecond.
STOPPED_TOGETHER_MAX = 50
# Partitions of which one command tells; each takes a broker about a quarter of a millisecond.
TOLD_TOGETHER_MAX = 500
# Paths of one multi: with the longest name some 300 bytes each, of the 1 MB that ZooKeeper takes in one request.
DELETES_TOGETHER_MAX = 1_000
# Partitions of one request of a follower; a leader's limit is request_items_max, which counts topics too.
ASKS_TOGETHER_MAX = 1_000
# Bytes of records that an answer may hold where memory is no concern.
UNBOUNDED = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """
    How much is done at once; the rest follows. Small numbers show in small worlds what else thousands would need.

    Attributes:
        ask_ops_max: operations of one ask, a multi's counted one by one.
        firsts_max: partitions that a reading of the controller begins to know.
        writes_max: a controller's decisions in flight.
        writes_together_max: those that one multi writes.
        write_bytes_max: bytes of one multi of them.
        stops_max: partitions of one StopReplica.
        states_max: partitions of one LeaderAndIsr; one with INIT names all.
        deletes_max: nodes that one multi of a topic's deletion deletes.
        asks_max: partitions of a follower's request.
    """

    ask_ops_max: int = ASK_OPS_MAX
    firsts_max: int = FIRSTS_TOGETHER_MAX
    writes_max: int = WRITES_IN_FLIGHT_MAX
    writes_together_max: int = WRITES_TOGETHER_MAX
    write_bytes_max: int = WRITE_BYTES_MAX
    stops_max: int = STOPPED_TOGETHER_MAX
    states_max: int = TOLD_TOGETHER_MAX
    deletes_max: int = DELETES_TOGETHER_MAX
    asks_max: int = ASKS_TOGETHER_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The operator's settings. Times in ms; defaults are Kafka's (0.10 to 2.4) unless a comment says otherwise."""

    broker_id: int
    registration: Registration
    protocol: str
    rules: Rules
    min_isr: int = 1
    unclean_election: bool = False
    # In which a leader writes, 1 or 2: in format 1 nothing has an epoch (KIP-101, migration).
    message_format: int = LATEST_FORMAT
    replica_lag_ms_max: int = 10_000
    fetch_wait_ms_max: int = 500
    fetch_min_bytes: int = 1
    fetch_bytes_max: int = 1_048_576  # of one partition
    fetch_response_bytes_max: int = 10_485_760
    fetch_backoff_ms: int = 1_000
    high_watermark_checkpoint_ms: int = 5_000
    controller_backoff_ms: int = 500
    register_backoff_ms: int = 500
    # Of a topic whose client leaves these numbers to the broker (KIP-464).
    num_partitions: int = 1
    default_replication_factor: int = 1
    # Partitions that are copied to new replicas at once; how often the controller looks whether they are in sync.
    reassignments_max: int = 100
    reassignment_check_ms: int = 1_000
    # How often the preferred replicas are elected where they are in sync; 0: if somebody asks (Kafka: 300,000).
    preferred_leader_check_ms: int = 0
    # How long a broker that is asked to end may take until others lead what it leads; 0: it ends at once.
    controlled_shutdown_ms: int = 0
    limits: Limits = field(default_factory=Limits)
    together: Together = field(default_factory=Together)
    # Read again with each checkpoint, to find batches that have changed: some hundred batches if they are small,
    # which the loop can do between two requests. Cluster runs have a checkpoint every 50 ms.
    check_bytes_max: int = 16_384
    # Whole files are deleted that have only older records, or that a log has beyond so many bytes; 0: none.
    retention_ms: int = 0
    retention_bytes: int = 0
    retention_check_ms: int = 300_000
    # Of the records of one key the newest stays, and a tombstone so long; how much of the logs is read at once.
    compact: bool = False
    compaction_check_ms: int = 15_000
    compaction_bytes_max: int = 1_048_576
    delete_retention_ms: int = 86_400_000
    flush_messages: int = 0  # flush a log after so many records; 0: never, the operating system does it


class Role(StrEnum):
    """The role of a replica in its partition."""

    NONE = "none"
    LEADER = "leader"
    FOLLOWER = "follower"


class Phase(StrEnum):
    """What a follower is doing (Kafka's ReplicaState, with the fenced fetcher and the failed one)."""

    TRUNCATING = "truncating"
    FETCHING = "fetching"
    FENCED = "fenced"
    FAILED = "failed"


@dataclass(slots=True, kw_only=True)
class Progress:
    """What the leader knows of a follower: its log's end and start (-1: nothing yet), when it was caught up."""

    end: int = -1
    start: int = -1
    caught_up_ns: int = 0
    last_fetch_ns: int = 0
    leader_end_at_last_fetch: int = 0


@dataclass(slots=True, kw_only=True)
class Replica:
    """
    One replica of a partition on this broker.

    high_watermark is at most the log end. generation rises with every change of role and every truncation, and
    voids the questions, timers and flushes of before. A new replica's is higher than that of any that this broker
    stopped: its topic may have had a predecessor of the same name, whose answers are still on their way.
    first_generation is the one that it was made with.
    """

    tp: TopicPartition
    log: LogPort
    epochs: EpochCache
    high_watermark: int
    replicas: tuple[int, ...] = ()
    role: Role = Role.NONE
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    zk_version: int = -1
    generation: int = 0
    first_generation: int = 0
    topic_id: int = NO_TOPIC_ID  # as it was told; a leader's is in its state in ZooKeeper, and beside it
    # as leader
    epoch_start: int = 0
    progress: dict[int, Progress] = field(default_factory=dict)
    isr_asked: tuple[int, ...] | None = None
    isr_blocked: bool = False
    # as follower
    phase: Phase = Phase.FAILED
    fallback: int = 0  # where to truncate if the leader knows nothing: the HW, then where the walk has arrived
    sequences: Sequences = field(default_factory=Sequences)
    # for flush_messages
    flush_asked: int = 0
    # damaged batches of its log, by first offset, with their ends
    damages: dict[int, int] = field(default_factory=dict)
    repair_failed: bool = False  # its leader did not give the first of them; it is asked again later
    checked_to: int = 0  # how far the log was read again, in this round


# --- continuations -----------------------------------------------------------------------------------
class Pending(Protocol):
    """What continues when an answer comes; its type selects the handler."""


@dataclass(slots=True, kw_only=True)
class AwaitRest:
    """A part of a long ask is in flight; the rest follows, then `continuation` gets all results at once."""

    continuation: Pending
    left: list[ZkOp]
    session: int | None = None  # of the first answer
    results: list[ZkResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class State:
    """The broker's whole state."""

    config: Config
    session: int = 0
    registered: bool = False
    registration: int = 0  # the number of this broker's registration (its czxid), 0 while unknown
    started: bool = False
    leaving: bool = False
    controller_epoch: int = 0
    controller_known: bool = False  # /controller_epoch was read since the process began
    replicas: dict[TopicPartition, Replica] = field(default_factory=dict)
    topic_configs: dict[str, TopicConfig] = field(default_factory=dict)  # of topics with settings of their own
    config_reading: int = 0  # the number of the last reading of those
    fetchers: dict[int, Fetcher] = field(default_factory=dict)  # by leader, what is asked of it
    generations_over: int = 0  # above the generation of every replica that was stopped
    controller: Controller = field(default_factory=Controller)
    pending: dict[int, Pending] = field(default_factory=dict)
    timers: Timers = field(default_factory=Timers)
    produces: Waits[WaitingProduce] = field(default_factory=Waits)
    fetches: Waits[WaitingFetch] = field(default_factory=Waits)
    sessions: Sessions = field(default_factory=Sessions)  # of those who fetch from this broker
    deletions: Waits[WaitingDeletion] = field(default_factory=Waits)
    producer_ids: ProducerBlock = field(default_factory=ProducerBlock)
    elections: dict[int, WaitingElection] = field(default_factory=dict)
    # commands that came before this process was registered
    early: list[tuple[Caller, LeaderAndIsrRequest | StopReplicaRequest]] = field(default_factory=list)
    # what commands deleted before this process had read ZooKeeper: replicas, each with its topic's id; and whether
    # one named all that are left
    stopped: dict[TopicPartition, int] = field(default_factory=dict)
    told_all: bool = False
    unreadable: dict[str, int] = field(default_factory=dict)  # nodes that were named, by path: their last change
    checkpointed: dict[TopicPartition, int] = field(default_factory=dict)  # what the high watermark file holds
    checking: TopicPartition | None = None  # whose log is read again next
    cleaning: TopicPartition | None = None  # whose log is compacted next
    next_number: int = 1
    armed_ns: int = -1


class LogDir(NamedTuple):
    """Where a broker's logs are, and when each begins a new file (segment_ms 0: by size alone)."""

    path: str
    segment_bytes: int
    segment_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """
    The settings of a topic that has some of its own.

    Attributes:
        given: its own, by Kafka's names, as text.
        config: the broker's, with the topic's own in their place.
        segment_bytes, segment_ms: when its logs begin new files, as in LogDir.
    """

    given: Mapping[str, str]
    config: Config
    segment_bytes: int
    segment_ms: int


class DiskPort(Protocol):
    """Creates the logs of new replicas."""

    @property
    def log_dir(self) -> LogDir:
        """Return where they are, and how they are stored."""

    def create(self, tp: TopicPartition, topic_id: int) -> LogPort:
        """
        Create an empty log of this topic, whose id is durable before the log is used.

        The high watermark checkpoint has no entry for it from then on, durably.
        """


@dataclass(slots=True, kw_only=True)
class Core:
    """
    One step in progress: the state, the time of the event, and the effects so far.

    wall_ms is the wall clock's time, since 1970; -1 where nobody has one. room is how many bytes of records the
    answers of this step to clients may still hold. ending is why the broker must not go on after this step.
    """

    state: State
    disk: DiskPort
    now_ns: int = 0
    wall_ms: int = -1
    room: int = UNBOUNDED
    effects: list[Effect] = field(default_factory=list)
    ending: Exit | None = None
    # Brokers that there is something new to tell, in a dict without values: what one step decides goes together.
    to_tell: dict[int, None] = field(default_factory=dict)

    @property
    def config(self) -> Config:
        """Return the operator's settings."""
        return self.state.config

    @property
    def rules(self) -> Rules:
        """Return the protocol's rules."""
        return self.state.config.rules

    def config_of(self, topic: str) -> Config:
        """Return the settings that hold for a topic: its own, and for all others this broker's."""
        own = self.state.topic_configs.get(topic)
        return self.state.config if own is None else own.config

    def configs(self) -> Iterator[Config]:
        """Yield this broker's settings, then those of each topic that has some of its own."""
        yield self.state.config
        for own in self.state.topic_configs.values():
            yield own.config

    def number(self) -> int:
        """Return a number that was never returned before."""
        self.state.next_number += 1
        return self.state.next_number

    def send(self, to: int, channel: str, request: Request, continuation: Pending) -> int:
        """Send a request to another broker; `continuation` gets the answer."""
        tag = self.number()
        self.state.pending[tag] = continuation
        self.effects.append(Send(to=to, tag=tag, channel=channel, request=request))
        return tag

    def ask(self, continuation: Pending, *ops: ZkOp) -> None:
        """
        Send operations to ZooKeeper; `continuation` gets the results.

        Many are sent part by part, each once the part before is answered: sending takes time, and others must be
        served meanwhile. Other asks may come between the parts.
        """
        if _weight(ops) <= self.config.together.ask_ops_max:
            tag = self.number()
            self.state.pending[tag] = continuation
            self.effects.append(ZkAsk(tag=tag, ops=ops))
        else:
            self.ask_rest(AwaitRest(continuation=continuation, left=list(reversed(ops))))

    def ask_rest(self, rest: AwaitRest) -> None:
        """Send the next part of a long ask."""
        part = [rest.left.pop()]
        weight = _weight(part)
        most = self.config.together.ask_ops_max
        while rest.left and (weight := weight + _weight(rest.left[-1:])) <= most:
            part.append(rest.left.pop())
        tag = self.number()
        self.state.pending[tag] = rest
        self.effects.append(ZkAsk(tag=tag, ops=tuple(part)))

    def observe(self, f: str, value: Mapping[str, Any]) -> None:
        """Emit an event."""
        self.effects.append(Observe(f=f, value=value))

    def observe_replica(self, f: str, replica: Replica, **value: Any) -> None:
        """Emit an event about one replica."""
        self.observe(f, {"topic": replica.tp.topic, "partition": replica.tp.partition, **value})

    def after_ms(self, key: TimerKey, delay_ms: int) -> None:
        """Set (or move) a timer."""
        self.state.timers.set(key, self.now_ns + delay_ms * NS_PER_MS)


def _weight(ops: Iterable[ZkOp]) -> int:
    return sum(len(op.ops) if isinstance(op, ZkMulti) else 1 for op in ops)
