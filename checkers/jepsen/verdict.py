"""The verdict of Jepsen's checker for a history, under each choice of its options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from checkers.jepsen import offsets, positions, reads, sends
from checkers.jepsen.cycles import Cycles
from checkers.jepsen.definitions import ANOMALIES, Bad
from checkers.jepsen.facts import gather
from checkers.jepsen.finding import Finding
from checkers.jepsen.history import ASSIGN, SUBSCRIBE, CheckerCrashError, JepsenHistory
from checkers.jepsen.pause import collector_paused


@dataclass(frozen=True, slots=True)
class Column:
    """
    The options of a test of Jepsen's that change a verdict.

    Attributes:
        sub_via: `assign` or `subscribe`: how its consumers choose what they poll.
        ww_deps: whether the order of a log makes dependencies between senders.
    """

    sub_via: str
    ww_deps: bool

    def __str__(self) -> str:
        return f"{self.sub_via}+ww" if self.ww_deps else self.sub_via

    def allows(self, kind: str) -> bool:
        """Return True if an anomaly of this kind does not make a history invalid."""
        match ANOMALIES[kind].bad:
            case Bad.ALWAYS:
                return False
            case Bad.UNLESS_SUBSCRIBE:
                return self.sub_via == SUBSCRIBE
            case Bad.WITHOUT_WW:
                return self.ww_deps
            case Bad.NEVER:
                return True


# As Jepsen's own tests of Kafka run: by assignment, with ww edges; then what the other options change.
COLUMNS: Final = (Column(ASSIGN, True), Column(ASSIGN, False), Column(SUBSCRIBE, True))

_RULES: Final = (
    offsets.inconsistent_offsets,
    offsets.duplicate,
    reads.lost_write,
    reads.unseen,
    reads.aborted_read,
    reads.precommitted_read,
    positions.between_polls,
    positions.within_polls,
    sends.between_sends,
    sends.within_sends,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """
    What Jepsen's checker says of a history.

    Attributes:
        findings: all of them, in the order of the rules.
        bad: the kinds that make the history invalid, sorted.
        crash: why the checker throws; "" if it does not. Then there are no findings, and there is no verdict.
    """

    findings: Sequence[Finding] = ()
    bad: Sequence[str] = ()
    crash: str = ""

    @property
    def valid(self) -> bool | None:
        """Return whether the history is valid; None if the checker throws."""
        return None if self.crash else not self.bad

    @property
    def counts(self) -> dict[str, int]:
        """Return how many findings there are of each kind, by kind; of `unseen`, how many values."""
        counts: Counter[str] = Counter()
        for finding in self.findings:
            counts[finding.kind] += finding.count
        return dict(sorted(counts.items()))


def judge(history: JepsenHistory, columns: Sequence[Column] = COLUMNS) -> dict[Column, Verdict]:
    """
    Return the verdict under each column's options.

    Args:
        history: of which every line could be used.
    """
    assert not history.problems, f"{history.problems[0]}; a history with problems has no verdict"
    with collector_paused():
        return _judge(history, columns)


def _judge(history: JepsenHistory, columns: Sequence[Column]) -> dict[Column, Verdict]:
    try:
        facts = gather(history.ops)
        common = [finding for rule in _RULES for finding in rule(facts)]
        cycles = Cycles(facts)
        cyclic = {ww: [*cycles.find(ww_deps=ww)] for ww in {column.ww_deps: None for column in columns}}
    except CheckerCrashError as error:
        return {column: Verdict(crash=str(error)) for column in columns}
    return {column: _verdict(column, [*common, *cyclic[column.ww_deps]]) for column in columns}


def _verdict(column: Column, findings: Sequence[Finding]) -> Verdict:
    kinds = {finding.kind for finding in findings}
    return Verdict(findings=findings, bad=sorted(kind for kind in kinds if not column.allows(kind)))
