"""
Partitions that an operator removes from a topic: one write takes them out of it, then their replicas are stopped.

    asked for in the operator's node -> what is below their paths -> one multi -> read again: StopReplica
V3 stops the replicas first and writes the topic last: a controller that dies in between leaves partitions that are
assigned, and have no replica. Here one multi takes the request out of its node, the partitions out of the topic's,
and their states away. A controller that dies before it has done nothing, and the next one begins; after it the
next one's INIT, or a broker's own start, deletes the replicas, as those of a topic that is gone.
Only the highest numbers can go, and partition 0 stays: clients count a topic's partitions from 0, and find a key's
by their count. One that is added again has an id of its own (V3, discussion 5): what is late of its predecessor is
of an older id, and harms it no more than a deleted topic's does the next of its name.
Source:  Kafka Replication Design V3, Paths 6 and on_partitions_remove; Apache Kafka never had it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from targets.broker.core import made
from targets.broker.core.assignments import Assignment
from targets.broker.core.fences import in_office
from targets.broker.core.messages import TopicPartition
from targets.broker.core.state import Core
from targets.broker.core.wishes import decode_wishes, take_out
from targets.broker.core.zookeeper import (
    ZkCheck,
    ZkChildren,
    ZkDelete,
    ZkMulti,
    ZkNames,
    ZkNode,
    ZkResult,
    ZkSet,
    partition_path,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitBelow:
    """
    Partitions are to be removed; what is below their paths is being read.

    Attributes:
        asked: the operator's node.
        topic, node, has: the topic, its node, and what that holds; None if what was asked for cannot be done.
        gone: the partitions that go now.
        left: what the operator asked for that is left for later.
    """

    office: int
    asked: ZkNode
    topic: str
    node: ZkNode | None
    has: Assignment
    gone: tuple[int, ...] = ()
    left: tuple[TopicPartition, ...] = ()


def removable(has: Assignment, wished: Collection[int], most: int) -> tuple[int, ...]:
    """Return those of the wished partitions that can go now: the highest, so many at most, and never all."""
    found: list[int] = []
    for partition in sorted(has.replicas, reverse=True)[:-1]:
        if partition not in wished or len(found) == most:
            break
        found.append(partition)
    return tuple(found)


def begin(core: Core, office: int, asked: ZkNode, topics: Iterable[tuple[str, ZkNode, Assignment]]) -> None:
    """Read what is below the partitions of the first topic that are to go; what cannot be done is left out."""
    wishes, there = decode_wishes(asked.data).removals, {topic: (node, has) for topic, node, has in topics}
    topic = wishes[0].topic
    wished = {tp.partition for tp in wishes if tp.topic == topic}
    node, has = there.get(topic, (None, Assignment(replicas={})))
    if made.is_missing(core, topic, has.made):
        node, has = None, Assignment(replicas={})
    most = core.config.together.writes_together_max
    gone = removable(has, wished, most)
    left = tuple(tp for tp in wishes if tp.topic != topic or (len(gone) == most and tp.partition not in gone))
    after = AwaitBelow(office=office, asked=asked, topic=topic, node=node, has=has, gone=gone, left=left)
    core.ask(after, *(ZkChildren(path=partition_path(TopicPartition(topic, each))) for each in gone))


def taking(core: Core, continuation: AwaitBelow, results: Sequence[ZkResult]) -> ZkMulti:
    """Return the write that removes them, all or nothing; a state that appeared since then refuses it."""
    topic, has, gone = continuation.topic, continuation.has, continuation.gone
    ops: list[ZkCheck | ZkDelete | ZkSet] = [
        in_office(core),
        take_out(continuation.asked, continuation.left),
    ]
    if continuation.node is not None and gone:
        ops += made.rewriting(core, topic, continuation.node, without(has, gone))
    for partition, below in zip(gone, results, strict=True):
        if isinstance(below, ZkNames):
            path = partition_path(TopicPartition(topic, partition))
            ops += [ZkDelete(path=f"{path}/{name}") for name in below.names]
            ops.append(ZkDelete(path=path))
    return ZkMulti(ops=tuple(ops))


def without(has: Assignment, gone: Collection[int]) -> Assignment:
    """Return what a topic has without some partitions, and remember that it had them."""
    return replace(
        has,
        replicas={partition: of for partition, of in has.replicas.items() if partition not in gone},
        moves={partition: move for partition, move in has.moves.items() if partition not in gone},
        ids={partition: own for partition, own in has.ids.items() if partition not in gone},
        once=max(has.once, *(partition + 1 for partition in has.replicas)),
    )


def added(has: Assignment, more: Collection[int], change: int) -> dict[int, int]:
    """
    Return the ids of a topic's partitions with those that are added: one that was there before has a new id.

    Args:
        change: the last change of the topic's node, which is later than whatever was written of a predecessor.
    """
    return has.ids | {partition: change for partition in more if partition < has.once}
