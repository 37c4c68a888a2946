"""
Two systems under the same seeds: a cross table of verdict kinds, the effective faults, and the seeds that differ.

The kind of a run is one word for its worst anomaly. Anomalies that depend on the target, such as an exit or a
hang, rank below losses and divergence, which any target can show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from harness.model import Kind, Verdict
from harness.run.result import Activity, RunResult

# The kind of a run is the first of these that was found in it.
_WORST_FIRST: Final = (
    Kind.LOST,
    Kind.COMMITTED_LOST,
    Kind.READ_LOST,
    Kind.DIVERGED,
    Kind.STORES_DIFFER,
    Kind.INCONSISTENT_OFFSETS,
    Kind.ALTERED,
    Kind.PHANTOM,
    Kind.DUPLICATE,
    Kind.TWO_LEADERS,
    Kind.LED_TWICE,
    Kind.DISORDER,
    Kind.REORDERED,
    Kind.HOLE,
    Kind.INCOMPLETE,
    Kind.LONGER,
    Kind.EPOCHS_DIFFER,
    Kind.CHECKPOINT,
    Kind.CORRUPT,
    Kind.WRONG_READ,
    Kind.READ_UNCOMMITTED,
    Kind.POLL_SKIP,
    Kind.NONMONOTONIC_POLL,
    Kind.FALSE_ACK,
    Kind.NOT_REPLICATED,
    Kind.WRONG_LEADER,
    Kind.WRONG_CONTROLLER,
    Kind.WRONG_ISR,
    Kind.WRONG_HIGH_WATERMARK,
    Kind.DELETED_EARLY,
    Kind.UNDELETED,
    Kind.NOT_COMPACTED,
    Kind.RESURRECTED,
    Kind.OLD_GENERATION,
    Kind.WRONG_TOPIC,
    Kind.EXITED,
)
KINDS: Final = ("valid", "permitted", *(kind.value for kind in reversed(_WORST_FIRST)), "hang", "unknown")


def kind_of(result: RunResult) -> str:
    """Return the kind of a run: its worst anomaly, else its verdict."""
    found = {anomaly.kind for anomaly in result.anomalies}
    worst = next((kind.value for kind in _WORST_FIRST if kind in found), None)
    return worst or result.verdict.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One seed on both systems."""

    ours: RunResult
    theirs: RunResult

    @property
    def seed(self) -> int:
        """The seed of both runs."""
        return self.ours.seed

    @property
    def differs(self) -> bool:
        """True if the kinds differ."""
        return kind_of(self.ours) != kind_of(self.theirs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """
    All seeds that were played on both systems.

    Attributes:
        ours: the printed name of our system.
        theirs: the printed name of the other system.
        pairs: the results, by seed.
    """

    ours: str
    theirs: str
    pairs: Sequence[Pair]

    @property
    def crossed(self) -> Counter[tuple[str, str]]:
        """The number of seeds by (our kind, their kind)."""
        return Counter((kind_of(pair.ours), kind_of(pair.theirs)) for pair in self.pairs)

    @property
    def differing(self) -> list[Pair]:
        """The seeds whose kinds differ."""
        return [pair for pair in self.pairs if pair.differs]

    @property
    def judged(self) -> list[Pair]:
        """The seeds with a verdict other than unknown on both systems."""
        unknown = Verdict.UNKNOWN
        return [pair for pair in self.pairs if unknown not in (pair.ours.verdict, pair.theirs.verdict)]

    def invalid(self, side: str) -> int:
        """Return the number of invalid seeds on a side."""
        return sum(result.verdict is Verdict.INVALID for result in self.results(side))

    def results(self, side: str) -> list[RunResult]:
        """Return the results of a side."""
        return [pair.ours if side == "ours" else pair.theirs for pair in self.pairs]

    def faults(self, side: str) -> dict[str, tuple[int, int]]:
        """Return, by fault, how often it was tried on a side and how often it took effect."""
        asked: Counter[str] = Counter()
        bit: Counter[str] = Counter()
        for result in self.results(side):
            asked.update(result.activity.asked)
            bit.update(result.activity.bit)
        return {name: (asked[name], bit[name]) for name in sorted(asked.keys() | bit.keys())}

    @property
    def done(self) -> dict[str, tuple[int, int]]:
        """What came about on each side: what -> (how often on ours, how often on theirs)."""

        def both(of: Callable[[Activity], int]) -> tuple[int, int]:
            ours, theirs = (sum(of(each.activity) for each in self.results(side)) for side in ("ours", "theirs"))
            return ours, theirs

        return {
            "elections": both(lambda activity: activity.elections),
            "acknowledged": both(lambda activity: activity.acked),
            "replicas moved": both(lambda activity: activity.replicas_moved),
            "topics created again": both(lambda activity: activity.recreated),
        }

    def summary(self, commands: Mapping[int, Mapping[str, str]]) -> dict[str, Any]:
        """Return the comparison as JSON data; commands are seed -> side -> command that plays it again."""
        return {
            "ours": self.ours,
            "theirs": self.theirs,
            "seeds": len(self.pairs),
            "same": len(self.pairs) - len(self.differing),
            "invalid": {side: self.invalid(side) for side in ("ours", "theirs")},
            "kinds": [
                {"ours": ours, "theirs": theirs, "seeds": count}
                for (ours, theirs), count in sorted(self.crossed.items())
            ],
            "faults": {
                side: {name: {"tried": tried, "bit": bit} for name, (tried, bit) in self.faults(side).items()}
                for side in ("ours", "theirs")
            },
            **{name: dict(zip(("ours", "theirs"), counts, strict=True)) for name, counts in self.done.items()},
            "seconds": {side: round(sum(t.seconds for t in self.results(side)), 1) for side in ("ours", "theirs")},
            "differing": [
                {
                    "seed": pair.seed,
                    "ours": _summary(pair.ours),
                    "theirs": _summary(pair.theirs),
                    "again": dict(commands[pair.seed]),
                }
                for pair in self.differing
            ],
        }


def print_comparison(found: Comparison, console: Console) -> None:
    """Print the cross table of kinds, and the share of faults that took effect on each side."""
    console.print(_crosstab(found))
    console.print(_faults(found))


def _crosstab(found: Comparison) -> Table:
    crossed = found.crossed
    rows = [kind for kind in KINDS if any(ours == kind for ours, _ in crossed)]
    columns = [kind for kind in KINDS if any(theirs == kind for _, theirs in crossed)]
    title = f"seeds by verdict kind: {found.ours} down, {found.theirs} across"
    table = Table(title=title, title_justify="left")
    table.add_column(found.ours)
    for kind in columns:
        table.add_column(kind, justify="right")
    table.add_column("all", justify="right")
    for row in rows:
        counts = [crossed[row, kind] for kind in columns]
        table.add_row(row, *(str(count or "–") for count in counts), str(sum(counts)))
    totals = [sum(crossed[row, kind] for row in rows) for kind in columns]
    table.add_row("all", *map(str, totals), str(sum(totals)))
    return table


def _faults(found: Comparison) -> Table:
    ours, theirs = found.faults("ours"), found.faults("theirs")
    table = Table(title="faults that bit, of those that were tried", title_justify="left")
    for name in ("fault", found.ours, found.theirs):
        table.add_column(name, justify="left" if name == "fault" else "right")
    for name in sorted(ours.keys() | theirs.keys()):
        table.add_row(name, _share(ours.get(name)), _share(theirs.get(name)))
    table.add_row("all", _share(_all(ours)), _share(_all(theirs)))
    table.add_section()
    for name, counts in found.done.items():
        table.add_row(name, *map(str, counts))
    return table


def _all(faults: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    return sum(tried for tried, _ in faults.values()), sum(bit for _, bit in faults.values())


def _share(counted: tuple[int, int] | None) -> str:
    tried, bit = counted or (0, 0)
    return f"{bit} of {tried} ({100 * bit / tried:.0f} %)" if tried else "–"


def _summary(result: RunResult) -> dict[str, Any]:
    return {
        "kind": kind_of(result),
        "verdict": result.verdict.name.lower(),
        "kinds": sorted({anomaly.kind.value for anomaly in result.anomalies}),
        "sentences": result.sentences or ([result.vacuous] if result.vacuous else []),
    }
