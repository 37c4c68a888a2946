"""
Parses the outcome that a scenario expects; checkers/verdict.py compares it with the anomalies of a run.

    text         none | term, term, …
    term         KIND [offsets …] [NODE …] [epoch N] | hang
    offsets      a group of records (m2), 17 or 11-15, both ends included
    NODE         a capital letter, as in the documents
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from harness import limits
from harness.model import Kind, UsageError
from harness.numerals import whole
from harness.registry import nearest

NONE: Final = "none"
HANG: Final = "hang"
LOSSES: Final = (
    Kind.LOST,
    Kind.PERMITTED,
    Kind.UNCLEAN,
    Kind.RETURNED,
    Kind.LAST_STANDING,
    Kind.UNPROMISED,
    Kind.COMMITTED_LOST,
    Kind.READ_LOST,
)
ABOUT_OFFSETS: Final = frozenset({*LOSSES, Kind.DIVERGED, Kind.HOLE, Kind.DISORDER, Kind.NOT_REPLICATED})

# Violations on the way to an outcome. Only the events of brokers show them, which Apache Kafka does not emit; an
# expectation is one for both, so it names the outcome. That readers saw two values at an offset follows from one.
ON_THE_WAY: Final = frozenset(
    {
        Kind.NOT_REPLICATED,
        Kind.COMMITTED_LOST,
        Kind.FALSE_ACK,
        Kind.WRONG_HIGH_WATERMARK,
        Kind.READ_UNCOMMITTED,
        Kind.INCONSISTENT_OFFSETS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """
    One term of an expectation.

    Attributes:
        spans: inclusive (first, last) pairs of offsets.
        names: the names of groups of records.
        nodes: () accepts any nodes; a hang names no node.
        epoch: None accepts any epoch.
    """

    kind: Kind
    spans: tuple[tuple[int, int], ...] = ()
    names: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    epoch: int | None = None
    hang: bool = False


def parse_expectation(text: str) -> tuple[Expected, ...]:
    """
    Parse an expectation.

    Raises:
        UsageError: the message names the term, what is wrong with it and what was expected.
    """
    if text.strip() == NONE:
        return ()
    terms = tuple(_term(term.strip()) for term in text.split(","))
    if twice := next((term for at, term in enumerate(terms) if term in terms[:at]), None):
        raise UsageError(f"expectation {text!r}: {twice.kind.value!r} twice; expected each term once")
    return terms


def check_expectation(text: str, nodes: Collection[str], groups: Collection[str]) -> None:
    """
    Check an expectation of a scenario that has these nodes and groups of records.

    Raises:
        UsageError: it is malformed, or names a node or a group that the scenario does not have.
    """
    for term in parse_expectation(text):
        for named, known, what in ((term.nodes, nodes, "a node"), (term.names, groups, "a group of records")):
            for name in named:
                if name not in known:
                    raise UsageError(
                        f"expectation {text!r}: {name!r}; expected {what} of the head: one of "
                        f"{', '.join(known)}{nearest(name, known)}"
                    )


def _term(text: str) -> Expected:
    word, *rest = text.split() or [""]
    if text == HANG:
        return Expected(kind=Kind.STUCK, hang=True)
    try:
        kind = Kind(word)
    except ValueError as error:
        kinds = ", ".join(kind.value for kind in Kind)
        near = nearest(word, [NONE, HANG, *Kind])
        raise UsageError(
            f"expectation {text!r}: {word!r} is not a kind; expected {NONE}, {HANG}, or one of {kinds}{near}"
        ) from error
    spans: list[tuple[int, int]] = []
    names: list[str] = []
    nodes: list[str] = []
    epoch: int | None = None
    while rest:
        token = rest.pop(0)
        if token == "epoch" and rest and rest[0].isdecimal():
            if epoch is not None:
                raise UsageError(f"expectation {text!r}: a second epoch; expected one")
            epoch = _number(rest.pop(0), limits.SCENARIO_EPOCH_MAX, text)
        elif match := re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", token):
            first, last = (_number(match[side] or match[1], limits.SCENARIO_OFFSET_MAX, text) for side in (1, 2))
            if first > last:
                raise UsageError(f"expectation {text!r}: {token!r}; expected the smaller offset first")
            spans.append((first, last))
        elif re.fullmatch(r"[A-Z]\d*", token):
            nodes.append(token)
        elif re.fullmatch(r"[a-z]\w*", token) and token != "epoch":
            names.append(token)
        else:
            raise UsageError(
                f"expectation {text!r}: {token!r} is unknown; expected an offset, a record, a node or an epoch"
            )
    if bool(spans or names) != (kind in ABOUT_OFFSETS):
        need = "needs offsets: a record's name, 17 or 11-15" if kind in ABOUT_OFFSETS else "is not about offsets"
        raise UsageError(f"expectation {text!r}: {kind.value} {need}")
    for found in (spans, names, nodes):
        if len(set(found)) < len(found):
            raise UsageError(f"expectation {text!r}: a word twice; expected each once")
    return Expected(kind=kind, spans=tuple(spans), names=tuple(names), nodes=tuple(nodes), epoch=epoch)


def _number(digits: str, most: int, text: str) -> int:
    try:
        return whole(digits, 0, most)
    except ValueError as error:
        raise UsageError(f"expectation {text!r}: {error}") from error
