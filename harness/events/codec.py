"""
One encoder and one decoder for all events, generated from the fields of their classes.

The type of a field is a string, an integer, a boolean or a number; one of these or null; or a tuple (a list in
JSON) or mapping of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from types import NoneType, UnionType
from typing import Any, Final, TypeAlias, get_args, get_origin, get_type_hints

from harness.events import EVENTS, FAILED, Event, Injection, OpType, Source, Unknown
from harness.events.base import OP_F

_Convert: TypeAlias = Callable[[Any], Any]

_KEYS: Final = {kind: key for table in (EVENTS, FAILED) for key, kind in table.items()}
_NAMES: Final[Mapping[type, tuple[str, str]]] = {
    str: ("a string", "strings"),
    int: ("an integer", "integers"),
    bool: ("a boolean", "booleans"),
    float: ("a number", "numbers"),
}

# Kafka's partitions are 32-bit integers.
_PARTITION_MAX: Final = 2**31 - 1

# Caches, filled when a class is first used.
_PLANS: Final[dict[type[Event], tuple[EventKey, ...]]] = {}
_COMPILED: Final[dict[type[Event], _Compiled]] = {}


class MisfitError(ValueError):
    """A value does not fit its event; the message names the key, what was found and what was expected."""


class _WrongError(Exception):
    """A part of a key's value has the wrong type."""


@dataclass(frozen=True, slots=True)
class EventKey:
    """
    One key of an event's JSON.

    Attributes:
        name: the field's name.
        key: the key in JSON.
        doc: the description in docs/history.md.
        text: the expected type of its value, in words.
        read: converts a value from JSON.
        write: converts a value to JSON; None if it needs no conversion.
        optional: True if the key may be absent.
        default: the value of an absent key.
        beside: see `harness.events.base.key`.
        plain: the type of a scalar value, which needs only a check of that type; None for other values.
    """

    name: str
    key: str
    doc: str
    text: str
    read: _Convert
    write: _Convert | None
    optional: bool
    default: Any
    beside: str
    plain: type | None


def key_of(event: Event) -> tuple[Source, str]:
    """Return the source and f of an event's op."""
    match event:
        case Injection():
            return Source.NEMESIS, event.name
        case Unknown():
            return event.source, event.f
        case _:
            kind = type(event)
            return _KEYS.get(kind) or _KEYS[kind.__mro__[1]]  # what stands for an event is of its kind


def key_of_kind(kind: type[Event]) -> tuple[Source, str | None]:
    """Return the source and f of all events of a class; f is None if it may be any."""
    return (Source.NEMESIS, None) if kind is Injection else _KEYS[kind]


def kind_of(source: Source, f: str, type_: OpType) -> type[Event] | None:
    """Return the class of an op's event, None if no class has its source and f."""
    if source is Source.NEMESIS:
        return Injection
    kind = EVENTS.get((source, f))
    return FAILED.get((source, f), kind) if type_ is OpType.FAIL else kind


def encode(event: Event) -> dict[str, Any]:
    """Return an event as the value of its op: JSON data with keys in the order of the fields."""
    if isinstance(event, Unknown):
        return dict(event.value)
    kind = type(event)
    return (_COMPILED.get(kind) or _compiled(kind)).encode(event)


def decode(source: Source, f: str, type_: OpType, value: Mapping[str, Any]) -> Event:
    """
    Return the event of an op's value; Unknown if no class has its source and f.

    Raises:
        MisfitError: a key that the event must have is missing, a key is not one of the event's, or a value has
            the wrong type. No type stands for another: true is no integer, and neither is 1.0 or "1".
    """
    kind = kind_of(source, f, type_)
    if kind is None:
        return Unknown(source=source, f=f, value=value)
    try:
        return (_COMPILED.get(kind) or _compiled(kind)).decode(value, f)
    except (KeyError, _WrongError):
        raise _misfit(kind, value) from None


