"""
Say in a few lines why a process ended: the line of its output that names the cause, and its last lines.

A broker that cannot start says why, and then logs how it closes what it had opened: some twenty lines of Apache
Kafka's. A process of which nothing names a cause is explained by its last lines alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

TAIL_LINES: Final = 3
_CHARACTERS_MAX: Final = 600
# What ends a process, in Apache Kafka's words, Java's, Python's and our broker's.
_ENDS: Final = re.compile(
    r"\bFATAL\b|\b[Ff]atal (?:error|exception)|Exiting Kafka|Halting|\bended: |cannot go on"
    r"|^Traceback \(most recent call last\)|^Exception in thread|^Error: |OutOfMemoryError"
    r"|^Error occurred during initialization|^Unrecognized |^Could not |^[\w.]+: error: "
)
_ERROR: Final = re.compile(r"\bERROR\b")
# Where a life begins: Apache Kafka's first lines, and what follows the last line of our broker's life before.
_BEGINS: Final = re.compile(r"KafkaConfig values|starting \(kafka\.server\.KafkaServer\)")
_ENDED: Final = re.compile(r"\bfencepost\.broker ended(?:: | cleanly)")
_TRACEBACK: Final = re.compile(r"^Traceback \(most recent call last\)")
_FRAME: Final = re.compile(r"^\s+(?:at |\.\.\. \d+ more|File |\S)|^During handling|^The above exception|^$")
# A line of a log, with a time in front; an exception's text has none.
_LOGGED: Final = re.compile(r"^\[?(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d\b")


def explained(text: str) -> str:
    """
    Return why a process ended, as one line: the cause, with its exception, then the last lines; "nothing" of none.

    Args:
        text: all that it printed, over all its lives.
    """
    lines = _last_life([line for line in text.splitlines() if line.strip()])
    shown = [line for line in lines if not _is_frame(line)]
    tail = shown[-TAIL_LINES:]
    cause = [line for line in _cause(lines) if line not in tail]
    if not cause:
        return " | ".join(map(_short, tail)) or "nothing"
    between = ["…"] if shown.index(cause[-1]) < len(shown) - len(tail) - 1 else []
    return " | ".join(map(_short, [*cause, *between, *tail]))


def end_of(text: str, characters_max: int) -> str:
    """Return the end of what a process printed, its lines as they are, after those of its cause if cut off."""
    tail = text[-characters_max:]
    above = [line for line in _cause(_last_life(text.splitlines())) if line not in tail]
    return "\n".join([*map(_short, above), "…", tail]) if above else tail


def _last_life(lines: list[str]) -> list[str]:
    first = 0
    for place, line in enumerate(lines):
        if _BEGINS.search(line) or (place and _ENDED.search(lines[place - 1])):
            first = place
    return lines[first:]


def _cause(lines: Sequence[str]) -> list[str]:
    """Return the first line that says what ended the process, else its first error; with what it was caused by."""
    place = next((at for at, line in enumerate(lines) if _ENDS.search(line)), None)
    if place is None:
        place = next((at for at, line in enumerate(lines) if _ERROR.search(line)), None)
    if place is None:
        return []
    named = [] if _TRACEBACK.match(lines[place]) else [lines[place]]
    thrown: list[str] = []
    for line in lines[place + 1 :]:
        if _LOGGED.match(line):
            break
        if not _is_frame(line):
            thrown.append(line)
    # Of a chain of exceptions, the first names what failed and the last why.
    return [*named, *dict.fromkeys([*thrown[:1], *thrown[-1:]])]


def _is_frame(line: str) -> bool:
    return bool(_FRAME.match(line) or _TRACEBACK.match(line))


def _short(line: str) -> str:
    return line if len(line) <= _CHARACTERS_MAX else f"{line[:_CHARACTERS_MAX]}…"
