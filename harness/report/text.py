"""Format numbers and values for people, in the same way for every table and drawing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from harness.report.limits import RANGES_MAX, VALUE_CHARS_MAX

# Characters that XML 1.0 or UTF-8 files cannot hold, and those that change the reading direction.
_UNFIT: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Return the text with a visible replacement for every character that a page cannot hold."""
    return _UNFIT.sub(lambda m: chr(0x2400 + ord(m[0])) if ord(m[0]) < 0x20 else "\ufffd", text)


def shortened(text: str, chars_max: int = VALUE_CHARS_MAX) -> str:
    """Return the text, or its beginning and the number of characters left out."""
    if len(text) <= chars_max:
        return text
    return f"{text[:chars_max]}… ({len(text) - chars_max:,} more characters)"


def seconds(time_ns: int) -> str:
    """Format a time since the run began in seconds, with three decimals."""
    return f"{time_ns / 1e9:.3f} s"


def exact(time_ns: int) -> str:
    """Format a time in seconds, with every nanosecond."""
    whole, rest = divmod(time_ns, 1_000_000_000)
    return f"{whole}.{rest:09d} s"


def took(duration_ns: int) -> str:
    """Format a duration in µs, ms or s."""
    if duration_ns < 1_000_000:
        return f"{duration_ns / 1e3:.0f} µs"
    if duration_ns < 1_000_000_000:
        return f"{duration_ns / 1e6:.1f} ms"
    return f"{duration_ns / 1e9:.2f} s"


def offsets(first: int, end: int) -> str:
    """Format the offsets [first, end), both ends inclusive: `7`, `3–5`, `none`."""
    if end <= first:
        return "none"
    return f"{first:,}" if end == first + 1 else f"{first:,}–{end - 1:,}"


def offset_ranges(ranges: Iterable[tuple[int, int]]) -> str:
    """Format several ranges of offsets: `1, 3–5`; of very many, the first, and the number of the others."""
    found = [*ranges]
    texts = [offsets(first, end) for first, end in found[:RANGES_MAX]]
    more = len(found) - len(texts)
    return ", ".join([*texts, *([f"and {plural(more, 'more range')}"] if more else [])])


def epoch_text(epoch: int | None, *, short: bool = False) -> str:
    """Format a leader epoch; -1 and None mean a batch without one."""
    if epoch is None or epoch < 0:
        return "no epoch"
    return f"e{epoch}" if short else f"epoch {epoch}"


def plural(count: int, noun: str) -> str:
    """Format a count with its noun: `1 cell`, `2 cells`, `1,200 cells`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def value_text(
    value: Mapping[str, Any], *, hide: Mapping[str, Any] | None = None, near: Sequence[tuple[int, int]] = ()
) -> str:
    """
    Format an op's value as `key=value` pairs, in its own order.

    Args:
        value: the op's value.
        hide: pairs to omit, such as the topic and partition of the whole table.
        near: ranges of offsets; of more than three `records`, only up to five in these ranges are shown, else the
            first three, with the total.
    """
    hidden = hide or {}
    pairs = []
    for key, item in value.items():
        if key in hidden and hidden[key] == item:
            continue
        if key == "records" and isinstance(item, list) and len(item) > 3:
            pairs.append(f"{key}={_some_records(item, near)}")
        else:
            pairs.append(f"{key}={_plain(item)}")
    return shortened("  ".join(pairs))


def _some_records(records: Sequence[Any], near: Sequence[tuple[int, int]]) -> str:
    wanted = [
        r
        for r in records
        if isinstance(r, list) and r and isinstance(r[0], int) and any(a <= r[0] < b for a, b in near)
    ]
    shown = wanted[:5] or list(records[:3])
    return f"{_plain(shown)} ({len(shown)} of {len(records):,} records)"


def _plain(item: Any) -> str:
    if isinstance(item, str) and item and not re.search(r"[\s=\"]", item):
        return item
    return json.dumps(item, ensure_ascii=False, default=str)
