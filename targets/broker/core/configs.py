"""
DescribeConfigs: the settings of this broker and of topics that Kafka has too, under Kafka's names.

A topic has its own, which AlterConfigs changes, and for all others those that its broker was started with. None of
a broker's changes while it runs: those are read-only. What this broker does not implement has no entry.
Source:  KIP-133, KIP-226 (sources, synonyms), KIP-569 (types); Kafka, ConfigHelper.describeConfigs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import Final

from targets.broker import limits
from targets.broker.core import settings, topic_configs
from targets.broker.core.events import Answer, Caller
from targets.broker.core.messages import (
    AlteredResource,
    ConfigEntry,
    ConfigKind,
    ConfigResource,
    ConfigResult,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    ErrorCode,
)
from targets.broker.core.names import is_topic_name
from targets.broker.core.state import Config, Core
from targets.broker.core.zookeeper import ZkError, ZkExists, ZkGet, ZkNode, ZkResult, config_path, topic_path


class ResourceKind(IntEnum):
    """Kafka's numbers of what has settings here."""

    TOPIC = 2
    BROKER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTopicsDescribed:
    """Settings are asked for; whether the topics exist is being read."""

    caller: Caller
    request: DescribeConfigsRequest


_DEFAULTS: Final = {field.name: field.default for field in fields(Config)}
# Quotas with one name in Kafka, and those of them that Kafka's topics have, or keeps as LONG.
_LIMITS: Final = tuple(row for row in limits.ROWS if row.kafka and "*" not in row.kafka)
_LIMITS_OF_TOPICS: Final = {"message.max.bytes": "max.message.bytes"}
_LONG_LIMITS: Final = ("queued.max.request.bytes", "connections.max.idle.ms")


def on_describe_configs(core: Core, caller: Caller, request: DescribeConfigsRequest) -> None:
    """Read which of the topics exist, if any are named; answer."""
    asked = AwaitTopicsDescribed(caller=caller, request=request)
    names = [resource.name for resource in request.resources if is_topic(resource)]
    if names:
        pairs = ((ZkExists(path=topic_path(name)), ZkGet(path=config_path(name))) for name in names)
        core.ask(asked, *(op for pair in pairs for op in pair))
    else:
        on_topics_read(core, asked, ())


def on_topics_read(core: Core, continuation: AwaitTopicsDescribed, results: tuple[ZkResult, ...]) -> None:
    """Answer for each resource, in the order in which they were named."""
    nodes = iter(results)
    request = continuation.request
    described: list[ConfigResult] = []
    for resource in request.resources:
        topic, node = (next(nodes), next(nodes)) if is_topic(resource) else (None, None)
        described.append(_describe(core, resource, topic, node, synonyms=request.synonyms))
    response = DescribeConfigsResponse(results=tuple(described))
    core.effects.append(Answer(to=continuation.caller, response=response))


def is_topic(resource: ConfigResource | AlteredResource) -> bool:
    """Return True if a resource is a topic that can be there."""
    return resource.kind == ResourceKind.TOPIC and is_topic_name(resource.name)


def _describe(
    core: Core, resource: ConfigResource, topic: ZkResult | None, node: ZkResult | None, *, synonyms: bool
) -> ConfigResult:
    error, text = refusal(core, resource, topic if node is not ZkError.LOST else node)
    entries: tuple[ConfigEntry, ...] = ()
    # Without a name: what all brokers share and can change while they run, which is nothing.
    if error is ErrorCode.NONE and resource.name:
        own = _of_broker(core)
        if topic is not None and node is not None:
            found = topic_configs.read_own(core, resource.name, node, topic)
            own = _of_topic(core, {} if found is None else found.given)
        entries = tuple(
            entry if synonyms else replace(entry, synonym="")
            for entry in own
            if resource.keys is None or entry.name in resource.keys
        )
    return ConfigResult(kind=resource.kind, name=resource.name, error=error, error_text=text, entries=entries)


def refusal(
    core: Core, resource: ConfigResource | AlteredResource, node: ZkResult | None
) -> tuple[ErrorCode, str]:
    """Return why a resource has no settings here, NONE if it has; `node` is a topic's, None for all else."""
    if resource.kind == ResourceKind.TOPIC:
        if node is None:
            return ErrorCode.INVALID_TOPIC, f"topic {resource.name[:80]!r}: expected a topic's name"
        if node is ZkError.LOST:
            return ErrorCode.REQUEST_TIMED_OUT, "the connection to ZooKeeper was lost"
        there = isinstance(node, ZkNode)
        return (ErrorCode.NONE, "") if there else (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    if resource.kind == ResourceKind.BROKER:
        if resource.name in ("", str(core.config.broker_id)):
            return ErrorCode.NONE, ""
        return ErrorCode.INVALID_REQUEST, f"broker {resource.name[:80]!r}: expected {core.config.broker_id}"
    return ErrorCode.INVALID_REQUEST, f"resource type {resource.kind}: expected 2, a topic, or 4, a broker"


# --- the settings ----------------------------------------------------------------------------------------------
def _of_topic(core: Core, given: Mapping[str, str]) -> Iterator[ConfigEntry]:
    for setting in settings.OF_TOPICS.values():
        entry = replace(_entry(core, setting, setting.topic), read_only=False)
        if setting.topic in given:
            own = given[setting.topic]
            entry = replace(entry, value=own, of_broker=entry.value, is_default=False)
        yield entry
    for row in _LIMITS:
        if row.kafka in _LIMITS_OF_TOPICS:
            yield _limit(core, row, _LIMITS_OF_TOPICS[row.kafka])


def _of_broker(core: Core) -> Iterator[ConfigEntry]:
    at, disk = core.config.registration, core.disk.log_dir
    listeners = f"CLIENT://{at.host}:{at.port},INTERNAL://{at.internal_host}:{at.internal_port}"
    yield _started("broker.id", str(core.config.broker_id), ConfigKind.INT)
    yield _started("advertised.listeners", listeners, ConfigKind.STRING)
    yield _started("log.dirs", disk.path, ConfigKind.STRING)
    for setting in settings.SETTINGS:
        yield _entry(core, setting, setting.broker)
    for row in _LIMITS:
        yield _limit(core, row, row.kafka)


def _entry(core: Core, setting: settings.Setting, name: str) -> ConfigEntry:
    return ConfigEntry(
        name=name,
        value=settings.text_of(setting, core.config, core.disk.log_dir),
        kind=setting.kind,
        # A log directory's are always given.
        is_default=bool(setting.of) and getattr(core.config, setting.of) == _DEFAULTS[setting.of],
        synonym=setting.broker,
    )


def _limit(core: Core, row: limits.Row, name: str) -> ConfigEntry:
    value = getattr(core.config.limits, row.name)
    return ConfigEntry(
        name=name,
        value=str(value),
        kind=ConfigKind.LONG if row.kafka in _LONG_LIMITS else ConfigKind.INT,
        is_default=value == getattr(limits.Limits(), row.name),
        synonym=row.kafka,
    )


def _started(name: str, value: str, kind: ConfigKind) -> ConfigEntry:
    """Return a setting that every broker is started with."""
    return ConfigEntry(name=name, value=value, kind=kind, is_default=False, synonym=name)
