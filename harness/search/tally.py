"""`Tally`: what a search has come to, seed by seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from harness.model import ORACLES, Kind, Verdict
from harness.run.result import RunResult


@dataclass(slots=True)
class Tally:
    """
    What a search has come to.

    Attributes:
        verdicts, kinds: numbers of seeds; asked, bit: numbers of faults, by kind.
        findings: the results that show something.
        seconds: processor time of all jobs together in the simulator, wall time of all runs on real processes.
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    kinds: Counter[Kind] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    bit: Counter[str] = field(default_factory=Counter)
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
        self.elections += done.elections
        self.acked += done.acked
        self.steps += done.steps
        self.virtual_s += done.virtual_s
        self.seconds += result.seconds
        if result.is_finding:
            self.findings.append(result)

    @property
    def verdict(self) -> Verdict:
        """The most severe of the findings; unknown where most seeds prove nothing, else valid."""
        worst = Verdict.merge(result.verdict for result in self.findings)
        unknown = 2 * self.verdicts[Verdict.UNKNOWN] >= self.seeds
        return Verdict.merge([worst, Verdict.UNKNOWN if unknown else Verdict.VALID])

    @property
    def seeds_per_second(self) -> float:
        """Seeds per second and core."""
        return self.seeds / self.seconds if self.seconds else 0.0

    @property
    def oracles(self) -> list[Kind]:
        """The oracles' kinds that were found, in the order of the model."""
        return [kind for kind in Kind if kind in ORACLES and self.kinds[kind]]
