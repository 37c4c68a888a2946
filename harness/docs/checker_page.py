"""Print docs/checkers.md: every kind of anomaly with its exact definition, from the rules that find it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from checkers import CHECKERS, verdict
from checkers.checker import Checker
from checkers.definition import Definition
from harness.docs import markdown
from harness.model import VERDICT_OF, Kind, Source

NOTATION: Final = (
    ("`ok(produce r, acks=all, o)`", "a client's op of that type, event and values; `at k` is its index"),
    ("`leader(n, e)`, `append(n, …)`", "an event of broker n"),
    ("`leaderAndISR`, `ISR(x)`", "the partition's state in ZooKeeper; the ISR at op x"),
    ("`log(n)[o]`", "the record at offset o in n's final log; `.end` is its end, exclusive"),
    ("`commit(r, o)`", "a high watermark above o of a leader whose log has r at o"),
    ("`proof(r)`", "the proof of a permitted loss, defined under [permitted](#permitted)"),
)


def checkers() -> str:
    """Return docs/checkers.md."""
    rows = [(f"`{each.name}`", each.doc, _needs(each.needs), each.source) for each in CHECKERS.values()]
    kinds = [
        (f"[`{kind.value}`](#{kind.value})", VERDICT_OF[kind].name.lower(), found[0][1].words)
        for kind in Kind
        if (found := definitions(kind))
    ]
    return markdown.page(
        "Checkers",
        "checkers/__init__.py and the rules in checkers/rules",
        "Each checker is a pure rule over one partition's ops; PySpark calls the rules for all runs, and "
        "finds in large runs what they must look at.\n"
        "A checker whose sources are missing from a history returns `unchecked`; it is never silent.",
        markdown.table(("checker", "finds", "needs", "source"), rows),
        "## Kinds of anomaly",
        "A verdict is the most severe of its anomalies: valid, permitted, unknown, hang, invalid.",
        markdown.table(("kind", "verdict", "meaning"), kinds),
        "## The words of an expectation",
        markdown.code(markdown.docstring(verdict).split("\n\n")[1]),
        "An expectation names outcomes. `not-replicated`, `committed-lost`, `false-ack` and "
        "`wrong-high-watermark` are violations on the way to one: they need no term where another violation "
        "shows what came of them, and are the outcome where none does.",
        "## Definitions",
        "The formulas are over the events of [history.md](history.md):",
        markdown.table(("notation", "means"), NOTATION),
        *chain.from_iterable(_section(kind) for kind in Kind),
    )


def definitions(kind: Kind) -> list[tuple[Checker, Definition]]:
    """Return the definitions of a kind, each with its checker, in the order of the table."""
    return [(checker, each) for checker in CHECKERS.values() for each in checker.kinds if each.kind is kind]


def _section(kind: Kind) -> Iterator[str]:
    yield f"### {kind.value}"
    for checker, each in definitions(kind):
        rows = [
            ("verdict", VERDICT_OF[kind].name.lower()),
            ("evidence", each.evidence),
            ("unchecked", each.unchecked or "never"),
            ("source", each.source),
            ("checker", f"`{checker.name}`"),
        ]
        yield each.words
        yield markdown.code(each.formula)
        yield markdown.table(("", ""), rows)


def _needs(groups: tuple[tuple[Source, ...], ...]) -> str:
    return " and ".join(" or ".join(source.value for source in group) for group in groups) or "nothing"
