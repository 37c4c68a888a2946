"""Splits a scenario's text into lines, each with its place, and refuses what no editor shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness import limits
from harness.model import UsageError


@dataclass(frozen=True, slots=True)
class RawLine:
    """
    A line of the file.

    Attributes:
        where: the file and the number, for errors.
    """

    where: str
    number: int
    text: str

    @property
    def word(self) -> str:
        """Its first word."""
        return self.text.partition(" ")[0]

    @property
    def rest(self) -> str:
        """What follows the first word."""
        return self.text.partition(" ")[2].strip()


def lines_of(text: str, where: str) -> Iterator[RawLine]:
    """
    Yield the lines of a text; a line may end with a carriage return, as Windows writes it.

    Raises:
        UsageError: there are too many lines, or one is too long or has a character that is not visible.
    """
    # Not splitlines(), which also splits at characters at which no editor does: numbers would differ.
    lines = text.split("\n")
    if len(lines) > limits.SCENARIO_LINES_MAX + 1:  # nothing follows the last line's end
        raise UsageError(f"{where}: {len(lines) - 1} lines; expected at most {limits.SCENARIO_LINES_MAX}")
    for number, line in enumerate(lines, start=1):
        place = f"{where}:{number}"
        raw = line.removesuffix("\r").replace("\t", " ").strip(" ")
        if len(raw) > limits.SCENARIO_LINE_CHARACTERS_MAX:
            raise UsageError(
                f"{place}: a line of {len(raw)} characters; expected at most {limits.SCENARIO_LINE_CHARACTERS_MAX}"
            )
        if not raw.isprintable():
            hidden = next(each for each in raw if not each.isprintable())
            raise UsageError(
                f"{place}: character U+{ord(hidden):04X} is not visible; expected text and ordinary spaces"
            )
        yield RawLine(place, number, raw)
