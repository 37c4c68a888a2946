"""
What topics have of their own: a broker takes what it has read, and once the world is at rest its logs follow it.

What ZooKeeper holds is read here anew, as it was written: a node that is older than its topic is of another one.
Source:  Kafka, ZkConfigManager, TopicConfigHandler, LogManager.updateConfig.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from targets.broker.core import topic_configs
from targets.broker.core.state import State
from targets.broker.core.zookeeper import (
    BROKER_TOPICS,
    CONFIG_TOPICS,
    ZkError,
    ZkNode,
    ZkResult,
    broker_path,
    topic_path,
)
from targets.simulator.broker.node import Node
from targets.simulator.broker.world import World

Given = Mapping[str, Mapping[str, str]]

_RETENTION: Final = frozenset({"retention.ms", "retention.bytes"})


def wrong_settings(world: World) -> Iterator[tuple[str, str]]:
    """Yield each broker at work that holds to other settings than its topics have, and what is wrong."""
    given = _given(world)
    paths = (path.rpartition("/") for path in world.zookeeper.tree.nodes)
    topics = {topic for above, _, topic in paths if above == BROKER_TOPICS}
    for name, node in world.nodes.items():
        state = None if node.broker is None else node.broker.state
        registered = world.zookeeper.session_of(broker_path(world.ids[name]))
        if state is None or not state.session or registered != state.session:
            continue  # it will read them when its next session begins
        if text := _wrong(node, state, given, topics):
            yield name, f"{name} {text}"


def misread(about: Any, results: Sequence[ZkResult], sessions: Collection[int], state: State) -> str:
    """Return what a broker took from a reading of what topics have, and was not told, "" if nothing."""
    if not isinstance(about, topic_configs.AwaitConfigs) or ZkError.LOST in results:
        return ""
    if set(sessions) != {state.session}:
        return ""
    told = {
        topic: json.loads(node.data)["config"]
        for topic, node, there in zip(about.names, results[::2], results[1::2], strict=True)
        if isinstance(node, ZkNode) and isinstance(there, ZkNode) and node.mzxid >= there.czxid
    }
    known = {topic: dict(own.given) for topic, own in state.topic_configs.items()}
    expected = {topic: given for topic, given in told.items() if given}
    return "" if known == expected else f"takes {known} for what topics have of their own; it has read {expected}"


def _given(world: World) -> Given:
    nodes, found = world.zookeeper.tree.nodes, {}
    for path, node in nodes.items():
        above, _, topic = path.rpartition("/")
        there = nodes.get(topic_path(topic))
        if above == CONFIG_TOPICS and there is not None and node.mzxid >= there.czxid:
            found[topic] = json.loads(node.data)["config"]
    return {topic: given for topic, given in found.items() if given}


def _wrong(node: Node, state: State, given: Given, topics: Collection[str]) -> str:
    """Return what a broker does otherwise than its topics have it, "" if it does nothing."""
    # What a topic had that is gone may be known still: it goes when the next of its name is made.
    there = {topic: dict(own.given) for topic, own in state.topic_configs.items()}
    known = {topic: own for topic, own in there.items() if topic in topics}
    if known != given:
        return f"knows {known} as what topics have of their own, and it is {given}"
    for tp, log in node.disk.logs.items():
        expected = int(given.get(tp.topic, {}).get("segment.bytes", node.disk.segment_bytes))
        if tp in state.replicas and not log.deleted and log.segment_bytes != expected:
            return f"begins the files of {tp} at {log.segment_bytes} bytes; expected {expected}"
    limited = [topic for topic, own in given.items() if _RETENTION & own.keys()]
    if limited and ("retention",) not in state.timers:
        return f"looks no more at the age and size of its logs, which {', '.join(limited)} has limits for"
    return ""