def _misfit(kind: type[Event], value: Mapping[str, Any]) -> MisfitError:
    """Return the error that names the first key that is missing, has the wrong type or is not known."""
    for each in keys_of(kind):
        if each.key not in value and not each.optional:
            return MisfitError(f"there is no key {each.key!r}; expected {each.text}")
        try:
            each.read(value.get(each.key, each.default))
        except _WrongError:
            return MisfitError(f"key {each.key!r} is {value.get(each.key)!r:.200}; expected {each.text}")
    known = [each.key for each in keys_of(kind)]
    unknown = next((name for name in value if name not in known), None)
    assert unknown is not None, f"{kind.__name__}: {value!r:.200} fits, and could not be read"
    return MisfitError(f"key {unknown!r} is not known; expected only {', '.join(known) or 'no key'}")


def place_in(value: Mapping[str, Any]) -> tuple[str, int] | None:
    """
    Return the topic and partition in a value, for known and unknown events.

    Returns:
        None if it does not have both, as a string and a 32-bit integer: the op is then about the whole run.
    """
    topic, partition = value.get("topic"), value.get("partition")
    if type(topic) is not str or type(partition) is not int or not -1 <= partition <= _PARTITION_MAX:
        return None
    return topic, partition


def keys_of(kind: type[Event]) -> tuple[EventKey, ...]:
    """Return the keys of an event's JSON, in order."""
    found = _PLANS.get(kind)
    if found is None:
        found = _PLANS[kind] = _plan(kind)
    return found


@dataclass(frozen=True, slots=True)
class _Compiled:
    """
    The codec of one class, generated as source and compiled once, because it runs for every op of long histories.

    A scalar field is read and written without a call.
    """

    encode: Callable[[Event], dict[str, Any]]
    decode: Callable[[Mapping[str, Any], str], Event]


def _compiled(kind: type[Event]) -> _Compiled:
    names: dict[str, Any] = {"kind": kind}
    exec(f"{_encoder(kind, names)}\n{_decoder(kind, names)}", names)  # safe: the source has only names of fields
    _COMPILED[kind] = _Compiled(encode=names["encode"], decode=names["decode"])
    return _COMPILED[kind]


def _encoder(kind: type[Event], names: dict[str, Any]) -> str:
    lines = ["def encode(event):", "    value = {}"]
    for n, each in enumerate(keys_of(kind)):
        names |= {f"write_{n}": each.write, f"default_{n}": each.default}
        item = f"event.{each.name}" if each.write is None else f"write_{n}(event.{each.name})"
        beside = f" or event.{each.beside} is not None" if each.beside else ""
        condition = f"if event.{each.name} != default_{n}{beside}: " if each.optional else ""
        lines.append(f"    {condition}value[{each.key!r}] = {item}")
    return "\n".join((*lines, "    return value"))


def _decoder(kind: type[Event], names: dict[str, Any]) -> str:
    keys = keys_of(kind)
    names |= {"known": frozenset(each.key for each in keys), "WrongError": _WrongError}
    # A required key that is missing raises KeyError; if all are required, their number shows an unknown one.
    strange = "not value.keys() <= known" if any(each.optional for each in keys) else f"len(value) != {len(keys)}"
    fields_ = ["name=f"] if kind is Injection else []
    for n, each in enumerate(keys):
        names |= {f"read_{n}": each.read, f"default_{n}": each.default}
        item = f"read_{n}(value[{each.key!r}])"
        if each.plain is not None:
            names[f"plain_{n}"] = each.plain
            item = f"item if type(item := value[{each.key!r}]) is plain_{n} else read_{n}(item)"
        absent = f" if {each.key!r} in value else default_{n}" if each.optional else ""
        fields_.append(f"{each.name}=(({item}){absent})")
    made = f"    event = kind({', '.join(fields_)})"
    return f"def decode(value, f):\n{made}\n    if {strange}: raise WrongError\n    return event"


