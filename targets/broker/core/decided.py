"""What the controller has read of one partition, and what it has decided about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from targets.broker.core.assignments import Move
from targets.broker.core.messages import TopicPartition
from targets.broker.core.zookeeper import PartitionState, ZkCheck, ZkCreate, ZkDelete, ZkSet

Write: TypeAlias = ZkCreate | ZkSet | ZkDelete | ZkCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """
    What was read, or written, where a state may be written.

    Attributes:
        version: of the state that is there, None if there is none.
        below: the names in the partition's path, if it was looked at: something stood in the way of a write.
    """

    topic_version: int
    version: int | None = None
    below: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """
    What a reading found new about the brokers: some decisions have no other cause, and the next finds it no more.

    Attributes:
        returned: the brokers whose registration appeared (all of them, to a new controller).
        gone: the last registration, (broker, czxid), of those that left or bounced.
    """

    returned: frozenset[int] = frozenset()
    gone: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """
    A decision about one partition.

    Attributes:
        ops: what writes it, under the versions that were read; the controller's epoch is checked beside it.
        changes: what its reading found new, to be handled again if the decision is not written.
        saw: the brokers registered at the decision: (broker, czxid).
        fresh: whether the state was read for this decision; if not, its leader may have changed the ISR since.
        moved: whether it also writes the topic's node, as a step of a reassignment.
        move: what that node then has of the move, None if it is over.
        removed: the brokers that are to delete their replicas, as they are no longer assigned.
    """

    tp: TopicPartition
    state: PartitionState
    replicas: tuple[int, ...]
    unclean: bool
    ops: tuple[Write, ...] = ()
    changes: Changes = Changes()
    saw: tuple[tuple[int, int], ...] = ()
    fresh: bool = True
    moved: bool = False
    move: Move | None = None
    removed: tuple[int, ...] = ()
