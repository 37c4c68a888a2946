"""
The administrator of a wide world: asks for what the schedule's own words do not have.

    elections   of several partitions at once, in the node that the controller reads
    creation    of topics in ZooKeeper itself, as old tools made them: replicas in any order, dead ones among them;
                now and then settings for its name are there before it is
    deposal     of a controller that has just begun to read
    validation  of a topic that is not to be created
    deletion    of several topics in one request, and of the same topics by another broker at the same time
    rewriting   of the registration that a broker finds when it starts, as a tool does that corrects an address

Its topics have no records. Each act is drawn from the seed alone, within the first moments of a schedule.
Source:  Kafka's kafka-preferred-replica-election.sh and kafka-topics.sh --zookeeper; KIP-4.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from random import Random
from typing import Final

from harness.model import Op
from harness.workload.plan import Place
from targets.broker.core.assignments import encode_assignment
from targets.broker.core.events import Effect, Event, Start
from targets.broker.core.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewTopic,
    Request,
    TopicPartition,
)
from targets.broker.core.wishes import Wishes
from targets.broker.core.zookeeper import (
    CONFIG_TOPICS,
    ELECTIONS,
    broker_path,
    config_path,
    encode_config,
    topic_path,
)
from targets.simulator.broker.clients.caller import Caller
from targets.simulator.broker.disturbances.by_hand import depose_controller
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS
from targets.simulator.engine.play_time import PlayTime
from targets.simulator.zookeeper import ops

NAME: Final = "administrator"
# How often a wide world has one, how many acts it has, and within which time.
SHARE: Final = 0.4
ACTS_MAX: Final = 6
WITHIN_NS: Final = 500 * NS_PER_MS
# Its topics, unless a run has one of that name, and how long it lets a broker work on a request.
TOPICS: Final = ("spare", "other")
TIMEOUT_MS: Final = 200
# About as long as a controller reads.
READING_NS: Final = 12 * NS_PER_MS
# How often it writes settings before it creates a topic, and which.
SETTINGS_SHARE: Final = 0.4
SETTINGS: Final = {"segment.bytes": "150"}
# How often a registration is rewritten, how many times, and within which time of its broker's start.
REWRITES_SHARE: Final = 0.2
REWRITES: Final = 30
REWRITING_NS: Final = 30 * NS_PER_MS
# About as long as a topic's first states and replicas take.
MADE_NS: Final = 80 * NS_PER_MS


class Administrator:
    """
    One administrator, who acts while a schedule is played.

    Attributes:
        topics: its own, which it writes by hand.

    Args:
        places: the partitions whose leaders it may choose, with their replicas.
        last_line: of the schedule's last step, with which it stops: what comes then must heal.
        taken: the topics of the run's clients. Its own have other names, as the history has nothing of those.
    """

    def __init__(
        self,
        world: World,
        seed: int,
        places: Sequence[tuple[Place, Sequence[str]]],
        last_line: int,
        *,
        taken: Collection[str] = (),
    ) -> None:
        self._world = world
        self._places = [(place, replicas) for place, replicas in places if len(replicas) > 1]
        self._chance = Random(f"administrator {seed}")
        self._settings_chance = Random(f"administrator's settings {seed}")
        self._caller = Caller(world, NAME)
        self._time = PlayTime(last_line)
        self.topics: Final = tuple(_untaken(topic, taken) for topic in TOPICS)
        world.aside |= {*self.topics}
        world.watchers.append(self._on_step)

    def listen(self, op: Op) -> None:
        """Start with the first step."""
        if self._time.begins(op) and self._chance.random() < SHARE:
            for _ in range(self._chance.randint(1, ACTS_MAX)):
                self._caller.later(int(self._chance.random() * WITHIN_NS), self._act)

    def _on_step(self, name: str, event: Event, effects: Sequence[Effect]) -> None:
        """Rewrite the registration of a process that starts, now and then: its own comes in between."""
        del effects
        starts = isinstance(event, Start) and self._time.begun and not self._time.over
        if starts and self._chance.random() < REWRITES_SHARE:
            for _ in range(REWRITES):
                self._caller.later(int(self._chance.random() * REWRITING_NS), partial(self._rewrite, name))

    def _rewrite(self, name: str) -> None:
        path, tree = broker_path(self._world.ids[name]), self._world.zookeeper.tree
        node = tree.nodes.get(path)
        if node is not None and not self._time.over:
            tree.write((ops.Set(path=path, data=node.data, version=ops.ANY_VERSION),), ops.OPERATOR)

    def _act(self) -> None:
        if self._time.over:
            return
        acts: tuple[Callable[[], None], ...] = (
            self._elect,
            self._elect,
            self._create,
            self._depose,
            self._validate,
            self._delete,
        )
        self._chance.choice(acts)()

    def _elect(self) -> None:
        """Ask for the leaders of several partitions, whoever leads them now; the node may be there already."""
        chance, world = self._chance, self._world
        chosen = chance.sample(self._places, chance.randint(0, len(self._places)))
        wanted = {TopicPartition(*place): world.ids[chance.choice(replicas)] for place, replicas in chosen}
        if wanted:
            tree = world.zookeeper.tree
            there = tree.nodes.get(ELECTIONS)
            data = Wishes(elections=wanted).beside(None if there is None else there.data)
            write = ops.Set(path=ELECTIONS, data=data, version=ops.ANY_VERSION)
            tree.write((write if there is not None else ops.Create(path=ELECTIONS, data=data),), ops.OPERATOR)

    def _create(self) -> None:
        """Write a topic's assignment, unless it is there."""
        chance, world = self._chance, self._world
        brokers = list(world.ids.values())
        assignment = {
            partition: tuple(chance.sample(brokers, chance.randint(1, min(3, len(brokers)))))
            for partition in range(chance.randint(1, 2))
        }
        topic = chance.choice(self.topics)
        if self._settings_chance.random() < SETTINGS_SHARE:
            self._give(topic)
        create = ops.Create(path=topic_path(topic), data=encode_assignment(assignment))
        world.zookeeper.tree.write((create,), ops.OPERATOR)

    def _give(self, topic: str) -> None:
        """Write settings for a name, if there are none: those of a topic that comes later they are not."""
        tree, data = self._world.zookeeper.tree, encode_config(SETTINGS)
        if CONFIG_TOPICS in tree.nodes:
            told = ops.Set(path=CONFIG_TOPICS, data=b"", version=ops.ANY_VERSION)
            tree.write((ops.Create(path=config_path(topic), data=data), told), ops.OPERATOR)

    def _depose(self) -> None:
        """Depose the controller while it reads what has just changed."""
        self._create()
        self._caller.later(int(self._chance.random() * READING_NS), self._remove_controller)

    def _remove_controller(self) -> None:
        if not self._time.over:
            depose_controller(self._world)

    def _validate(self) -> None:
        """Ask whether a topic could be created."""
        topic = NewTopic(topic=self._chance.choice(self.topics), partitions=1, replication_factor=1)
        self._ask(CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS, validate_only=True))

    def _delete(self) -> None:
        """Have two brokers delete the same topics at the same time, which may just have been created."""
        self._create()
        self._caller.later(int(self._chance.random() * MADE_NS), self._delete_twice)

    def _delete_twice(self) -> None:
        request = DeleteTopicsRequest(topics=self.topics, timeout_ms=TIMEOUT_MS)
        for _ in range(2):
            self._ask(request)

    def _ask(self, request: Request) -> None:
        nodes = [name for name, node in self._world.nodes.items() if node.listening]
        if nodes:
            self._caller.ask(self._chance.choice(nodes), request, TIMEOUT_MS * NS_PER_MS, lambda _: None)


def _untaken(topic: str, taken: Collection[str]) -> str:
    """Return a name like this one that is not taken."""
    while topic in taken:
        topic += "-too"
    return topic
