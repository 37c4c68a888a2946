"""Numbers and values as people read them: one place, so that every table and drawing says them alike."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from harness.report.limits import VALUE_CHARS_MAX

# What neither XML 1.0 nor a UTF-8 file may hold, and the marks that turn the reading direction round.
_UNFIT: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Give the text with every character that a page cannot carry replaced by a visible one."""
    return _UNFIT.sub(lambda m: chr(0x2400 + ord(m[0])) if ord(m[0]) < 0x20 else "\ufffd", text)


def shortened(text: str, chars_max: int = VALUE_CHARS_MAX) -> str:
    """Give the text, or its beginning and how much was left out."""
    if len(text) <= chars_max:
        return text
    return f"{text[:chars_max]}… ({len(text) - chars_max:,} more characters)"


def seconds(time_ns: int) -> str:
    """Give a time since the run began as people compare them: three decimals."""
    return f"{time_ns / 1e9:.3f} s"


def exact(time_ns: int) -> str:
    """Give a time with every nanosecond."""
    whole, rest = divmod(time_ns, 1_000_000_000)
    return f"{whole}.{rest:09d} s"


def took(duration_ns: int) -> str:
    """Give a duration in the unit that fits it."""
    if duration_ns < 1_000_000:
        return f"{duration_ns / 1e3:.0f} µs"
    if duration_ns < 1_000_000_000:
        return f"{duration_ns / 1e6:.1f} ms"
    return f"{duration_ns / 1e9:.2f} s"


def offsets(first: int, end: int) -> str:
    """Name the offsets of [first, end) inclusively, as people say them: `7`, `3–5`, `none`."""
    if end <= first:
        return "none"
    return f"{first:,}" if end == first + 1 else f"{first:,}–{end - 1:,}"


def offset_ranges(ranges: Iterable[tuple[int, int]]) -> str:
    """Name several ranges of offsets: `1, 3–5`."""
    return ", ".join(offsets(first, end) for first, end in ranges)


def epoch_text(epoch: int | None, *, short: bool = False) -> str:
    """Name a leader epoch; -1 and None are a batch without one."""
    if epoch is None or epoch < 0:
        return "no epoch"
    return f"e{epoch}" if short else f"epoch {epoch}"


def plural(count: int, noun: str) -> str:
    """Count a noun: `1 cell`, `2 cells`, `1,200 cells`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def value_text(
    value: Mapping[str, Any], *, hide: Mapping[str, Any] | None = None, near: Sequence[tuple[int, int]] = ()
) -> str:
    """
    Say an op's value as `key=value` pairs, in its own order.

    Shapes:  pairs that equal those of `hide` are left out (the topic and partition that a table is about).
             `records` beyond three keep those in the ranges `near`, or the first three, and say how many.
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
