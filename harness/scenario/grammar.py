"""
Reads and prints the lines of a scenario; one form, a sequence of parts, does both.

A part reads its words from the line and sets fields of a statement; printing uses the same parts. An error names
the place, what was found, what was expected, and the nearest known word.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Protocol, TypeAlias, TypeVar

from harness.ability import Ability
from harness.model import UsageError
from harness.registry import nearest
from harness.scenario.words import present
from harness.workload.plan import Place

S = TypeVar("S", bound="Statement")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """
    The names that the steps of a scenario may use: what its head declares, and the faults.

    Attributes:
        messages: what the target that it is read for calls its messages; no older word of another system is meant.
    """

    nodes: Collection[str]
    groups: Collection[str]
    faults: Collection[str]
    places: Collection[Place] = ()
    services: Collection[str] = ()
    messages: Collection[str] = ()


class Line:
    """
    The words of one line, read from left to right.

    Attributes:
        where: the line's file and number.
        found: field's name -> the value that a part has read.
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
        """Remove the next word and return it."""
        return self._left.pop(0)

    def wrong(self, expected: str, choices: Collection[str] = (), meant: str = "") -> NoReturn:
        """
        Raise the error for a next word that was not expected.

        Args:
            expected: a description of the words expected here.
            choices: the known words, for the nearest one.
            meant: the wrong part of the word, if not all of it is wrong.

        Raises:
            UsageError: always.
        """
        found = repr(self.word) if self._left else "ends too soon"
        near = nearest(meant or self.word, choices)
        raise UsageError(f"{self.where}: {self._text!r}: {found}; expected {expected}{near}")

    def read(self, kinds: Sequence[type[S]], also: Collection[str] = ()) -> S:
        """
        Read one statement, of the kind that matches the beginning of the line; all words must be used.

        Args:
            kinds: the kinds of statements allowed here.
            also: other words that a line may begin with, for the error's list of choices.

        Raises:
            UsageError: the words match none of the kinds.
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
        """Return whether all leading words of the form match the line, and how many of them match."""
        leading = _leading(kind.FORM)
        alike = sum(mine == theirs for mine, theirs in zip(leading, self._left, strict=False))
        return alike == len(leading), alike


class Part(Protocol):
    """A piece of a form."""

    def read(self, line: Line) -> None:
        """Read this part's words into `line.found`; raise UsageError for wrong ones."""

    def show(self, statement: Statement) -> list[str]:
        """Return the words of this part in a statement."""

    def __str__(self) -> str:
        """Return the part as documentation writes it."""


Form: TypeAlias = tuple[Part, ...]


class Statement:
    """A line as a value: a frozen dataclass with the form that reads and prints it."""

    __slots__ = ()
    FORM: ClassVar[Form]

    def __str__(self) -> str:
        return " ".join(word for part in self.FORM for word in part.show(self))

    def complaint(self) -> str:
        """Return how the statement contradicts itself although each word is correct; "" if it does not."""
        return ""

    def needs(self) -> tuple[Ability, ...]:
        """Return what the system must be able to do, or show, for the statement itself."""
        return ()


def _leading(form: Form) -> tuple[str, ...]:
    """Return the literal words at the beginning of a form, which distinguish it from others."""
    words: list[str] = []
    for part in form:
        if not isinstance(part, Word):
            break
        words.append(part.text)
    return tuple(words)


def _shape(form: Form) -> str:
    return " ".join(map(str, form))


def shape_of(kind: type[Statement]) -> str:
    """Return a statement's form as documentation writes it: `delay answers|requests API A -> B SECONDS`."""
    return _shape(kind.FORM)


# --- what a word may be ----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """
    The meaning of one word.

    Attributes:
        sign: the word as documentation writes it.
        expected: returns the error's description of what was expected.
        read: returns the word's value; raises ValueError if it has none.
        choices: returns the known words, for the nearest one.
        show: returns the word of a value.
    """

    sign: str
    expected: Callable[[Names], str]
    read: Callable[[str, Names], Any]
    choices: Callable[[Names], Collection[str]] = lambda _: ()
    show: Callable[[Any], str] = str


def one_of(sign: str, what: str, choices: Callable[[Names], Collection[str]], older: str = "") -> Kind:
    """
    Return the kind of a word that must be one of the choices.

    Args:
        older: the kind of its words that had other names before (harness/scenario/words.py), "" for none.
    """

    def read(word: str, names: Names) -> str:
        word = present(older, word)
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
    """A literal word."""

    text: str

    def read(self, line: Line) -> None:
        """Read the word; raise UsageError if it is another one."""
        if line.word != self.text:
            line.wrong(repr(self.text), (self.text,))
        line.take()

    def show(self, statement: Statement) -> list[str]:
        """Return the word."""
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
        """Read the value."""
        line.found[self.field] = value_of(line, line.word, self.kind)
        line.take()

    def show(self, statement: Statement) -> list[str]:
        """Return the value's word."""
        return [self.kind.show(getattr(statement, self.field))]

    def __str__(self) -> str:
        return self.kind.sign


def value_of(line: Line, word: str, kind: Kind) -> Any:
    """Return the value of a word of this kind; raise UsageError if it has none."""
    try:
        return kind.read(word, line.names)
    except (ValueError, KeyError):
        line.wrong(kind.expected(line.names), kind.choices(line.names), meant=word)
