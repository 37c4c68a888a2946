"""Values of events of which a test says only what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.events import OpType, Source
from harness.events.codec import keys_of, kind_of

# Plain values, the first of which that fits a key's type stands in for it.
_BLANKS: tuple[Any, ...] = (None, "", 0, False, [], {}, ["?", "?"])


def filled(source: Source, f: str, value: Mapping[str, Any], type_: OpType = OpType.INFO) -> dict[str, Any]:
    """The value with every key that its event must have, in their order; of an unknown event as it is."""
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
