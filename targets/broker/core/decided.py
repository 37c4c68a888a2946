"""What the controller has decided about one partition, and from what it knew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from targets.broker.core.messages import TopicPartition
from targets.broker.core.zookeeper import PartitionState, ZkCheck, ZkCreate, ZkDelete, ZkSet

Write: TypeAlias = ZkCreate | ZkSet | ZkDelete | ZkCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """
    What a reading found new about the brokers: some decisions have no other cause, and the next finds it no more.

    Attributes:
        returned: the brokers whose registration appeared (all of them, to a new controller).
        gone: the last registration, (broker, czxid), of those that left or bounced; () where czxids do not count.
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
    """

    tp: TopicPartition
    state: PartitionState
    replicas: tuple[int, ...]
    unclean: bool
    ops: tuple[Write, ...] = ()
    changes: Changes = Changes()
    saw: tuple[tuple[int, int], ...] = ()
