"""
The settings of this broker that Kafka has too, under its names: one table; and what a topic may have of its own.

What a topic has of its own stands in ZooKeeper, as text; here it becomes values, or an error that says what is
wrong with it. Where 0 means in Config that there is no limit, Kafka has a value of its own for it.
Source:  Kafka, KafkaConfig, LogConfig; KIP-226 (a topic's setting, and the broker's that stands behind it).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from targets.broker.core.messages import ConfigKind
from targets.broker.core.state import Config, LogDir, TopicConfig

LONG_MAX: Final = str(2**63 - 1)
CLEANUP_POLICY: Final = "cleanup.policy"
_SEGMENT_BYTES: Final = "segment.bytes"
_SEGMENT_MS: Final = "segment.ms"
_DELETE: Final = "delete"
_COMPACT: Final = "compact"
_MESSAGE_FORMAT: Final = "message.format.version"
# The first release of Kafka whose format it is, for each format that is written here.
FORMATS: Final = {1: "0.10.0", 2: "0.11.0"}
_VERSION: Final = re.compile(r"(0\.10|0\.11|[123]\.\d)(\.\d+)?(-IV\d+)?")
_MOST: Final = {ConfigKind.INT: 2**31 - 1, ConfigKind.LONG: 2**63 - 1}


class SettingError(ValueError):
    """A setting that no topic has here, or one with a value that it cannot have; the text says which."""


class UnknownSettingError(SettingError):
    """No topic has a setting of this name, or none of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """
    One setting.

    Attributes:
        broker: its name as a broker's; topic: as a topic's, "" if topics have none of their own.
        of: the field of Config, "" if the log directory has it.
        none: Kafka's value where 0 here means that there is no limit; least: the smallest other one.
    """

    broker: str
    of: str = ""
    kind: ConfigKind = ConfigKind.INT
    topic: str = ""
    none: str = "0"
    least: int = 1


SETTINGS: Final = (
    Setting(broker="min.insync.replicas", topic="min.insync.replicas", of="min_isr"),
    Setting(
        broker="unclean.leader.election.enable",
        topic="unclean.leader.election.enable",
        of="unclean_election",
        kind=ConfigKind.BOOLEAN,
    ),
    Setting(broker="log.retention.ms", topic="retention.ms", of="retention_ms", kind=ConfigKind.LONG, none="-1"),
    Setting(
        broker="log.retention.bytes",
        topic="retention.bytes",
        of="retention_bytes",
        kind=ConfigKind.LONG,
        none="-1",
    ),
    Setting(broker="log.retention.check.interval.ms", of="retention_check_ms", kind=ConfigKind.LONG),
    Setting(broker="log.cleanup.policy", topic=CLEANUP_POLICY, of="compact", kind=ConfigKind.LIST),
    Setting(
        broker="log.cleaner.delete.retention.ms",
        topic="delete.retention.ms",
        of="delete_retention_ms",
        kind=ConfigKind.LONG,
        least=0,
    ),
    Setting(
        broker="log.flush.interval.messages",
        topic="flush.messages",
        of="flush_messages",
        kind=ConfigKind.LONG,
        none=LONG_MAX,
    ),
    Setting(broker="log.segment.bytes", topic=_SEGMENT_BYTES, least=14),
    Setting(broker="log.roll.ms", topic=_SEGMENT_MS, kind=ConfigKind.LONG, none=LONG_MAX),
    Setting(
        broker="log.message.format.version", topic=_MESSAGE_FORMAT, of="message_format", kind=ConfigKind.STRING
    ),
    Setting(broker="num.partitions", of="num_partitions"),
    Setting(broker="default.replication.factor", of="default_replication_factor"),
    Setting(broker="replica.lag.time.max.ms", of="replica_lag_ms_max", kind=ConfigKind.LONG),
    Setting(broker="replica.fetch.wait.max.ms", of="fetch_wait_ms_max"),
    Setting(broker="replica.fetch.min.bytes", of="fetch_min_bytes"),
    Setting(broker="replica.fetch.max.bytes", of="fetch_bytes_max"),
    Setting(broker="replica.fetch.response.max.bytes", of="fetch_response_bytes_max"),
    Setting(broker="replica.fetch.backoff.ms", of="fetch_backoff_ms"),
    Setting(
        broker="replica.high.watermark.checkpoint.interval.ms",
        of="high_watermark_checkpoint_ms",
        kind=ConfigKind.LONG,
    ),
)
# Those that a topic may have of its own, by their names as a topic's.
OF_TOPICS: Final[Mapping[str, Setting]] = {setting.topic: setting for setting in SETTINGS if setting.topic}


