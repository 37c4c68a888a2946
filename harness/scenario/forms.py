"""The parts of forms that come after the first words: choices, options, lists, and a statement within another."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.scenario.grammar import Line, Slot, Statement, Word, value_of

ARROW: Final = Word("->")


@dataclass(frozen=True, slots=True)
class Several:
    """One word or more to the end of the line, as a tuple."""

    slot: Slot

    def read(self, line: Line) -> None:
        """Take them all."""
        values: list[Any] = []
        while line.word or not values:
            self.slot.read(line)
            values.append(line.found[self.slot.field])
        line.found[self.slot.field] = tuple(values)

    def show(self, statement: Statement) -> list[str]:
        """Return the word of each value."""
        return [self.slot.kind.show(value) for value in getattr(statement, self.slot.field)]

    def __str__(self) -> str:
        return f"{self.slot} …"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some words, each of which is a value."""

    field: str
    values: Mapping[str, Any]

    def read(self, line: Line) -> None:
        """Take it."""
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
    """A word that need not be there: one of some, the field's default when it is none of them."""

    choice: Choice

    def read(self, line: Line) -> None:
        """Take it where it is there."""
        if line.word in self.choice.values:
            self.choice.read(line)

    def show(self, statement: Statement) -> list[str]:
        """Return it where the value has a word."""
        known = getattr(statement, self.choice.field) in self.choice.values.values()
        return self.choice.show(statement) if known else []

    def __str__(self) -> str:
        return f"[{self.choice}]"


@dataclass(frozen=True, slots=True)
class Then:
    """Words that need not be there, but are whole when the first one is: `via A`, `from end(m2)`."""

    word: str
    slot: Slot

    def read(self, line: Line) -> None:
        """Take them where the first is there."""
        if line.word == self.word:
            line.take()
            self.slot.read(line)

    def show(self, statement: Statement) -> list[str]:
        """Return them where there is a value."""
        return [] if getattr(statement, self.slot.field) is None else [self.word, *self.slot.show(statement)]

    def __str__(self) -> str:
        return f"[{self.word} {self.slot}]"


@dataclass(frozen=True, slots=True)
class Setting:
    """A word of two halves, `acks=all`: the first is the part's own, the second a value."""

    name: str
    slot: Slot
    needed: bool = False

    def read(self, line: Line) -> None:
        """Take it where it is there."""
        name, equals, value = line.word.partition("=")
        if equals and name == self.name:
            line.found[self.slot.field] = value_of(line, value, self.slot.kind)
            line.take()

    def show(self, statement: Statement) -> list[str]:
        """Return it where there is a value."""
        value = getattr(statement, self.slot.field)
        return [] if value is None else [f"{self.name}={self.slot.kind.show(value)}"]

    def __str__(self) -> str:
        text = f"{self.name}={self.slot}"
        return text if self.needed else f"[{text}]"


@dataclass(frozen=True, slots=True)
class Options:
    """Optional parts to the end of the line, in whatever order; each at most once."""

    parts: tuple[Perhaps | Then | Setting, ...]

    def read(self, line: Line) -> None:
        """Take every word that is left."""
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
        """Return those that there are, in the form's own order."""
        return [word for part in self.parts for word in part.show(statement)]

    def __str__(self) -> str:
        return " ".join(map(str, self.parts))


def _first_words(part: Perhaps | Then | Setting) -> Collection[str]:
    if isinstance(part, Perhaps):
        return part.choice.values
    return (part.word,) if isinstance(part, Then) else (f"{part.name}=",)


@dataclass(frozen=True, slots=True)
class Rest:
    """The rest of the line: a statement of its own, of one of some kinds."""

    field: str
    kinds: tuple[type[Statement], ...]

    def read(self, line: Line) -> None:
        """Read it."""
        line.found[self.field] = line.read(self.kinds)

    def show(self, statement: Statement) -> list[str]:
        """Return its words."""
        return [str(getattr(statement, self.field))]

    def __str__(self) -> str:
        return self.field.upper()
