"""
kio's entities as bytes: what stands side by side with fixed sizes is packed at once.

kio calls a function for each field, and opens a buffer for the tagged fields of each entity. An answer about a
thousand partitions would take a third of a second of that; here it is one call for each partition. kio writes
what has a kind of field that is not known here, and tests compare the two.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, fields
from datetime import timedelta
from functools import cache
from operator import attrgetter
from typing import Any, Final, TypeAlias, get_args

from kio.serial import entity_writer

from targets.broker.wire.scalars import compact_text_bytes, count_bytes, text_bytes, varint_bytes

# Appends an entity, or a field's value, to the bytes of a message.
_Write: TypeAlias = Callable[[bytearray, Any], None]

_CODES: Final = {"bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q"}
_CODES_OF_OTHERS: Final = {"error_code": "h", "timedelta_i32": "i"}
_NULL_TEXT: Final = struct.pack(">h", -1)
_NULL_ARRAY: Final = count_bytes(-1)
_NULL_COMPACT: Final = varint_bytes(0)
_MILLISECOND: Final = timedelta(milliseconds=1)


def entity_bytes(entity: Any) -> bytes:
    """Write one entity."""
    of_type: Any = type(entity)
    write = _writer_of(of_type)
    if write is None:
        chunks = io.BytesIO()
        entity_writer(of_type)(chunks, entity)
        return chunks.getvalue()
    written = bytearray()
    write(written, entity)
    return bytes(written)


@cache
def _writer_of(entity: Any) -> _Write | None:
    """Return what writes an entity of this type, None if a field is of a kind that is not known here."""
    parts: list[_Write] = []
    fixed: list[Field[Any]] = []
    for field in fields(entity):
        if "tag" in field.metadata:
            continue
        if _code(field) is not None:
            fixed.append(field)
            continue
        write = _of_field(field, flexible=entity.__flexible__)
        if write is None:
            return None
        parts += [*_run(fixed), write]
        fixed = []
    parts += _run(fixed)
    if entity.__flexible__:
        tags = _tags(entity)
        if tags is None:
            return None
        parts.append(tags)
    return parts[0] if len(parts) == 1 else _all(tuple(parts))


def _all(parts: tuple[_Write, ...]) -> _Write:
    def write(written: bytearray, entity: Any) -> None:
        for part in parts:
            part(written, entity)

    return write


def _code(field: Field[Any]) -> str | None:
    """Return the code of a scalar of fixed size for `struct`, None for any other field."""
    kind = field.metadata.get("kafka_type", "")
    of_array = any(getattr(part, "__origin__", None) is tuple for part in (field.type, *get_args(field.type)))
    return None if of_array else _CODES.get(kind) or _CODES_OF_OTHERS.get(kind)


def _run(fixed: Sequence[Field[Any]]) -> list[_Write]:
    """Return what writes scalars that stand side by side, if there are any."""
    if not fixed:
        return []
    pack = struct.Struct(">" + "".join(str(_code(field)) for field in fixed)).pack
    names = [_value_name(field) for field in fixed]
    values, each_value = attrgetter(*names), tuple(map(attrgetter, names))
    times = tuple(at for at, field in enumerate(fixed) if field.metadata["kafka_type"] == "timedelta_i32")

    def write_one(written: bytearray, entity: Any) -> None:
        written += pack(values(entity))

    def write_all(written: bytearray, entity: Any) -> None:
        written += pack(*values(entity))

    def write_times(written: bytearray, entity: Any) -> None:
        found = [value(entity) for value in each_value]
        for at in times:
            found[at] //= _MILLISECOND
        written += pack(*found)

    return [write_times if times else write_one if len(names) == 1 else write_all]


def _value_name(field: Field[Any]) -> str:
    return f"{field.name}.value" if field.metadata["kafka_type"] == "error_code" else field.name


def _of_field(field: Field[Any], *, flexible: bool) -> _Write | None:
    """Return what writes a text or an array of an entity."""
    kind = field.metadata.get("kafka_type")
    items = [part for part in (field.type, *get_args(field.type)) if getattr(part, "__origin__", None) is tuple]
    if items:
        return _array(field.name, get_args(items[0])[0], kind, flexible=flexible)
    if kind != "string":
        return None
    value, text = attrgetter(field.name), compact_text_bytes if flexible else text_bytes
    null = _NULL_COMPACT if flexible else _NULL_TEXT

    def write(written: bytearray, entity: Any) -> None:
        found = value(entity)
        written += null if found is None else text(found)

    return write


def _array(name: str, item: Any, kind: str | None, *, flexible: bool) -> _Write | None:
    value = attrgetter(name)
    null = _NULL_COMPACT if flexible else _NULL_ARRAY
    write_items = _items(item, kind, flexible=flexible)
    if write_items is None:
        return None

    def write(written: bytearray, entity: Any) -> None:
        found = value(entity)
        if found is None:
            written += null
            return
        written += varint_bytes(len(found) + 1) if flexible else count_bytes(len(found))
        write_items(written, found)

    return write


def _items(item: Any, kind: str | None, *, flexible: bool) -> _Write | None:
    """Return what writes the items of an array: entities, numbers or texts."""
    if kind is None:
        return _entities(item)
    if kind == "string":
        text = compact_text_bytes if flexible else text_bytes

        def write_texts(written: bytearray, found: Any) -> None:
            written += b"".join(map(text, found))

        return write_texts
    code = _CODES.get(kind)
    if code is None:
        return None

    def write_numbers(written: bytearray, found: Any) -> None:
        written += struct.pack(f">{len(found)}{code}", *found)

    return write_numbers


def _entities(item: Any) -> _Write | None:
    write_item = _writer_of(item)
    if write_item is None:
        return None

    def write(written: bytearray, found: Any) -> None:
        for one in found:
            write_item(written, one)

    return write


def _tags(entity: Any) -> _Write | None:
    """Return what writes an entity's tagged fields (KIP-482), all numbers: those that differ from the default."""
    tagged = sorted((field for field in fields(entity) if "tag" in field.metadata), key=_tag_of)
    if any(field.metadata.get("kafka_type") not in _CODES or field.default is MISSING for field in tagged):
        return None
    known = [
        (attrgetter(field.name), field.default, varint_bytes(_tag_of(field)), struct.Struct(f">{_code(field)}"))
        for field in tagged
    ]

    def write(written: bytearray, entity: Any) -> None:
        told = [
            (head, number, value(entity)) for value, default, head, number in known if value(entity) != default
        ]
        written += varint_bytes(len(told))
        for head, number, value in told:
            written += head + varint_bytes(number.size) + number.pack(value)

    return write


def _tag_of(field: Field[Any]) -> int:
    return int(field.metadata["tag"])
