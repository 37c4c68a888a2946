"""
How many items a message announces, held against its bytes before anything is read.

kio's readers reserve memory for an array as soon as they have its length: 39 bytes that announce 2**31 - 1 items
would ask for 16 GiB. So a message that kio is to read is walked through first, by the same classes: no array may
have more items than the bytes that are left can hold, nor all arrays of a request together more than its limit.
The hand-written readers count with the same `Items` as they go.
"""

from __future__ import annotations

import struct
from dataclasses import fields
from enum import Enum, auto
from functools import cache
from typing import Any, Final, TypeAlias, get_args

from targets.broker.core.messages import Payload
from targets.broker.wire.scalars import Items, read_varint, skip_tags

_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_BYTES: Final = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "error_code": 2,
    "timedelta_i32": 4,
    "datetime_i64": 8,
}
_LENGTHS: Final = {"string": _SHORT, "records": _INT}


class _Flexible(Enum):
    """A part of a message in the flexible encoding (KIP-482): a text with its length, or the tagged fields."""

    TEXT = auto()
    TAGS = auto()


# The parts of a message in their order: so many bytes, a text or bytes with its length, or an array: its field's
# name, the parts of its items, and whether its count is in the flexible encoding.
_Part: TypeAlias = "int | struct.Struct | _Flexible | tuple[str, _Parts, bool]"
_Parts: TypeAlias = tuple[_Part, ...]


def check_items(entity: Any, frame: Payload, at: int, items: Items) -> None:
    """
    Walk through one of kio's entities at an offset, without reading it; all but the counts is for kio to judge.

    Raises:
        WireError: an array announces more items than the bytes or the limit allow.
        struct.error: the bytes end too soon.
    """
    _walk(_parts_of(entity), frame, at, items)


def _walk(parts: _Parts, frame: Payload, at: int, items: Items) -> int:
    for part in parts:
        if isinstance(part, int):
            at += part
        elif isinstance(part, struct.Struct):
            (length,) = part.unpack_from(frame, at)
            at += part.size + max(0, length)
        elif part is _Flexible.TEXT:
            more, at = read_varint(frame, at)
            at += max(0, more - 1)
        elif part is _Flexible.TAGS:
            at = skip_tags(frame, at)
        else:
            name, of_item, compact = part
            read = items.count_compact if compact else items.count
            count, at = read(frame, at, name, _least(of_item), null=True)
            if all(isinstance(one, int) for one in of_item):
                at += count * _least(of_item)
                continue
            for _ in range(count):
                at = _walk(of_item, frame, at, items)
    return at


@cache
def _least(parts: _Parts) -> int:
    """Return the fewest bytes that these parts take."""
    return sum(_least_of(part) for part in parts)


def _least_of(part: _Part) -> int:
    if isinstance(part, int):
        return part
    if isinstance(part, _Flexible) or (isinstance(part, tuple) and part[2]):
        return 1
    return _INT.size if isinstance(part, tuple) else part.size


@cache
def _parts_of(entity: Any) -> _Parts:
    parts: list[Any] = []
    for field in fields(entity):
        kind = field.metadata.get("kafka_type")
        item = _item_of(field.type)
        flexible = entity.__flexible__
        if "tag" in field.metadata:
            continue
        if item is None:
            parts.append(_scalar(kind, flexible=flexible))
        else:
            of_item = _parts_of(item) if kind is None else (_scalar(kind, flexible=flexible),)
            parts.append((field.name, of_item, flexible))
    if entity.__flexible__:
        parts.append(_Flexible.TAGS)
    return _joined(parts)


def _item_of(annotation: Any) -> Any:
    """Return X for `tuple[X, ...]` and `tuple[X, ...] | None`, None for what is no array."""
    for one in (annotation, *get_args(annotation)):
        if getattr(one, "__origin__", None) is tuple:
            return get_args(one)[0]
    return None


def _scalar(kind: str | None, *, flexible: bool) -> _Part:
    assert kind is not None, "a field without a kind that is no array"
    if flexible and kind in _LENGTHS:
        return _Flexible.TEXT
    return _BYTES[kind] if kind in _BYTES else _LENGTHS[kind]


def _joined(parts: list[Any]) -> _Parts:
    """Join neighbouring sizes: most items are one step."""
    joined: list[Any] = []
    for part in parts:
        if isinstance(part, int) and joined and isinstance(joined[-1], int):
            joined[-1] += part
        else:
            joined.append(part)
    return tuple(joined)
