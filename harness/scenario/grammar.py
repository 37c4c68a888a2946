"""
How a line of a scenario is read and printed: a form is a row of parts, and one form does both.

A part takes the words that are its own and returns values for the fields of a statement; printing walks the same
parts. What is wrong is said with its place, what was found, what was expected, and the nearest word.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Protocol, TypeAlias, TypeVar

from harness.model import UsageError
from harness.registry import nearest

S = TypeVar("S", bound="Statement")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the head of a scenario declares, and the faults that there are: the names that its steps may use."""

    nodes: Collection[str]
    groups: Collection[str]
    faults: Collection[str]


class Line:
    """
    The words of one line, taken from left to right.

    Attributes:
        where: the line's file and number.
        found: the values of fields, by name, that parts have read so far.
    """

    def __init__(self, text: str, where: str, names: Names) -> None:
        self.where = where
        self.names = names
        self.found: dict[str, Any] = {}
        self._text = text
        self._left = text.split()

    @property
    def word(self) -> str:
        """The next word, "" at the end."""
        return self._left[0] if self._left else ""

    def take(self) -> str:
        """Return the next word and go on."""
        return self._left.pop(0)

    def wrong(self, expected: str, choices: Collection[str] = (), meant: str = "") -> NoReturn:
        """
        Say that the next word is not what was expected; `meant` is the part of it that is wrong.

        Raises:
            UsageError: always.
        """
        found = repr(self.word) if self._left else "ends too soon"
        near = nearest(meant or self.word, choices)
        raise UsageError(f"{self.where}: {self._text!r}: {found}; expected {expected}{near}")

    def read(self, kinds: Sequence[type[S]], also: Collection[str] = ()) -> S:
        """
        Read one statement, of the kind that begins as the line does; all words must be used.

        Args:
            also: words that a line may begin with elsewhere, for the error that names what may stand here.

        Raises:
            UsageError: the words are of no such kind.
        """
        fits = [kind for kind in kinds if self.word in self._first_words(kind)]
        if not fits:
            verbs = [*dict.fromkeys(word for kind in kinds for word in self._first_words(kind)), *also]
            self.wrong(f"one of {', '.join(verbs)}", verbs)
        kind = max(fits, key=self._alike)
        outer, self.found = self.found, {}
        for part in kind.FORM:
            part.read(self)
        if self._left:
            self.wrong(f"the end of the line, after '{_shape(kind.FORM)}'")
        made, self.found = kind(**self.found), outer
        if complaint := made.complaint():
            raise UsageError(f"{self.where}: {self._text!r}: {complaint}")
        return made

    def _first_words(self, kind: type[Statement]) -> Collection[str]:
        first = kind.FORM[0]
        return first.kind.choices(self.names) if isinstance(first, Slot) else _leading(kind.FORM)[:1]

    def _alike(self, kind: type[Statement]) -> tuple[bool, int]:
        """How much of the line's beginning is the form's: all of its leading words, or as many of them."""
        leading = _leading(kind.FORM)
        alike = sum(mine == theirs for mine, theirs in zip(leading, self._left, strict=False))
        return alike == len(leading), alike


class Part(Protocol):
    """A piece of a form."""

    def read(self, line: Line) -> None:
        """Take the words that are this part's; put values into `line.found`; UsageError for wrong ones."""

    def show(self, statement: Statement) -> list[str]:
        """Return the words that this part has for a statement."""

    def __str__(self) -> str:
        """Return how the part is written in descriptions of a form."""


Form: TypeAlias = tuple[Part, ...]


class Statement:
    """A line that was read: a frozen dataclass with the form that reads and prints it."""

    __slots__ = ()
    FORM: ClassVar[Form]

    def __str__(self) -> str:
        return " ".join(word for part in self.FORM for word in part.show(self))

    def complaint(self) -> str:
        """Say what in it contradicts itself, though each word is right; "" when nothing does."""
        return ""


def _leading(form: Form) -> tuple[str, ...]:
    """The literal words that a form begins with, by which it is told from others."""
    words: list[str] = []
    for part in form:
        if not isinstance(part, Word):
            break
        words.append(part.text)
    return tuple(words)


def _shape(form: Form) -> str:
    return " ".join(map(str, form))


def shape_of(kind: type[Statement]) -> str:
    """Return the form of a statement as documentation writes it: `delay answers|requests API A -> B SECONDS`."""
    return _shape(kind.FORM)


# --- what a word may be ----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """
    What one word means.

    Attributes:
        sign: how descriptions write such a word.
        expected: what an error says was expected, given the names.
        read: returns the word's value; raises ValueError when it has none.
        choices: the words that may have been meant.
    """

    sign: str
    expected: Callable[[Names], str]
    read: Callable[[str, Names], Any]
    choices: Callable[[Names], Collection[str]] = lambda _: ()
    show: Callable[[Any], str] = str


def one_of(sign: str, what: str, choices: Callable[[Names], Collection[str]]) -> Kind:
    """Return the kind of a word that must be one of some names."""

    def read(word: str, names: Names) -> str:
        if word not in choices(names):
            raise ValueError(word)
        return word

    return Kind(
        sign=sign,
        expected=lambda names: f"{what}: one of {', '.join(choices(names))}",
        read=read,
        choices=choices,
    )


# --- the parts that a form begins with -------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Word:
    """A word that must be there as it is."""

    text: str

    def read(self, line: Line) -> None:
        """Take it."""
        if line.word != self.text:
            line.wrong(repr(self.text), (self.text,))
        line.take()

    def show(self, statement: Statement) -> list[str]:
        """Return it."""
        del statement
        return [self.text]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Slot:
    """One word that is the value of a field."""

    field: str
    kind: Kind

    def read(self, line: Line) -> None:
        """Take it."""
        line.found[self.field] = value_of(line, line.word, self.kind)
        line.take()

    def show(self, statement: Statement) -> list[str]:
        """Return its value's word."""
        return [self.kind.show(getattr(statement, self.field))]

    def __str__(self) -> str:
        return self.kind.sign


def value_of(line: Line, word: str, kind: Kind) -> Any:
    """Return what a word means; UsageError where it means nothing of that kind."""
    try:
        return kind.read(word, line.names)
    except (ValueError, KeyError):
        line.wrong(kind.expected(line.names), kind.choices(line.names), meant=word)
