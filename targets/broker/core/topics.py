"""
Topics that clients create and delete: their nodes in ZooKeeper; the controller does the rest.

Source:  Kafka Replication Design V3, B (on_topic_change).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from targets.broker.core import readable, settings, topic_configs
from targets.broker.core.assignments import Assignment, encode_assignment, encode_topic
from targets.broker.core.events import Answer, Caller
from targets.broker.core.made import is_made_path, made_path, new_mark
from targets.broker.core.messages import CreateTopicsRequest, DeleteTopicsRequest, ErrorCode, NewTopic, TopicErrors
from targets.broker.core.names import is_topic_name
from targets.broker.core.placement import place
from targets.broker.core.state import Core
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    ZkCheck,
    ZkChildren,
    ZkCreate,
    ZkDelete,
    ZkDone,
    ZkError,
    ZkExists,
    ZkMulti,
    ZkNames,
    ZkNode,
    ZkResult,
    ZkSet,
    config_path,
    has_topic_id,
    topic_path,
)

LOST = "the connection to ZooKeeper was lost"
# What a write is told where the topic, or what stands with it, was written after it was read.
MEANWHILE = frozenset({ZkError.REFUSED, ZkError.BAD_VERSION, ZkError.NO_NODE, ZkError.NODE_EXISTS})


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitLiveBrokers:
    """Topics are to be created; the list of live brokers is being read."""

    caller: Caller
    request: CreateTopicsRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTopicsWrite:
    """
    Topics are being created or deleted: the results so far, and the names whose writes are in flight.

    Attributes:
        ids: of each topic that is being deleted, which one it is: the czxid of its node.
        again: whether the deletion was read and begun once more.
        refused: the topics whose deletion is to be begun once more.
        rest: what is written next of a large topic, if all of it that is in flight was written.
    """

    caller: Caller
    errors: tuple[tuple[str, ErrorCode, str], ...]
    names: tuple[str, ...]
    deleting: bool
    ids: Mapping[str, int] = field(default_factory=dict)
    again: bool = False
    refused: tuple[str, ...] = ()
    rest: tuple[tuple[str, ZkMulti], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTopicsToDelete:
    """
    Topics are to be deleted; their partitions are being read.

    Attributes:
        ids: of a deletion that is begun once more, which topics it is of.
    """

    caller: Caller
    topics: tuple[str, ...]
    errors: tuple[tuple[str, ErrorCode, str], ...]
    ids: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitPartitionsToDelete:
    """
    Topics are to be deleted; what is below their partitions is being read.

    Attributes:
        nodes: each topic's node, as it was read.
        own: the node of each topic's own settings, or that there is none.
        paths: what is below a topic, each with its topic: its partitions, and whatever else is there.
    """

    caller: Caller
    topics: tuple[str, ...]
    nodes: tuple[ZkNode, ...]
    own: tuple[ZkResult, ...]
    paths: tuple[tuple[str, str], ...]
    errors: tuple[tuple[str, ErrorCode, str], ...]
    again: bool = False


def on_create_topics(core: Core, caller: Caller, request: CreateTopicsRequest) -> None:
    """Read the live brokers, then write the topics' paths; the controller does the rest (V3 B)."""
    left_over = (ZkExists(path=config_path(name)) for name in _named(request))
    core.ask(AwaitLiveBrokers(caller=caller, request=request), ZkChildren(path=BROKER_IDS), *left_over)


def _named(request: CreateTopicsRequest) -> list[str]:
    """Return the topics: settings of an older one, altered while that was deleted, may be there still."""
    return list(dict.fromkeys(new.topic for new in request.topics if is_topic_name(new.topic)))


def on_live_read(core: Core, continuation: AwaitLiveBrokers, results: tuple[ZkResult, ...]) -> None:
    """Check each topic and write the valid ones."""
    result = ZkError.LOST if ZkError.LOST in results else results[0]
    if not isinstance(result, ZkNames):
        late = tuple((topic.topic, ErrorCode.REQUEST_TIMED_OUT, LOST) for topic in continuation.request.topics)
        core.effects.append(Answer(to=continuation.caller, response=TopicErrors(errors=late)))
        return
    live = list(readable.broker_ids(core, result.names))
    left_over = iter(results[1:])
    of_older = {name: next(left_over) for name in _named(continuation.request)}
    errors: list[tuple[str, ErrorCode, str]] = []
    writes: list[ZkMulti] = []
    names: list[str] = []
    left = core.config.limits.topic_partitions_max
    named = Counter(topic.topic for topic in continuation.request.topics)
    # Of a name that comes twice, nobody knows which topic was meant (Kafka's INVALID_REQUEST).
    errors += [
        (name, ErrorCode.INVALID_REQUEST, f"topic {name[:80]!r} was named {count} times; expected once")
        for name, count in named.items()
        if count > 1
    ]
    for topic in continuation.request.topics:
        if named[topic.topic] > 1:
            continue
        placed, error, text = place(core.config, topic, sorted(live), left)
        left -= len(placed)
        if error is ErrorCode.NONE:
            error, text = _settings_refusal(core, topic)
        if error is not ErrorCode.NONE or continuation.request.validate_only:
            errors.append((topic.topic, error, text))
            continue
        mark = new_mark(core)
        data = encode_topic(Assignment(replicas=dict(placed), made=mark))
        create: tuple[ZkCreate, ...] = (ZkCreate(path=topic_path(topic.topic), data=data),)
        if mark:
            create += (ZkCreate(path=made_path(topic.topic, mark)),)
        given = {name: text for name, text in topic.settings if text is not None}
        own = topic_configs.changes(topic.topic, of_older[topic.topic], given)
        writes.append(ZkMulti(ops=(*create, *own)))
        names.append(topic.topic)
    after = AwaitTopicsWrite(caller=continuation.caller, errors=tuple(errors), names=tuple(names), deleting=False)
    core.ask(after, *writes)


