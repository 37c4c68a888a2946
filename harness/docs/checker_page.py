"""Print docs/checkers.md: every kind of anomaly with its exact definition, from the rules that find it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from checkers import CHECKERS, verdict
from checkers.checker import Checker
from checkers.definition import Definition
from checkers.jepsen import definitions as jepsen
from checkers.live.electable import PIECES_MAX
from checkers.live.known import BLOCKS_MAX, WINDOW_OFFSETS
from checkers.live.rules import RULES, LiveRule
from harness.docs import markdown
from harness.model import VERDICT_OF, Kind, Source

NOTATION: Final = (
    ("`ok(produce r, acks=all, o)`", "a client's op of that type, event and values; `at k` is its index"),
    ("`leader(n, e)`, `append(n, …)`", "an event of broker n"),
    ("`state`, `ISR(x)`", "the partition's state in the metadata; the ISR at op x"),
    ("`log(n)[o]`", "the record at offset o in n's final log; `.end` is its end, exclusive"),
    ("`commit(r, o)`", "a high watermark above o of a leader whose log has r at o"),
    ("`proof(r)`", "the proof of a permitted loss, defined under [permitted](#permitted)"),
)


_LIVE: Final = """
With `--stop-at-violation`, a live check (checkers/live) follows a run op by op, and its first violation ends \
the run's schedule. It is off by default: a scenario of an old protocol must show its loss, which comes later.

- It makes no verdict. The runner records `stopped` ([history.md](history.md#runner)), then heals, verifies and \
reads all logs as always, and the checkers judge the history. If none of them proves a violation by one of the \
same ops, the run is unknown (checker `stopped`), never valid.
- A rule sees only what no later op can excuse. An acknowledgement with acks 0 or 1 promises nothing, and after \
a power loss, a deleted segment or a lost disk nothing that was asked for before it is held against anybody.
- What is seen while the cluster is healed, or read for the last time, ends nothing: the checkers see it as \
well.
- A schedule ends between two steps, or while a step waits; a client's call or a fault that is under way ends \
first.
- An op costs as much time as it has records. Of a partition, the live check remembers the last {window:,} \
offsets that were acknowledged with acks=all or read, the sums of digests of at most {blocks:,} blocks of \
offsets below, and the last {pieces} appends of each log. So of an older record it sees no second \
acknowledgement and no read that skips it, and another record in its place only if a read shows its whole block \
and all of that was known.
- In the simulator, the same seed stops at the same op.
""".strip().format(window=WINDOW_OFFSETS, blocks=BLOCKS_MAX, pieces=PIECES_MAX)


_JEPSEN: Final = """
`fencepost check --jepsen FILE…` judges histories of Jepsen's Kafka workload as Jepsen's own checker does \
(`jepsen.tests.kafka` with Elle), from the same lines: see [check.md](check.md#histories-of-jepsens). \
The table has each of its anomalies, when it makes a history invalid, and what of ours comes closest. \
Jepsen sees clients alone; our checkers also see the replicas' logs and what was done to the cluster, and so can \
tell a loss that a fault permits from one that it does not.

A value's *sender* is the operation that sent it; its *index* is its place in the log of its key, in which holes \
do not count. \
What is called *readers' rules* are the rules about what one client reads, and what two read.
""".strip()

_JEPSEN_EDGES: Final = """
A *ww edge* leads from the sender of a value to the sender of the next in the version order, a *wr edge* from a \
sender to those who polled, and *real time* from an `ok` completion to whatever is invoked after it. \
`assign` and `subscribe` are how the test's consumers choose what they poll. \
A *component* is a set of operations that all depend on each other.
""".strip()


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
        "An expectation names outcomes. `not-replicated`, `committed-lost`, `false-ack`, "
        "`wrong-high-watermark`, `read-uncommitted` and `inconsistent-offsets` are violations on the way to one, "
        "or follow from one: they need no term where another violation "
        "shows what came of them, and are the outcome where none does.",
        "## Definitions",
        "The formulas are over the events of [history.md](history.md):",
        markdown.table(("notation", "means"), NOTATION),
        *chain.from_iterable(_section(kind) for kind in Kind),
        "## The live check",
        _LIVE,
        *chain.from_iterable(_live_rule(name, rule) for name, rule in RULES.items()),
        "## Jepsen's checker",
        *_jepsen(),
    )


def _jepsen() -> Iterator[str]:
    """Yield the section about Jepsen's checker."""
    rows = [
        (
            f"`{name}`",
            each.words,
            each.bad.value,
            ", ".join(f"[`{kind.value}`](#{kind.value})" for kind in each.kinds) or "none",
            each.ours.removeprefix("none: "),
        )
        for name, each in jepsen.ANOMALIES.items()
    ]
    yield _JEPSEN
    yield markdown.table(("Jepsen's name", "definition", "invalid", "closest of ours", "difference"), rows)
    yield _JEPSEN_EDGES
    yield "What surprises, and is kept:"
    yield "\n".join(f"- {quirk}" for quirk in jepsen.QUIRKS)
    yield "Jepsen's checker throws where the history breaks its assumptions. Then there is no verdict:"
    yield markdown.table(("error", "because"), [(f"`{name}`", why) for name, why in jepsen.CRASHES.items()])


def _live_rule(name: str, rule: LiveRule) -> Iterator[str]:
    """Yield the section of one rule of the live check."""
    found = ", ".join(f"[`{kind.value}`](#{kind.value})" for kind in rule.found)
    rows = [("the checkers find", found), ("not seen", rule.unseen), ("source", rule.source)]
    yield f"### {name}"
    yield rule.words
    yield markdown.code(rule.formula)
    yield markdown.table(("", ""), rows)


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
