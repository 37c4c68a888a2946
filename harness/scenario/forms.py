"""The parts of forms after the first words: choices, options, lists, and a statement within another."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.model import UsageError
from harness.scenario.grammar import Line, Slot, Statement, Word, value_of

ARROW: Final = Word("->")
_ANY: Final = "*"


class OnLink(Statement):
    """A line about a link, which has two ends: nothing that a node sends to itself goes over one."""

    __slots__ = ()
    src: str
    dst: str

    def complaint(self) -> str:
        """Refuse a link from a node to itself: no frame would ever be seen on it."""
        return f"{self.src} -> {self.dst}; expected two ends" if self.src == self.dst != _ANY else ""


@dataclass(frozen=True, slots=True)
class Several:
    """One or more words as a tuple, to the end of the line or to a word that begins a next part."""

    slot: Slot
    until: tuple[str, ...] = ()

    def read(self, line: Line) -> None:
        """Read the rest of the line."""
        values: list[Any] = []
        while (line.word and line.word not in self.until) or not values:
            word = line.word
            self.slot.read(line)
            value = line.found[self.slot.field]
            if value in values:
                raise UsageError(f"{line.where}: {word!r} twice; expected each once")
            values.append(value)
        line.found[self.slot.field] = tuple(values)

    def show(self, statement: Statement) -> list[str]:
        """Return the word of each value."""
        return [self.slot.kind.show(value) for value in getattr(statement, self.slot.field)]

    def __str__(self) -> str:
        return f"{self.slot} …"


@dataclass(frozen=True, slots=True)
class Choice:
    """
    One word of several.

    Attributes:
        values: word -> the field's value.
    """

    field: str
    values: Mapping[str, Any]

    def read(self, line: Line) -> None:
        """Read the word; raise UsageError if it is none of them."""
        if line.word not in self.values:
            line.wrong(f"one of {', '.join(self.values)}", self.values)
        line.found[self.field] = self.values[line.take()]

    def show(self, statement: Statement) -> list[str]:
        """Return the word of the value."""
        value = getattr(statement, self.field)
        return [next(word for word, meant in self.values.items() if meant == value)]

    def __str__(self) -> str:
        return "|".join(self.values)


@dataclass(frozen=True, slots=True)
class Perhaps:
    """An optional choice; without it the field keeps its default."""

    choice: Choice

    def read(self, line: Line) -> None:
        """Read the word if it is there."""
        if line.word in self.choice.values:
            self.choice.read(line)

    def show(self, statement: Statement) -> list[str]:
        """Return the word of the value, or nothing for the default."""
        known = getattr(statement, self.choice.field) in self.choice.values.values()
        return self.choice.show(statement) if known else []

    def __str__(self) -> str:
        return f"[{self.choice}]"


@dataclass(frozen=True, slots=True)
class Then:
    """An optional keyword that a value must follow: `via A`, `from end(m2)`."""

    word: str
    slot: Slot

    def read(self, line: Line) -> None:
        """Read the keyword and its value, if the keyword is there."""
        if line.word == self.word:
            line.take()
            self.slot.read(line)

    def show(self, statement: Statement) -> list[str]:
        """Return both words, or nothing if there is no value."""
        return [] if getattr(statement, self.slot.field) is None else [self.word, *self.slot.show(statement)]

    def __str__(self) -> str:
        return f"[{self.word} {self.slot}]"


@dataclass(frozen=True, slots=True)
class Setting:
    """A word NAME=VALUE, such as `acks=all`."""

    name: str
    slot: Slot
    needed: bool = False

    def read(self, line: Line) -> None:
        """Read the word if it is there."""
        name, equals, value = line.word.partition("=")
        if equals and name == self.name:
            line.found[self.slot.field] = value_of(line, value, self.slot.kind)
            line.take()

    def show(self, statement: Statement) -> list[str]:
        """Return NAME=VALUE, or nothing if there is no value."""
        value = getattr(statement, self.slot.field)
        return [] if value is None else [f"{self.name}={self.slot.kind.show(value)}"]

    def __str__(self) -> str:
        text = f"{self.name}={self.slot}"
        return text if self.needed else f"[{text}]"


@dataclass(frozen=True, slots=True)
class Options:
    """Optional parts to the end of the line, in any order; each at most once."""

    parts: tuple[Perhaps | Then | Setting, ...]

    def read(self, line: Line) -> None:
        """Read the rest of the line."""
        left = list(self.parts)
        while line.word:
            before = set(line.found)
            taken = next((part for part in left if self._takes(part, line, before)), None)
            if taken is None:
                line.wrong(
                    f"some of {' '.join(map(str, left))}", [word for part in left for word in _first_words(part)]
                )
            left.remove(taken)
        for part in left:
            if isinstance(part, Setting) and part.needed:
                line.wrong(str(part))

    @staticmethod
    def _takes(part: Perhaps | Then | Setting, line: Line, before: Collection[str]) -> bool:
        part.read(line)
        return set(line.found) != before

    def show(self, statement: Statement) -> list[str]:
        """Return the words of every part that has a value, in the form's order."""
        return [word for part in self.parts for word in part.show(statement)]

    def __str__(self) -> str:
        return " ".join(map(str, self.parts))


def _first_words(part: Perhaps | Then | Setting) -> Collection[str]:
    if isinstance(part, Perhaps):
        return part.choice.values
    return (part.word,) if isinstance(part, Then) else (f"{part.name}=",)


@dataclass(frozen=True, slots=True)
class Rest:
    """The rest of the line as a statement of one of several kinds."""

    field: str
    kinds: tuple[type[Statement], ...]

    def read(self, line: Line) -> None:
        """Read the statement."""
        line.found[self.field] = line.read(self.kinds)

    def show(self, statement: Statement) -> list[str]:
        """Return the statement's text."""
        return [str(getattr(statement, self.field))]

    def __str__(self) -> str:
        return self.field.upper()