def _plan(kind: type[Event]) -> tuple[EventKey, ...]:
    hints = get_type_hints(kind)
    found: list[EventKey] = []
    for each in fields(kind):  # type: ignore[arg-type]  # every class of an event is a dataclass
        about: Mapping[str, str] = each.metadata
        if about.get("name") == OP_F:
            continue
        hint = hints[each.name]
        found.append(
            EventKey(
                name=each.name,
                key=about.get("name") or each.name,
                doc=about.get("doc", ""),
                text=text_of(hint),
                read=_reader(hint),
                write=_writer(hint),
                optional=each.default is not MISSING,
                default=None if each.default is MISSING else each.default,
                beside=about.get("beside", ""),
                plain=hint if hint in (str, int, bool, float) else None,
            )
        )
    return tuple(found)


def text_of(hint: Any, *, many: bool = False) -> str:
    """Return a field's type in words."""
    args = get_args(hint)
    if hint in _NAMES:
        return _NAMES[hint][many]
    if get_origin(hint) is UnionType:
        return " or ".join("null" if each is NoneType else text_of(each, many=many) for each in args)
    if get_origin(hint) is tuple:
        word = "lists" if many else "a list"
        if args[-1] is Ellipsis:
            return f"{word} of {text_of(args[0], many=True)}"
        if len(set(args)) == 1:
            return f"{word} of {len(args)} {text_of(args[0], many=True)}"
        return f"{word} [{', '.join(text_of(each) for each in args)}]"
    if get_origin(hint) is Mapping:
        return f"{'objects' if many else 'an object'} of {text_of(args[1], many=True)}"
    raise AssertionError(f"{hint!r} is not a type of an event's field; harness/events/codec.py has them")


def _reader(hint: Any) -> _Convert:
    """Return the function that checks a value from JSON and converts it to a field's value."""
    args = get_args(hint)
    if hint in _NAMES:
        return _SCALARS[hint]
    if get_origin(hint) is UnionType:
        (inner,) = (_reader(each) for each in args if each is not NoneType)
        return lambda item: None if item is None else inner(item)
    if get_origin(hint) is tuple and args[-1] is Ellipsis:
        return _tuple_reader(_reader(args[0]))
    if get_origin(hint) is tuple:
        return _fixed_reader(tuple(map(_reader, args)))
    return _mapping_reader(_reader(args[1]))


def _string(item: Any) -> str:
    if isinstance(item, str):
        return item
    raise _WrongError


def _integer(item: Any) -> int:
    if type(item) is int:
        return item
    raise _WrongError


def _boolean(item: Any) -> bool:
    if item is True or item is False:
        return bool(item)
    raise _WrongError


def _number(item: Any) -> float:
    return item if isinstance(item, float) else _integer(item)


_SCALARS: Final[Mapping[Any, _Convert]] = {str: _string, int: _integer, bool: _boolean, float: _number}


def _tuple_reader(inner: _Convert) -> _Convert:
    def read(item: Any) -> tuple[Any, ...]:
        if not isinstance(item, list | tuple):
            raise _WrongError
        return tuple(map(inner, item))

    return read


def _fixed_reader(inner: tuple[_Convert, ...]) -> _Convert:
    def read(item: Any) -> tuple[Any, ...]:
        if not isinstance(item, list | tuple) or len(item) != len(inner):
            raise _WrongError
        return tuple(each(part) for each, part in zip(inner, item, strict=True))

    return read


def _mapping_reader(inner: _Convert) -> _Convert:
    def read(item: Any) -> dict[str, Any]:
        if not isinstance(item, Mapping):
            raise _WrongError
        return {_string(name): inner(part) for name, part in item.items()}

    return read


def _writer(hint: Any) -> _Convert | None:
    """Return the function that converts a field's value to JSON data, None if it needs no conversion."""
    args = get_args(hint)
    if get_origin(hint) is UnionType:
        (inner,) = (_writer(each) for each in args if each is not NoneType)
        return None if inner is None else lambda item: None if item is None else inner(item)
    if get_origin(hint) is tuple:
        parts = {_writer(each) for each in args if each is not Ellipsis}
        # The parts of a fixed tuple are all scalars: no event has a list within a pair.
        part = next(iter(parts))
        return list if part is None else lambda item: [part(each) for each in item]
    if get_origin(hint) is Mapping:
        value = _writer(args[1])
        return dict if value is None else lambda item: {name: value(each) for name, each in item.items()}
    return None
