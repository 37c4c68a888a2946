"""`Tally`: the totals of a search, added seed by seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.model import ORACLES, Kind, Verdict
from harness.run.result import RunResult


def verdict_of(findings: Iterable[Verdict], *, unknown: int, runs: int) -> Verdict:
    """Return the most severe verdict of the findings; unknown if at least half of the runs are, else valid."""
    return Verdict.merge([*findings, Verdict.UNKNOWN if 2 * unknown >= runs else Verdict.VALID])


@dataclass(slots=True)
class Tally:
    """
    The totals of a search.

    Attributes:
        verdicts: the number of seeds by verdict.
        kinds: the number of seeds by kind of anomaly.
        asked: the number of requested faults by kind.
        bit: the number of faults that took effect by kind.
        polls, records_read, records_sent, bytes_sent: what clients did, as in Activity.
        replicas_moved, recreated: what moves and re-creations came about, as in Activity.
        skipped: steps that were not applicable when their turn came.
        coverage: how often the simulated cores did each kind of thing.
        findings: the results with a finding.
        seconds: in the simulator, processor time of all jobs; on real processes, wall time of all runs.
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    kinds: Counter[Kind] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    bit: Counter[str] = field(default_factory=Counter)
    polls: int = 0
    records_read: int = 0
    records_sent: int = 0
    bytes_sent: int = 0
    replicas_moved: int = 0
    recreated: int = 0
    skipped: int = 0
    coverage: Counter[str] = field(default_factory=Counter)
    findings: list[RunResult] = field(default_factory=list)
    seeds: int = 0
    elections: int = 0
    acked: int = 0
    steps: int = 0
    virtual_s: float = 0.0
    seconds: float = 0.0

    def add(self, result: RunResult) -> None:
        """Count a result."""
        done = result.activity
        self.seeds += 1
        self.verdicts[result.verdict] += 1
        self.kinds.update({anomaly.kind for anomaly in result.anomalies})
        self.asked.update(done.asked)
        self.bit.update(done.bit)
        self.polls += done.polls
        self.records_read += done.records_read
        self.records_sent += done.records_sent
        self.bytes_sent += done.bytes_sent
        self.replicas_moved += done.replicas_moved
        self.recreated += done.recreated
        self.skipped += done.skipped
        self.coverage.update(done.coverage)
        self.elections += done.elections
        self.acked += done.acked
        self.steps += done.steps
        self.virtual_s += done.virtual_s
        self.seconds += result.seconds
        if result.is_finding:
            self.findings.append(result)

    @property
    def verdict(self) -> Verdict:
        """The most severe verdict of the findings; unknown if at least half of the seeds are, else valid."""
        worst = (result.verdict for result in self.findings)
        return verdict_of(worst, unknown=self.verdicts[Verdict.UNKNOWN], runs=self.seeds)

    @property
    def seeds_per_second(self) -> float:
        """Seeds per second and core."""
        return self.seeds / self.seconds if self.seconds else 0.0

    @property
    def oracles(self) -> list[Kind]:
        """The kinds that the oracles found, in the order of the model."""
        return [kind for kind in Kind if kind in ORACLES and self.kinds[kind]]