def text_of(setting: Setting, config: Config, log_dir: LogDir) -> str:
    """Return a broker's value as Kafka's text."""
    if setting.topic == CLEANUP_POLICY:
        limited = config.retention_ms or config.retention_bytes
        return f"{_COMPACT},{_DELETE}" if config.compact and limited else _COMPACT if config.compact else _DELETE
    if setting.topic == _SEGMENT_BYTES:
        return str(log_dir.segment_bytes)
    if setting.topic == _SEGMENT_MS:
        return str(log_dir.segment_ms or LONG_MAX)
    value = getattr(config, setting.of)
    if setting.topic == _MESSAGE_FORMAT:
        return FORMATS[value]
    return str(value).lower() if isinstance(value, bool) else str(value or setting.none)


def topic_config(given: Mapping[str, str], config: Config, log_dir: LogDir) -> TopicConfig:
    """
    Return what a topic has: its own settings, and for all others those of the broker.

    A topic that is compacted and no more (cleanup.policy=compact) keeps its files however old or many they are.

    Raises:
        UnknownSettingError: no topic has such a setting of its own.
        SettingError: a value is none that the setting can have.
    """
    values = {name: _value(name, text) for name, text in given.items()}
    own: dict[str, Any] = {OF_TOPICS[name].of: value for name, value in values.items() if OF_TOPICS[name].of}
    if CLEANUP_POLICY in given:
        own["compact"] = _COMPACT in values[CLEANUP_POLICY]
        if _DELETE not in values[CLEANUP_POLICY]:
            own |= {"retention_ms": 0, "retention_bytes": 0}
    return TopicConfig(
        given=dict(sorted(given.items())),
        config=replace(config, **own),
        segment_bytes=values.get(_SEGMENT_BYTES, log_dir.segment_bytes),
        segment_ms=values.get(_SEGMENT_MS, log_dir.segment_ms),
    )


def listed(text: str) -> list[str]:
    """Return the members of a list, as Kafka writes it."""
    return [member.strip() for member in text.split(",") if member.strip()]


def _value(name: str, text: str) -> Any:
    setting = OF_TOPICS.get(name)
    if setting is None:
        expected = f"expected one of {', '.join(sorted(OF_TOPICS))}"
        raise UnknownSettingError(f"setting {name[:80]!r}: no topic has it of its own here; {expected}")
    if setting.kind is ConfigKind.BOOLEAN:
        word = text.strip().lower()
        if word not in ("true", "false"):
            raise _wrong(name, text, "true or false")
        return word == "true"
    if setting.kind is ConfigKind.LIST:
        members = listed(text)
        if not members or not {*members} <= {_DELETE, _COMPACT}:
            raise _wrong(name, text, f"{_DELETE}, {_COMPACT} or both")
        return members
    if setting.kind is ConfigKind.STRING:
        if not _VERSION.fullmatch(text.strip()):
            raise _wrong(name, text, f"a release of Kafka from {FORMATS[1]} on, such as 0.10.2 or 2.2")
        return 1 if text.strip().startswith("0.10") else 2
    if text.strip() == setting.none != "0":
        return 0
    most = _MOST[setting.kind]
    number = text.strip().removeprefix("-")
    is_number = number.isascii() and number.isdecimal() and len(number) <= len(LONG_MAX)
    if not (is_number and setting.least <= int(text) <= most):
        none = "" if setting.none in ("0", LONG_MAX) else f"{setting.none}, or "
        raise _wrong(name, text, f"{none}a whole number from {setting.least} to {most}")
    return int(text)


def _wrong(name: str, text: str, expected: str) -> SettingError:
    return SettingError(f"setting {name}: {text[:80]!r}; expected {expected}")
