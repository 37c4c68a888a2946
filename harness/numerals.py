"""Reads the numbers that a user writes, each within its limits: in options, scenario files and settings."""

from __future__ import annotations

import re
from typing import Final

_WHOLE: Final = re.compile("[0-9]+")
_PLAIN: Final = re.compile(r"[0-9]+(\.[0-9]+)?")
# Python itself refuses to read thousands of digits, so longer texts are refused first.
_CHARACTERS_MAX: Final = 40


def whole(text: str, least: int, most: int) -> int:
    """Return a whole number in plain digits; raise ValueError if it is not one, or out of bounds."""
    if len(text) > _CHARACTERS_MAX or not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
        raise ValueError(f"{text[:_CHARACTERS_MAX]!r}: expected a whole number from {least} to {most}")
    return int(text)


def above_zero(text: str, most: float) -> float:
    """Return a number above 0 in plain digits, no infinity; raise ValueError if it is not one, or above `most`."""
    if len(text) > _CHARACTERS_MAX or not _PLAIN.fullmatch(text) or not 0 < float(text) <= most:
        raise ValueError(f"{text[:_CHARACTERS_MAX]!r}: expected a number above 0, up to {most:.10g}")
    return float(text)
