"""
Where partitions are: what brokers write to the nodes of topics, and take out of the operator's node.

    numbers     a topic's partitions are numbered from 0 without a gap, as clients count them
    identities  a partition keeps its id, and one that is added has an id that none of its number had before; that
                there were more partitions is remembered, as that id depends on it
    changes     a partition goes, or is moved, only as somebody asked; a move that was asked for is not forgotten
    fences      a topic's node and a state are written only as of the version that was read

An operator may write what he likes, but for what others asked for in the operator's node.
Source:  Kafka Replication Design V3, Paths, F, on_partitions_add, on_partitions_remove, discussion 5; KIP-455.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from targets.broker.core.events import ZkAsk
from targets.broker.core.made import made_path
from targets.broker.core.messages import TopicPartition
from targets.broker.core.zookeeper import BROKER_TOPICS, CONTROLLER_EPOCH, ELECTIONS, ZkMulti, ZkSet
from targets.simulator.broker.oracles.operator_node import Asked, dropped, read_asked, taken
from targets.simulator.broker.oracles.violation import Rule, Violations
from targets.simulator.broker.world import World
from targets.simulator.zookeeper import ops


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """
    A topic's node.

    Attributes:
        moves: of each partition that is being moved, from which replicas and to which.
        ids: of the partitions that have another one than the topic's.
        once: how many partitions the topic had before some were removed.
        made: the mark that tells it from others of its name, "" if it has none.
    """

    czxid: int
    replicas: Mapping[int, tuple[int, ...]]
    moves: Mapping[int, tuple[tuple[int, ...], tuple[int, ...]]]
    ids: Mapping[int, int]
    once: int
    made: str = ""

    def id_of(self, partition: int) -> int:
        """Return what tells a partition from others of its number, before it and after it."""
        return self.ids.get(partition, self.czxid)


def read_topic(data: bytes, czxid: int) -> Topic:
    """Return what a topic's node holds; nothing if that cannot be read."""
    try:
        raw = json.loads(data)
        moves = raw.get("moves", {}).items()
        return Topic(
            czxid=czxid,
            replicas={int(partition): tuple(of) for partition, of in raw["partitions"].items()},
            moves={int(partition): (tuple(move["from"]), tuple(move["to"])) for partition, move in moves},
            ids={int(partition): own for partition, own in raw.get("ids", {}).items()},
            once=raw.get("once", 0),
            made=raw.get("made", ""),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return Topic(czxid=czxid, replicas={}, moves={}, ids={}, once=0)


class Placing:
    """What stands in the nodes of topics and of the operator of one world, judged with every write."""

    def __init__(self, world: World, violations: Violations, main: TopicPartition) -> None:
        """Read what is there, and watch from now on; report what is about no partition with the main one."""
        self._world = world
        self._violations = violations
        self._main = main
        self._tree = world.zookeeper.tree
        self._topics: dict[str, Topic] = {}
        self._had: dict[TopicPartition, set[int]] = {}
        there = self._tree.nodes.get(ELECTIONS)
        self._asked = read_asked(None if there is None else there.data)
        for path, node in self._tree.nodes.items():
            if (topic := _topic_of(path)) is not None:
                self._know(topic, read_topic(node.data, node.czxid))
        self._tree.wrote.append(self._on_write)

    def on_ask(self, name: str, asked: ZkAsk) -> None:
        """Check that what a broker asks ZooKeeper to write is fenced by what it has read."""
        for op in asked.ops:
            for part in op.ops if isinstance(op, ZkMulti) else ():
                if isinstance(part, ZkSet) and part.version == ops.ANY_VERSION and _is_of_topics(part.path):
                    self._wrong(name, None, f"asks to write {part.path} over whatever stands there by then")

    # --- what was written ------------------------------------------------------------------------------------
    def _on_write(self, parts: Sequence[ops.Write], session: int) -> None:
        known = self._world.zookeeper.sessions.get(session)
        writer, asked = "" if known is None else known.owner, self._asked
        for part in parts:
            topic = _topic_of(part.path)
            if topic is not None and isinstance(part, ops.Create | ops.Set):
                now = read_topic(part.data, self._tree.nodes[part.path].czxid)
                was = self._topics.get(topic)
                if writer and was is not None and isinstance(part, ops.Set):
                    for partition, text in self._of_topic(topic, was, now, asked):
                        tp = None if partition is None else TopicPartition(topic, partition)
                        self._wrong(writer, tp, text)
                self._know(topic, now)
            elif topic is not None and isinstance(part, ops.Delete):
                self._topics.pop(topic, None)
        for part in parts:
            if part.path == ELECTIONS and not isinstance(part, ops.Check):
                self._asked = read_asked(None if isinstance(part, ops.Delete) else part.data)
                takes = any(isinstance(each, ops.Check) and each.path == CONTROLLER_EPOCH for each in parts)
                placed = {topic: self._placed(topic) for each in parts if (topic := _set(each)) is not None}
                wrong = taken(asked, self._asked, placed.get) if takes else dropped(asked, self._asked)
                for tp, text in wrong:
                    self._wrong(writer, tp, text)

    def _know(self, topic: str, now: Topic) -> None:
        self._topics[topic] = now
        for partition in now.replicas:
            self._had.setdefault(TopicPartition(topic, partition), set()).add(now.id_of(partition))

    def _placed(self, topic: str) -> Mapping[int, frozenset[tuple[int, ...]]] | None:
        there = self._topics.get(topic)
        if there is None:
            return None
        wanted = {partition: move[1:] for partition, move in there.moves.items()}
        return {number: frozenset((of, *wanted.get(number, ()))) for number, of in there.replicas.items()}

    def _of_topic(self, topic: str, was: Topic, now: Topic, asked: Asked) -> Iterator[tuple[int | None, str]]:
        """Yield what is wrong with a broker's write of a topic's node; one that has none left is being deleted."""
        if not now.replicas or not was.replicas:
            return
        said = f"writes topic {topic} with partitions {sorted(now.replicas)}"
        if _is_numbered(was) and not _is_numbered(now):
            yield None, f"{said}; expected them to be numbered from 0"
        given = not was.made and made_path(topic, now.made) in self._tree.nodes
        if was.made != now.made and not given:
            expected = f"{was.made!r}, which it has" if was.made else "'', or one that only it has"
            yield None, f"{said}, and the mark {now.made!r}; expected {expected}"
        had = max(was.once, *(partition + 1 for partition in was.replicas.keys() - now.replicas.keys()), 0)
        if now.once < had:
            yield None, f"{said}, and remembers {now.once} that it once had; expected {had}"
        for partition, before in was.replicas.items():
            if partition not in now.replicas:
                if TopicPartition(topic, partition) not in asked.removals:
                    yield partition, f"{said}, and nobody asked for {partition} to be removed"
                continue
            if was.id_of(partition) != now.id_of(partition):
                ids = f"{now.id_of(partition)}, and it had {was.id_of(partition)}"
                yield partition, f"writes topic {topic} with the id {ids}, for partition {partition}"
            yield from ((partition, text) for text in _moved(topic, partition, before, was, now))
        for partition in now.replicas.keys() - was.replicas.keys():
            if now.id_of(partition) in self._had.get(TopicPartition(topic, partition), ()):
                own = now.id_of(partition)
                yield partition, f"adds partition {partition} to topic {topic} with the id {own} of one before it"

    def _wrong(self, writer: str, tp: TopicPartition | None, text: str) -> None:
        nodes = (writer,) if writer else ()
        self._violations.add(Rule.OFFICE, tp or self._main, nodes, -1, f"{writer or 'an operator'} {text}")


def _topic_of(path: str) -> str | None:
    """Return the topic whose node has this path, None if none has."""
    above, _, name = path.rpartition("/")
    return name if above == BROKER_TOPICS else None


def _set(part: ops.Write) -> str | None:
    """Return the topic whose node is written, None if none is."""
    return _topic_of(part.path) if isinstance(part, ops.Set) else None


def _is_of_topics(path: str) -> bool:
    return path.startswith(f"{BROKER_TOPICS}/")


def _is_numbered(topic: Topic) -> bool:
    return sorted(topic.replicas) == [*range(len(topic.replicas))]


def _moved(topic: str, partition: int, before: tuple[int, ...], was: Topic, now: Topic) -> Iterator[str]:
    """Yield what is wrong with a partition's replicas, or with the move that it had."""
    after, move = now.replicas[partition], was.moves.get(partition)
    if after != before and (move is None or {*after} not in ({*move[1]}, {*before, *move[1]})):
        yield f"moves {topic}-{partition} from {list(before)} to {list(after)}, as nobody asked"
    elif move is not None and partition not in now.moves and after not in move:
        wanted = f"is to be moved to {list(move[1])}"
        yield f"forgets that {topic}-{partition} {wanted}, and leaves it on {list(after)}"
