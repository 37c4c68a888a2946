"""Make names and texts from strangers' disks safe to print: no terminal escapes, no bytes that are not text."""

from __future__ import annotations

from typing import Final

TEXT_CHARACTERS_MAX: Final = 300
# No path of Linux is longer, so that two paths are never shown alike.
PATH_CHARACTERS_MAX: Final = 4096


def shown(text: str, characters_max: int = TEXT_CHARACTERS_MAX) -> str:
    """
    Return the text with everything that does not print escaped, as Python's repr does, and cut if it is long.

    A byte of a file's name that is not UTF-8 is shown as `\\xNN`, a backslash as two.
    """
    cut = text[:characters_max]
    more = "…" if len(text) > len(cut) else ""
    return "".join(map(_printed, cut)) + more


def _printed(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character.isprintable():
        return character
    number = ord(character)
    # os.fsdecode makes such a half of a surrogate pair of a byte that is not UTF-8.
    if 0xDC80 <= number <= 0xDCFF:
        return f"\\x{number - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")
