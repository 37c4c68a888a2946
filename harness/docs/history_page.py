"""Print docs/history.md: every event by its source, from the classes of harness/events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from harness import events
from harness.docs import markdown
from harness.events import EVENTS, FAILED, Event, Injection, Source
from harness.events.codec import EventKey, keys_of
from harness.target.traits import Traits

_INTRODUCTION: Final = """
A run writes `results/SUITE/RUN/history.jsonl`, one op per line; each line is durable while the run continues.
Every verdict follows from this file alone.

- An op has `index` (increases by one), `time_ns` (nanoseconds since the run began, by the collector's clock), \
`source`, `process`, `type` (`invoke`, `ok`, `fail`, `info`), `f` and `value`.
- `fail` means that the operation definitely did not happen; `info` on a completion means that it may or may not \
have happened.
- Offsets count records from 0; an *end* (log end offset, high watermark, `to`) is exclusive.
- Nodes have letters as names, as in the documents (`A`, `B`, `C`); `id` is the node's broker id, which is random \
in each run.
- A value that is about a partition names it as `topic` and `partition`.
- Each checker lists the sources that it needs; if one is missing from a history, the result is unknown, \
never valid.
- A key with a question mark may be absent.
- A key that is not listed, a value of another type, and an op whose source and `f` are not listed are kept as \
they are, and make the run unknown: no checker can tell what they mean.
- Sources, events, keys and ends of links had other names in older histories; they are read as what they are \
called now, by the table of `targets/kafka_family/older.py`.
- A line of the file that is no op reads as `unreadable` of the collector, and makes the run unknown as well.
""".strip()
_DIGESTS: Final = """
A record's `digest` is 16 hexadecimal digits over its timestamp, key, value and headers: two replicas agree on an \
offset when it is equal.
`value` of a record is its text (UTF-8; otherwise hexadecimal with the prefix `hex:`), or null where the record \
has none; every value that a client sends is unique within its run.
""".strip()
_TRAITS: Final = """
What is true of a target under its rules, and of the host: `setup` has them, so that a stored run is judged \
without its target. A checker asks them, and never for a target's name.
""".strip()
# A name, and what is said of it until the next one.
_ATTRIBUTE: Final = re.compile(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", re.MULTILINE)
_ORDER: Final = (
    Source.RUNNER,
    Source.CLIENT,
    Source.NEMESIS,
    Source.FABRIC,
    Source.METADATA,
    Source.BROKER,
    Source.LOG,
    Source.SIMULATOR,
)
_ANY_FAULT: Final = "the name of a fault"


def history() -> str:
    """Return docs/history.md, from the classes of events."""
    parts: list[str] = [_INTRODUCTION]
    for source in _ORDER:
        module = _module_of(source)
        parts += [f"## {source.value}", markdown.docstring(module), _table(source)]
    parts += [_DIGESTS, "## Traits", _TRAITS, _traits()]
    return markdown.page("The history: every line that a run writes", "harness/events", *parts)


def _traits() -> str:
    """Return a table of the traits; the docstring of their class says what they mean."""
    text = (Traits.__doc__ or "").partition("Attributes:")[2]
    said = dict(_ATTRIBUTE.findall(text))
    defaults = Traits().as_text()
    rows = [
        (f"`{name}`", " ".join(said[name].split()), f"`{defaults[name]}`" if defaults[name] else "")
        for name in defaults
    ]
    return markdown.table(("trait", "meaning", "default"), rows)


def _module_of(source: Source) -> object:
    return getattr(events, source.value)


def _table(source: Source) -> str:
    rows = [(name, _process(kind), _types(kind), _said(kind)) for name, kind in _kinds(source)]
    return markdown.table(("f", "process", "types", "meaning and keys of `value`"), rows)


def _kinds(source: Source) -> Iterator[tuple[str, type[Event]]]:
    if source is Source.NEMESIS:
        yield _ANY_FAULT, Injection
    for table in (EVENTS, FAILED):
        yield from ((f"`{f}`", kind) for (seen_by, f), kind in table.items() if seen_by is source)


def _process(kind: type[Event]) -> str:
    return f"`{kind.PROCESS}`" if kind.PROCESS else "the node's name"


def _types(kind: type[Event]) -> str:
    return ", ".join(type_.value for type_ in kind.TYPES)


def _said(kind: type[Event]) -> str:
    """Return the event's meaning, and its keys with their types; an optional key has a question mark."""
    meaning = " ".join(markdown.docstring(kind).split())
    return " ".join((meaning, "; ".join(map(_key, keys_of(kind))))).strip()


def _key(key: EventKey) -> str:
    text = key.text.removesuffix(" or null") if key.optional and not key.beside else key.text
    return f"`{key.key}`{'?' if key.optional else ''} ({text}{f': {key.doc}' if key.doc else ''})"
