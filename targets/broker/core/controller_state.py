"""What a controller knows while it is in office, as plain data."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from targets.broker.core.assignments import Move
from targets.broker.core.decided import Changes, Decided, Seen
from targets.broker.core.messages import (
    NO_TOPIC_ID,
    LeaderAndIsr,
    LeaderAndIsrRequest,
    StopReplica,
    StopReplicaRequest,
    TopicPartition,
)
from targets.broker.core.zookeeper import PartitionState


@dataclass(slots=True, kw_only=True)
class Channel:
    """
    What one broker is still to be told: of each partition the newest alone (V3, "Potential optimizations" 1).

    Attributes:
        broker_epoch: the registration that all of it is addressed to, -1 for any.
        stops: the replicas to delete. They go first: what is to be told of the same partition is about the next
            topic of that name, or the next replica there.
        states: the newest state of each partition.
        is_init: whether the states are all that the broker has, so that it deletes every other replica (V3 C, 3).
        sent: the request that was sent last and is not answered.
        tag: of its question, None if nothing is in flight.
    """

    broker_epoch: int = -1
    stops: dict[TopicPartition, StopReplica] = field(default_factory=dict)
    states: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    is_init: bool = False
    sent: LeaderAndIsrRequest | StopReplicaRequest | None = None
    tag: int | None = None

    @property
    def is_empty(self) -> bool:
        """Return True if there is nothing more to send, though an answer may be missing."""
        return not (self.stops or self.states or self.is_init)


@dataclass(slots=True, kw_only=True)
class Controller:
    """The controller's knowledge while in office; what it writes, it writes under the versions that it knows."""

    active: bool = False
    epoch: int = 0
    epoch_version: int = -1
    node_version: int = 0  # of /controller, as this broker has written it
    tried: int = 0  # the epoch of the last election that this broker ran for, in office or not
    in_office: bool = False  # the first reading after the election is done
    reading: bool = False
    read_again: bool = False
    live: dict[int, int] = field(default_factory=dict)  # broker -> czxid of its registration
    # By partition, what led to a decision about it that was not written.
    unhandled: dict[TopicPartition, Changes] = field(default_factory=dict)
    assignments: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    # What was read last, or written since: topic -> (czxid, version) of its node; partition -> its state.
    topics: dict[str, tuple[int, int]] = field(default_factory=dict)
    seen: dict[TopicPartition, Seen] = field(default_factory=dict)
    states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    # Of the partitions that are not seen, those that have had their turn while others wait for theirs.
    tried_to_see: set[TopicPartition] = field(default_factory=set)
    moves: dict[TopicPartition, Move] = field(default_factory=dict)  # the reassignments that are not over
    # Whom an operator wants to lead where: until it is written, or need not or cannot be.
    wanted: dict[TopicPartition, int] = field(default_factory=dict)
    topic_ids: dict[str, int] = field(default_factory=dict)  # of the topics assigned, NO_TOPIC_ID without the rule
    # Of the partitions that were removed and added again their own ids, and how many their topics had before.
    partition_ids: dict[TopicPartition, int] = field(default_factory=dict)
    once: dict[str, int] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)  # of the topics that have one, the mark
    # Topics, with the czxids of their nodes: those that are being given a mark, and those that cannot have one.
    marking: set[tuple[str, int]] = field(default_factory=set)
    markless: set[tuple[str, int]] = field(default_factory=set)
    channels: dict[int, Channel] = field(default_factory=dict)
    told_all: set[int] = field(default_factory=set)  # the brokers that were sent a command with INIT
    # Those to be sent one: they have too much to delete to be told singly, or something could not be read before.
    owed_init: set[int] = field(default_factory=set)
    # Broker -> the replicas to stop once it registers again.
    unstopped: dict[int, dict[TopicPartition, StopReplica]] = field(default_factory=dict)
    uncertain: dict[TopicPartition, Decided] = field(default_factory=dict)  # writes whose answer was lost
    writes: deque[Decided] = field(default_factory=deque)  # decisions that are not sent yet
    split: deque[tuple[Decided, ...]] = field(default_factory=deque)  # those of refused multis, sent first
    writing: int = 0  # decisions in flight
    refused: set[TopicPartition] = field(default_factory=set)  # something stands in the way of their states

    def id_of(self, tp: TopicPartition) -> int:
        """Return the id that a partition goes by."""
        return partition_id(self.topic_ids[tp.topic], self.partition_ids.get(tp))


def partition_id(topic_id: int, own: int | None) -> int:
    """Return a partition's own id, if it has one, else its topic's; none where topics have no identity."""
    return topic_id if own is None or topic_id == NO_TOPIC_ID else own