def _settings_refusal(core: Core, topic: NewTopic) -> tuple[ErrorCode, str]:
    """Return why a topic cannot have the settings that a client wants; Kafka's INVALID_CONFIG for all of it."""
    for name, text in topic.settings:
        if text is None:
            return ErrorCode.INVALID_CONFIG, f"setting {name[:80]!r} has no value; expected one"
    try:
        settings.topic_config({name: text or "" for name, text in topic.settings}, core.config, core.disk.log_dir)
    except settings.SettingError as error:
        return ErrorCode.INVALID_CONFIG, str(error)
    return ErrorCode.NONE, ""


def on_delete_topics(core: Core, caller: Caller, request: DeleteTopicsRequest) -> None:
    """Read which partitions the topics have, then delete their paths; the controller stops the replicas (V3 B)."""
    topics = tuple(dict.fromkeys(request.topics))
    sound = tuple(topic for topic in topics if is_topic_name(topic))
    unsound = tuple((topic, ErrorCode.INVALID_TOPIC, "") for topic in topics if not is_topic_name(topic))
    _read_to_delete(core, AwaitTopicsToDelete(caller=caller, topics=sound, errors=unsound))


def _read_to_delete(core: Core, continuation: AwaitTopicsToDelete) -> None:
    paths = [topic_path(topic) for topic in continuation.topics]
    own = (ZkExists(path=config_path(topic)) for topic in continuation.topics)
    below = (ZkChildren(path=path) for path in paths)
    core.ask(continuation, *(ZkExists(path=path) for path in paths), *below, *own)


def on_to_delete(core: Core, continuation: AwaitTopicsToDelete, results: tuple[ZkResult, ...]) -> None:
    """Read next what is below each partition; a younger topic of the name is not the one that is to go."""
    errors = [*continuation.errors]
    topics: list[str] = []
    found: list[ZkNode] = []
    paths: list[tuple[str, str]] = []
    own: list[ZkResult] = []
    count = len(continuation.topics)
    nodes = zip(results[:count], results[count : 2 * count], results[2 * count :], strict=True)
    for topic, (node, below, settings_node) in zip(continuation.topics, nodes, strict=True):
        if (
            isinstance(node, ZkNode)
            and isinstance(below, ZkNames)
            and continuation.ids.get(topic, node.czxid) == node.czxid
        ):
            topics.append(topic)
            found.append(node)
            own.append(settings_node)
            paths += [(topic, f"{topic_path(topic)}/{name}") for name in below.names]
        else:
            errors.append(_not_read(topic, below if isinstance(node, ZkNode) else node))
    after = AwaitPartitionsToDelete(
        caller=continuation.caller,
        topics=tuple(topics),
        nodes=tuple(found),
        own=tuple(own),
        paths=tuple(paths),
        errors=tuple(errors),
        again=bool(continuation.ids),
    )
    core.ask(after, *(ZkChildren(path=path) for _, path in paths))


def _not_read(topic: str, node: ZkResult) -> tuple[str, ErrorCode, str]:
    if node is ZkError.LOST:
        return topic, ErrorCode.REQUEST_TIMED_OUT, LOST
    return topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""


