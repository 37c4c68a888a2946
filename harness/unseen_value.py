"""Text of a value that was made by code which the harness has not seen, such as a target's: short, and always."""

from __future__ import annotations

from typing import Final

_CHARACTERS_MAX: Final = 200


def text_of(value: object) -> str:
    """Return an error's words, or how any other value shows itself; cut if it is long."""
    try:
        text = str(value) if isinstance(value, BaseException) else repr(value)
        text = " ".join(text.split())
    except Exception as error:
        return f"a {type(value).__name__} whose text raises {type(error).__name__}"
    return text if len(text) <= _CHARACTERS_MAX else f"{text[:_CHARACTERS_MAX]}…"
