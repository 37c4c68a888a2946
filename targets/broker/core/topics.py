"""
Topics that clients create and delete: their nodes in ZooKeeper; the controller does the rest.

Source:  Kafka Replication Design V3, B (on_topic_change).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from targets.broker.core import readable, settings, topic_configs
from targets.broker.core.assignments import encode_assignment
from targets.broker.core.events import Answer, Caller
from targets.broker.core.messages import CreateTopicsRequest, DeleteTopicsRequest, ErrorCode, NewTopic, TopicErrors
from targets.broker.core.names import is_topic_name
from targets.broker.core.state import Config, Core
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
    topic_path,
)

# Of a list in an error's text.
NAMED_MAX = 20
# In place of a number of partitions or replicas.
_DEFAULT = -1
LOST = "the connection to ZooKeeper was lost"
# What a deletion is told where the topic was written after it was read.
_MEANWHILE = frozenset({ZkError.REFUSED, ZkError.BAD_VERSION})


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
        again: whether the deletion was read and begun once more.
        refused: the topics whose deletion is to be begun once more.
        rest: what is written next of a large topic, if all of it that is in flight was written.
    """

    caller: Caller
    errors: tuple[tuple[str, ErrorCode, str], ...]
    names: tuple[str, ...]
    deleting: bool
    again: bool = False
    refused: tuple[str, ...] = ()
    rest: tuple[tuple[str, ZkMulti], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTopicsToDelete:
    """Topics are to be deleted; their partitions are being read."""

    caller: Caller
    topics: tuple[str, ...]
    errors: tuple[tuple[str, ErrorCode, str], ...]
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitPartitionsToDelete:
    """
    Topics are to be deleted; what is below their partitions is being read.

    Attributes:
        versions: of each topic's node, as it was read.
        own: the node of each topic's own settings, or that there is none.
        paths: what is below a topic, each with its topic: its partitions, and whatever else is there.
    """

    caller: Caller
    topics: tuple[str, ...]
    versions: tuple[int, ...]
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
        placed, error, text = _place(core.config, topic, sorted(live), left)
        left -= len(placed)
        if error is ErrorCode.NONE:
            error, text = _settings_refusal(core, topic)
        if error is not ErrorCode.NONE or continuation.request.validate_only:
            errors.append((topic.topic, error, text))
            continue
        create = ZkCreate(path=topic_path(topic.topic), data=encode_assignment(dict(placed)))
        given = {name: text for name, text in topic.settings if text is not None}
        own = topic_configs.changes(topic.topic, of_older[topic.topic], given)
        writes.append(ZkMulti(ops=(create, *own)))
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


def _place(
    config: Config, topic: NewTopic, live: list[int], most: int
) -> tuple[Mapping[int, tuple[int, ...]], ErrorCode, str]:
    """
    Return partition -> replicas, or an error: as the client assigned them, else round robin over the live.

    Where the client leaves a number to this broker, its own setting holds (KIP-464).

    Args:
        most: partitions that the topic may have. All topics of a request share them, as their creation holds up
            others.
    """
    if not is_topic_name(topic.topic):
        text = f"topic {topic.topic[:80]!r}: expected 1 to 249 of a-z, A-Z, 0-9, '.', '_', '-'"
        return {}, ErrorCode.INVALID_TOPIC, text
    wanted = config.num_partitions if topic.partitions == _DEFAULT else topic.partitions
    factor = (
        config.default_replication_factor if topic.replication_factor == _DEFAULT else topic.replication_factor
    )
    partitions = len(topic.assignments) or wanted
    if partitions > most:
        text = f"{partitions} partitions: expected at most {most} more in one request (topic_partitions_max)"
        return {}, ErrorCode.INVALID_PARTITIONS, text
    if topic.assignments:
        return _as_assigned(topic, live)
    if wanted < 1:
        return {}, ErrorCode.INVALID_PARTITIONS, f"partitions {wanted}: expected at least 1, or -1"
    if not 1 <= factor <= len(live):
        text = f"replication factor {factor}: expected 1 to {len(live)}, the live brokers, or -1"
        return {}, ErrorCode.INVALID_REPLICATION_FACTOR, text
    placed = {
        partition: tuple(live[(partition + i) % len(live)] for i in range(factor)) for partition in range(wanted)
    }
    return placed, ErrorCode.NONE, ""


def _as_assigned(topic: NewTopic, live: list[int]) -> tuple[Mapping[int, tuple[int, ...]], ErrorCode, str]:
    placed = dict(topic.assignments)
    if sorted(placed) != list(range(len(topic.assignments))):
        text = f"partitions {shown(sorted(placed))}: expected 0 to {len(topic.assignments) - 1}, each once"
        return {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, text
    return assigned(placed, live)


def assigned(
    placed: Mapping[int, tuple[int, ...]], live: Sequence[int]
) -> tuple[Mapping[int, tuple[int, ...]], ErrorCode, str]:
    """Return the partitions as a client has assigned them, or what is wrong with that."""
    there = set(live)
    for partition, replicas in placed.items():
        if not replicas or len(set(replicas)) != len(replicas) or not set(replicas) <= there:
            text = f"partition {partition} on {shown(replicas)}: expected distinct live brokers of {list(live)}"
            return {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, text
    return placed, ErrorCode.NONE, ""


def shown(numbers: Sequence[int]) -> str:
    """Return a list of numbers as an error's text has it: the first of them."""
    more = "" if len(numbers) <= NAMED_MAX else f" and {len(numbers) - NAMED_MAX} more"
    return f"{list(numbers[:NAMED_MAX])}{more}"


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
    """Read next what is below each partition."""
    errors = [*continuation.errors]
    topics: list[str] = []
    versions: list[int] = []
    paths: list[tuple[str, str]] = []
    own: list[ZkResult] = []
    count = len(continuation.topics)
    nodes = zip(results[:count], results[count : 2 * count], results[2 * count :], strict=True)
    for topic, (node, below, settings_node) in zip(continuation.topics, nodes, strict=True):
        if isinstance(node, ZkNode) and isinstance(below, ZkNames):
            topics.append(topic)
            versions.append(node.version)
            own.append(settings_node)
            paths += [(topic, f"{topic_path(topic)}/{name}") for name in below.names]
        else:
            errors.append(_not_read(topic, below if isinstance(node, ZkNode) else node))
    after = AwaitPartitionsToDelete(
        caller=continuation.caller,
        topics=tuple(topics),
        versions=tuple(versions),
        own=tuple(own),
        paths=tuple(paths),
        errors=tuple(errors),
        again=continuation.again,
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
    for topic, version, own in zip(continuation.topics, continuation.versions, continuation.own, strict=True):
        if errors[topic][0] is ErrorCode.NONE:
            multis = _deletes(topic, version, paths[topic], core.config.together.deletes_max)
            if isinstance(own, ZkNode):  # its settings go with it; one that is written later counts for no other
                multis[-1] = ZkMulti(ops=(*multis[-1].ops, *topic_configs.changes(topic, own, {})))
            firsts.append((topic, multis[0]))
            rest += [(topic, multi) for multi in multis[1:]]
    after = AwaitTopicsWrite(
        caller=continuation.caller,
        errors=(*continuation.errors, *unread),
        names=tuple(topic for topic, _ in firsts),
        deleting=True,
        again=continuation.again,
        rest=tuple(rest),
    )
    core.ask(after, *(multi for _, multi in firsts))


def _deletes(topic: str, version: int, below: Sequence[str], most: int) -> list[ZkMulti]:
    """
    Return the multis that delete a topic, each about at most so many nodes.

    Of several each has the version that the first one makes, so that none reaches a topic that is written
    meanwhile, or a younger one of that name.
    """
    path = topic_path(topic)
    if len(below) < most:
        return [ZkMulti(ops=tuple(ZkDelete(path=each) for each in (*below, path)))]
    empty = ZkSet(path=path, data=encode_assignment({}), version=version)
    check = ZkCheck(path=path, version=version + 1)
    size = max(1, most - 1)
    parts = [below[first : first + size] for first in range(0, len(below), size)]
    multis = [
        ZkMulti(ops=(check if number else empty, *(ZkDelete(path=each) for each in part)))
        for number, part in enumerate(parts)
    ]
    return [*multis, ZkMulti(ops=(ZkDelete(path=path, version=version + 1),))]


def on_topics_written(core: Core, continuation: AwaitTopicsWrite, results: tuple[ZkResult, ...]) -> None:
    """
    Answer with a result for every topic: of several writes, the first that failed.

    A deletion is refused if there is a path that was not read, as a controller wrote a first state meanwhile, or
    if a topic of several writes was written meanwhile. Then it is read once more.
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
        if continuation.deleting and not continuation.again and result in _MEANWHILE:
            refused.append(name)
        elif name not in going_on:
            errors.append(_written(name, result))
    if rest:
        names = tuple(name for name, _ in rest)
        after = replace(continuation, errors=tuple(errors), names=names, refused=tuple(refused), rest=())
        core.ask(after, *(multi for _, multi in rest))
        return
    if refused:
        once_more = AwaitTopicsToDelete(
            caller=continuation.caller, topics=tuple(refused), errors=tuple(errors), again=True
        )
        _read_to_delete(core, once_more)
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
