"""
kio's entities of any version: built from one set of values, read with one kind of error.

The versions of a message differ in their fields. A builder names all fields that it knows, and `fill` uses those
of the version; a builder that lacks a field of the version has a bug.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar, get_args

from kio.index import load_entity_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader
from kio.serial.errors import SerialError
from kio.static.constants import EntityType

from targets.broker.core.messages import NO_TOPIC_ID, ErrorCode, Payload
from targets.broker.wire.scalars import Placed, WireError, by_topic
from targets.broker.wire.schema import OWN_REQUESTS, OWN_RESPONSES
from targets.broker.wire.versions import ROWS

T = TypeVar("T")
P = TypeVar("P", bound=Placed)

# One of kio's generated classes. They share no base, and mypy does not accept type[Any] as hashable.
Schema: TypeAlias = Any

NO_TIME: Final = timedelta(0)
_MILLISECOND: Final = timedelta(milliseconds=1)


@cache
def request_type(key: int, version: int) -> Any:
    """Return the entity of an API's request in a version that ROWS serves."""
    return OWN_REQUESTS.get((key, version)) or load_entity_schema(ROWS[key].name, version, EntityType.request)


@cache
def response_type(key: int, version: int) -> Any:
    """Return the entity of an API's response in a version that ROWS serves."""
    return OWN_RESPONSES.get((key, version)) or load_entity_schema(ROWS[key].name, version, EntityType.response)


@cache
def item_type(entity: Schema, name: str) -> Any:
    """Return the entity of an array field: X for `tuple[X, ...]` or `tuple[X, ...] | None`."""
    (annotation,) = (field.type for field in fields(entity) if field.name == name)
    arrays = [part for part in (annotation, *get_args(annotation)) if getattr(part, "__origin__", None) is tuple]
    return get_args(arrays[0])[0]


def is_flexible(entity: Schema) -> bool:
    """Return True if a message and its header have tagged fields (KIP-482)."""
    return bool(entity.__flexible__)


def fill(entity: Schema, **values: Any) -> Any:
    """Build an entity from those of the values that its version has."""
    return entity(**{name: values[name] for name in _names(entity) if name in values})


@cache
def _names(entity: Schema) -> tuple[str, ...]:
    return tuple(field.name for field in fields(entity))


def read_entity(entity: type[T], buffer: Payload, offset: int) -> tuple[T, int]:
    """
    Read one entity at an offset: (entity, offset after it).

    Raises:
        WireError: for any unreadable bytes; no other exception.
    """
    try:
        value, size = entity_reader(entity)(buffer, offset)  # type: ignore[type-var]
    except (SerialError, ValueError, OverflowError, KeyError) as error:
        # kio raises KeyError for a tagged field that it does not know.
        version = getattr(entity, "__version__", "?")
        text = f"{entity.__name__} v{version} in {len(buffer)} bytes: {error!r}; expected a whole message"
        raise WireError(text) from error
    return value, offset + size


def listed(value: Sequence[T] | None, name: str) -> Sequence[T]:
    """Return an array that must not be null; kio reads null even where the schema forbids it."""
    if value is None:
        raise WireError(f"{name}: null; expected an array")
    return value


def ms_of(duration: timedelta) -> int:
    """Return the whole milliseconds of a duration."""
    return duration // _MILLISECOND


def error_of(code: int) -> ErrorCode:
    """Return the core's error for a code; an unknown code is UNKNOWN_SERVER_ERROR."""
    return ErrorCode(code) if code in _CORE_CODES else ErrorCode.UNKNOWN_SERVER_ERROR


_CORE_CODES: Final = frozenset(int(code) for code in ErrorCode)


def kio_error(code: ErrorCode) -> KioErrorCode:
    """Return kio's error for an error of the core."""
    return KioErrorCode(int(code))


def topic_id_of(partition: Any) -> int:
    """Return the id of a partition's topic, NO_TOPIC_ID in a version without it."""
    topic_id = int(getattr(partition, "topic_id", NO_TOPIC_ID))
    if topic_id < NO_TOPIC_ID:
        raise WireError(f"topic id {topic_id}; expected {NO_TOPIC_ID} or more")
    return topic_id


def topics_of(
    entity: Schema,
    field: str,
    items: Iterable[P],
    row: Callable[[P], Mapping[str, Any]],
    *,
    name: str,
    inner: str = "partitions",
) -> tuple[Any, ...]:
    """
    Group items under their topics, as nearly every message of Kafka does.

    Topics come in the order of their first item.

    Args:
        items: about one partition each (`tp`).
        row: returns the fields of a partition's entry; a version uses those that it knows.
        name: the field with the topic's name.
    """
    topic_type = item_type(entity, field)
    partition_type = item_type(topic_type, inner)
    groups = by_topic(items)
    return tuple(
        fill(topic_type, **{name: topic, inner: tuple(fill(partition_type, **row(item)) for item in group)})
        for topic, group in groups.items()
    )
