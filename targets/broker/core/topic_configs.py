"""
What topics have of their own: read when a session begins, and again whenever the watch on their parent fires.

    the parent (watched) and its children -> each child, and the topic's node -> in force
Who changes one writes the parent too, in the same multi: so one watch is enough, and a broker that has missed some
changes reads them all. A broker registers only once it knows them. One that is older than its topic is of a topic
that was deleted: it does not count.
Source:  Kafka, ZkConfigManager, ConfigEntityZNode; Kafka has a node for each change in place of the parent's data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from targets.broker.core import compaction, leader, readable, retention
from targets.broker.core.permanent_paths import watching_configs
from targets.broker.core.state import Core, Replica, TopicConfig
from targets.broker.core.zookeeper import (
    CONFIG_TOPICS,
    ZkCreate,
    ZkDelete,
    ZkError,
    ZkExists,
    ZkGet,
    ZkNames,
    ZkNode,
    ZkResult,
    ZkSet,
    config_path,
    encode_config,
    topic_path,
)

# Of the parent, whose watchers are to read again whatever it was written by.
_ANY: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitConfigNames:
    """The names of the topics with settings of their own are being read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitConfigs:
    """
    The settings of these topics are being read, each with the topic's node.

    Attributes:
        starting: whether this broker registers only after it.
        number: of this reading.
    """

    names: tuple[str, ...]
    starting: bool
    number: int


def read(core: Core) -> None:
    """Read all of them again; the watch that is set first fires for whatever this reading does not see."""
    if core.state.session:
        core.ask(AwaitConfigNames(), *watching_configs())


def on_names(core: Core, found: ZkResult, *, starting: bool = False) -> bool:
    """Read what each has, if there are any; return whether all is known already."""
    if found is ZkError.NO_NODE:  # somebody has deleted it, or the path above it
        _retry(core, starting=True)
        return False
    if not isinstance(found, ZkNames):
        _retry(core, starting=starting)
        return False
    names = readable.topic_names(core, found.names, CONFIG_TOPICS)
    if not names:
        _take(core, {})
        return True
    pairs = ((ZkGet(path=config_path(name)), ZkExists(path=topic_path(name))) for name in names)
    core.state.config_reading = core.number()
    after = AwaitConfigs(names=names, starting=starting, number=core.state.config_reading)
    core.ask(after, *(op for pair in pairs for op in pair))
    return False


def on_read(core: Core, continuation: AwaitConfigs, results: tuple[ZkResult, ...]) -> bool:
    """Have them in force; return False if they could not be read, and are to be read again."""
    if ZkError.LOST in results:
        _retry(core, starting=continuation.starting)
        return False
    found: dict[str, TopicConfig] = {}
    for name, node, topic in zip(continuation.names, results[::2], results[1::2], strict=True):
        own = read_own(core, name, node, topic)
        if own is not None:
            found[name] = own
    _take(core, found)
    if continuation.number != core.state.config_reading:
        read(core)  # a later reading may have been answered before this one, if this one had more parts
    return True


def read_own(core: Core, name: str, node: ZkResult, topic: ZkResult) -> TopicConfig | None:
    """Return the settings that a topic has of its own, None if there are none, or none that can be read."""
    if not is_of(node, topic):
        return None
    assert isinstance(node, ZkNode), "is_of says that it is there"
    own = readable.read_config(core, name, node)
    return own if own is not None and own.given else None


def is_of(node: ZkResult, topic: ZkResult) -> bool:
    """Return True if a node of settings was written for this topic, and not for an older one of its name."""
    return isinstance(node, ZkNode) and isinstance(topic, ZkNode) and node.mzxid >= topic.czxid


def changes(name: str, node: ZkResult, after: Mapping[str, str]) -> tuple[ZkCreate | ZkSet | ZkDelete, ...]:
    """Return what gives a topic these settings, if their node is as it was read; () if there are none at all."""
    path, data = config_path(name), encode_config(after)
    told = ZkSet(path=CONFIG_TOPICS, data=b"", version=_ANY)
    if isinstance(node, ZkNode):
        known = node.version
        return ZkSet(path=path, data=data, version=known) if after else ZkDelete(path=path, version=known), told
    return (ZkCreate(path=path, data=data), told) if after else ()


def _retry(core: Core, *, starting: bool) -> None:
    core.after_ms(("paths" if starting else "configs",), core.config.register_backoff_ms)


def _take(core: Core, found: dict[str, TopicConfig]) -> None:
    before = core.state.topic_configs
    core.state.topic_configs = found
    for replica in core.state.replicas.values():
        leader.forget_epochs(core, replica)
    if found == before:
        return
    for replica in core.state.replicas.values():
        if before.get(replica.tp.topic) != found.get(replica.tp.topic):
            apply(core, replica)
            _follow_format(core, replica, before.get(replica.tp.topic))
    for key, begin in ((("retention",), retention.begin), (("compaction",), compaction.begin)):
        if key not in core.state.timers:
            begin(core)


def _follow_format(core: Core, replica: Replica, before: TopicConfig | None) -> None:
    """Tell of another message format of a topic; what is appended next is in it."""
    was = core.config if before is None else before.config
    now = core.config_of(replica.tp.topic).message_format
    if now != was.message_format:
        core.observe_replica("format", replica, to=now)


def apply(core: Core, replica: Replica) -> None:
    """Have a log begin its files as its topic has it."""
    own, log_dir = core.state.topic_configs.get(replica.tp.topic), core.disk.log_dir
    if own is None:
        replica.log.configure(log_dir.segment_bytes, log_dir.segment_ms)
    else:
        replica.log.configure(own.segment_bytes, own.segment_ms)