def on_partitions_to_delete(
    core: Core, continuation: AwaitPartitionsToDelete, results: tuple[ZkResult, ...]
) -> None:
    """
    Delete each topic's path and everything below it.

    One multi is all or nothing, but ZooKeeper takes no more than 1 MB in one. A larger topic goes in several, the
    topic itself in the last: if one fails, the topic is still there, and can be deleted again. The first of them
    empties its assignment: a controller that reads in between must not begin again what is half gone. The others
    follow once it is done: where another write came before it, nothing of the topic may go.
    """
    errors = dict.fromkeys(continuation.topics, (ErrorCode.NONE, ""))
    paths: dict[str, list[str]] = {topic: [] for topic in continuation.topics}
    for (topic, path), node in zip(continuation.paths, results, strict=True):
        if isinstance(node, ZkNames):
            paths[topic] += [f"{path}/{name}" for name in node.names]
            paths[topic].append(path)
        elif node is not ZkError.NO_NODE:  # a partition that was removed meanwhile takes no topic with it
            errors[topic] = _not_read(topic, node)[1:]
    unread = [(topic, *error) for topic, error in errors.items() if error[0] is not ErrorCode.NONE]
    firsts: list[tuple[str, ZkMulti]] = []
    rest: list[tuple[str, ZkMulti]] = []
    for topic, node, own in zip(continuation.topics, continuation.nodes, continuation.own, strict=True):
        if errors[topic][0] is ErrorCode.NONE:
            multis = _deletes(topic, node.version, paths[topic], core.config.together.deletes_max)
            if isinstance(own, ZkNode):  # its settings go with it; one that is written later counts for no other
                multis[-1] = ZkMulti(ops=(*multis[-1].ops, *topic_configs.changes(topic, own, {})))
            firsts.append((topic, multis[0]))
            rest += [(topic, multi) for multi in multis[1:]]
    after = AwaitTopicsWrite(
        caller=continuation.caller,
        errors=(*continuation.errors, *unread),
        names=tuple(topic for topic, _ in firsts),
        deleting=True,
        ids={topic: node.czxid for topic, node in zip(continuation.topics, continuation.nodes, strict=True)},
        again=continuation.again,
        rest=tuple(rest),
    )
    core.ask(after, *(multi for _, multi in firsts))


def _deletes(topic: str, version: int, below: Sequence[str], most: int) -> list[ZkMulti]:
    """
    Return the multis that delete a topic, each about at most so many nodes.

    Of several each has the version that the first one makes, so that none reaches a topic that is written
    meanwhile. A younger one of that name may have just that version, but neither the topic's mark nor its id: a
    node whose path has one goes in the last, and the others check it. (Without topic_identity there is none.)
    """
    path = topic_path(topic)
    if len(below) < most:
        return [ZkMulti(ops=tuple(ZkDelete(path=each) for each in (*below, path)))]
    empty = ZkSet(path=path, data=encode_assignment({}), version=version)
    marks = [each for each in below if is_made_path(each)][:1]
    guards = marks or [each for each in below if has_topic_id(each)][:1]
    last = [*guards, *(each.rpartition("/")[0] for each in guards if not marks)]
    is_same = (ZkCheck(path=path, version=version + 1), *(ZkCheck(path=each, version=0) for each in guards))
    size = max(1, most - len(is_same))
    others = [each for each in below if each not in last]
    parts = [others[first : first + size] for first in range(0, len(others), size)]
    multis = [
        ZkMulti(ops=(*(is_same if number else (empty,)), *(ZkDelete(path=each) for each in part)))
        for number, part in enumerate(parts)
    ]
    end = (*(ZkDelete(path=each) for each in last), ZkDelete(path=path, version=version + 1))
    return [*multis, ZkMulti(ops=end)]


def on_topics_written(core: Core, continuation: AwaitTopicsWrite, results: tuple[ZkResult, ...]) -> None:
    """
    Answer with a result for every topic: of several writes, the first that failed.

    A deletion is refused if there is a path that was not read, as a controller wrote a first state meanwhile, if
    one that was read is gone, or if a topic of several writes was written meanwhile. Then it is read once more.
    """
    written: dict[str, ZkResult] = {}
    for name, result in zip(continuation.names, results, strict=True):
        if isinstance(written.setdefault(name, result), ZkDone):
            written[name] = result
    errors = [*continuation.errors]
    refused = [*continuation.refused]
    rest = [(name, multi) for name, multi in continuation.rest if isinstance(written[name], ZkDone)]
    going_on = {name for name, _ in rest}
    for name, result in written.items():
        if continuation.deleting and not continuation.again and result in MEANWHILE:
            refused.append(name)
        elif name not in going_on:
            errors.append(_written(name, result))
    if rest:
        names = tuple(name for name, _ in rest)
        after = replace(continuation, errors=tuple(errors), names=names, refused=tuple(refused), rest=())
        core.ask(after, *(multi for _, multi in rest))
        return
    if refused:
        ids = {name: continuation.ids[name] for name in refused}
        again = AwaitTopicsToDelete(
            caller=continuation.caller, topics=tuple(refused), errors=tuple(errors), ids=ids
        )
        _read_to_delete(core, again)
        return
    response = TopicErrors(errors=tuple(errors), deleting=continuation.deleting)
    core.effects.append(Answer(to=continuation.caller, response=response))


def _written(name: str, result: ZkResult) -> tuple[str, ErrorCode, str]:
    if isinstance(result, ZkDone):
        return name, ErrorCode.NONE, ""
    if result is ZkError.NODE_EXISTS:
        return name, ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name!r} is there already"
    if result is ZkError.LOST:
        return name, ErrorCode.REQUEST_TIMED_OUT, LOST
    return name, ErrorCode.UNKNOWN_SERVER_ERROR, f"ZooKeeper: {result}"
