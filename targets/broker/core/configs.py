"""
DescribeConfigs: the settings of this broker that Kafka has too, under Kafka's names.

All are the broker's own: a topic has those that its broker was started with. None changes while it runs, so
all are read-only. What this broker does not implement has no entry.
Source:  KIP-133, KIP-226 (sources, synonyms), KIP-569 (types); Kafka, ConfigHelper.describeConfigs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import Final

from targets.broker import limits
from targets.broker.core.events import Answer, Caller
from targets.broker.core.messages import (
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
from targets.broker.core.zookeeper import ZkError, ZkExists, ZkNode, ZkResult, topic_path


class ResourceKind(IntEnum):
    """Kafka's numbers of what has settings here."""

    TOPIC = 2
    BROKER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTopicsDescribed:
    """Settings are asked for; whether the topics exist is being read."""

    caller: Caller
    request: DescribeConfigsRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """
    One setting.

    Attributes:
        broker: its name as a broker's; topic: as a topic's, "" if topics have none.
        of: the field of Config.
        none: Kafka's value where 0 here means that there is no limit.
    """

    broker: str
    of: str
    kind: ConfigKind = ConfigKind.INT
    topic: str = ""
    none: str = "0"


_LONG_MAX: Final = str(2**63 - 1)
_SETTINGS: Final = (
    _Setting(broker="min.insync.replicas", topic="min.insync.replicas", of="min_isr"),
    _Setting(
        broker="unclean.leader.election.enable",
        topic="unclean.leader.election.enable",
        of="unclean_election",
        kind=ConfigKind.BOOLEAN,
    ),
    _Setting(broker="log.retention.ms", topic="retention.ms", of="retention_ms", kind=ConfigKind.LONG, none="-1"),
    _Setting(
        broker="log.retention.bytes",
        topic="retention.bytes",
        of="retention_bytes",
        kind=ConfigKind.LONG,
        none="-1",
    ),
    _Setting(broker="log.retention.check.interval.ms", of="retention_check_ms", kind=ConfigKind.LONG),
    _Setting(
        broker="log.flush.interval.messages",
        topic="flush.messages",
        of="flush_messages",
        kind=ConfigKind.LONG,
        none=_LONG_MAX,
    ),
    _Setting(broker="replica.lag.time.max.ms", of="replica_lag_ms_max", kind=ConfigKind.LONG),
    _Setting(broker="replica.fetch.wait.max.ms", of="fetch_wait_ms_max"),
    _Setting(broker="replica.fetch.min.bytes", of="fetch_min_bytes"),
    _Setting(broker="replica.fetch.max.bytes", of="fetch_bytes_max"),
    _Setting(broker="replica.fetch.response.max.bytes", of="fetch_response_bytes_max"),
    _Setting(broker="replica.fetch.backoff.ms", of="fetch_backoff_ms"),
    _Setting(
        broker="replica.high.watermark.checkpoint.interval.ms",
        of="high_watermark_checkpoint_ms",
        kind=ConfigKind.LONG,
    ),
)
_DEFAULTS: Final = {field.name: field.default for field in fields(Config)}
# Quotas with one name in Kafka, and those of them that Kafka's topics have, or keeps as LONG.
_LIMITS: Final = tuple(row for row in limits.ROWS if row.kafka and "*" not in row.kafka)
_LIMITS_OF_TOPICS: Final = {"message.max.bytes": "max.message.bytes"}
_LONG_LIMITS: Final = ("queued.max.request.bytes", "connections.max.idle.ms")


def on_describe_configs(core: Core, caller: Caller, request: DescribeConfigsRequest) -> None:
    """Read which of the topics exist, if any are named; answer."""
    asked = AwaitTopicsDescribed(caller=caller, request=request)
    paths = [topic_path(resource.name) for resource in request.resources if _is_topic(resource)]
    if paths:
        core.ask(asked, *(ZkExists(path=path) for path in paths))
    else:
        on_topics_read(core, asked, ())


def on_topics_read(core: Core, continuation: AwaitTopicsDescribed, results: tuple[ZkResult, ...]) -> None:
    """Answer for each resource, in the order in which they were named."""
    nodes = iter(results)
    request = continuation.request
    described = tuple(
        _describe(core, resource, next(nodes) if _is_topic(resource) else None, synonyms=request.synonyms)
        for resource in request.resources
    )
    core.effects.append(Answer(to=continuation.caller, response=DescribeConfigsResponse(results=described)))


def _is_topic(resource: ConfigResource) -> bool:
    return resource.kind == ResourceKind.TOPIC and is_topic_name(resource.name)


def _describe(core: Core, resource: ConfigResource, node: ZkResult | None, *, synonyms: bool) -> ConfigResult:
    error, text = _refusal(core, resource, node)
    entries: tuple[ConfigEntry, ...] = ()
    # Without a name: what all brokers share and can change while they run, which is nothing.
    if error is ErrorCode.NONE and resource.name:
        own = _of_broker(core) if resource.kind == ResourceKind.BROKER else _of_topic(core)
        entries = tuple(
            entry if synonyms else replace(entry, synonym="")
            for entry in own
            if resource.keys is None or entry.name in resource.keys
        )
    return ConfigResult(kind=resource.kind, name=resource.name, error=error, error_text=text, entries=entries)


def _refusal(core: Core, resource: ConfigResource, node: ZkResult | None) -> tuple[ErrorCode, str]:
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
def _of_topic(core: Core) -> Iterator[ConfigEntry]:
    for setting in _SETTINGS:
        if setting.topic:
            yield _entry(core, setting, setting.topic)
    for row in _LIMITS:
        if row.kafka in _LIMITS_OF_TOPICS:
            yield _limit(core, row, _LIMITS_OF_TOPICS[row.kafka])
    size, age = core.disk.log_dir.segment_bytes, core.disk.log_dir.segment_ms
    yield _started("segment.bytes", str(size), ConfigKind.INT, "log.segment.bytes")
    yield _started("segment.ms", str(age or _LONG_MAX), ConfigKind.LONG, "log.roll.ms")


def _of_broker(core: Core) -> Iterator[ConfigEntry]:
    at, disk = core.config.registration, core.disk.log_dir
    listeners = f"CLIENT://{at.host}:{at.port},INTERNAL://{at.internal_host}:{at.internal_port}"
    yield _started("broker.id", str(core.config.broker_id), ConfigKind.INT)
    yield _started("advertised.listeners", listeners, ConfigKind.STRING)
    yield _started("log.dirs", disk.path, ConfigKind.STRING)
    yield _started("log.segment.bytes", str(disk.segment_bytes), ConfigKind.INT)
    yield _started("log.roll.ms", str(disk.segment_ms or _LONG_MAX), ConfigKind.LONG)
    for setting in _SETTINGS:
        yield _entry(core, setting, setting.broker)
    for row in _LIMITS:
        yield _limit(core, row, row.kafka)


def _entry(core: Core, setting: _Setting, name: str) -> ConfigEntry:
    value = getattr(core.config, setting.of)
    return ConfigEntry(
        name=name,
        value=str(value).lower() if isinstance(value, bool) else str(value or setting.none),
        kind=setting.kind,
        is_default=value == _DEFAULTS[setting.of],
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


def _started(name: str, value: str, kind: ConfigKind, synonym: str = "") -> ConfigEntry:
    """Return a setting that every broker is started with."""
    return ConfigEntry(name=name, value=value, kind=kind, is_default=False, synonym=synonym or name)
