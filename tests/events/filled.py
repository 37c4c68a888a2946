"""Complete values of events, for tests that name only the keys they are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.events import OpType, Source
from harness.events.codec import keys_of, kind_of

# Placeholder values: a key gets the first one that fits its type.
_BLANKS: tuple[Any, ...] = (None, "", 0, False, [], {}, ["?", "?"])


def filled(source: Source, f: str, value: Mapping[str, Any], type_: OpType = OpType.INFO) -> dict[str, Any]:
    """Return the value with all required keys, in the event's order; an unknown event's value is unchanged."""
    kind = kind_of(source, f, type_)
    if kind is None:
        return dict(value)
    needed = {each.key: _blank(each.read) for each in keys_of(kind) if not each.optional}
    found = {**needed, **value}
    return {each.key: found[each.key] for each in keys_of(kind) if each.key in found}


def _blank(read: Any) -> Any:
    for blank in _BLANKS:
        try:
            read(blank)
        except Exception:
            continue
        return blank
    raise AssertionError("no plain value fits; expected one in _BLANKS")
