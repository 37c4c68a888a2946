"""`Count`: what some runs of a night showed, as numbers that add up; lines of a journal have one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

from harness.model import Verdict
from harness.night.cause import Cause, cause_of
from harness.report.text import shortened
from harness.run.result import RunResult
from harness.search.tally import verdict_of

SENTENCES_MAX: Final = 8
SENTENCE_CHARACTERS_MAX: Final = 1_200


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    A run that showed a violation, a hang, or what no checker could judge.

    Attributes:
        verdict: the name of the verdict, in lower case.
        kinds: every kind of anomaly that is no permitted one, in the model's order.
        sentences: the first of the result's sentences.
        again: the command that plays it again.
        folder: where it is kept whole, below the night's folder; "" if it is not.
        kept: why it is not kept, or not whole; "" if it is.
    """

    seed: int
    verdict: str
    cause: Cause
    kinds: tuple[str, ...]
    sentences: tuple[str, ...]
    again: str
    folder: str = ""
    kept: str = ""

    @staticmethod
    def of(result: RunResult, *, folder: str = "", kept: str = "", brief: bool = False) -> Finding:
        """Return the finding of a run that has one; of many alike briefly, without its sentences."""
        kinds = dict.fromkeys(each.kind.value for each in result.anomalies if each.verdict >= Verdict.UNKNOWN)
        return Finding(
            seed=result.seed,
            verdict=result.verdict.name.lower(),
            cause=cause_of(result),
            kinds=tuple(kinds),
            sentences=tuple(
                shortened(s, SENTENCE_CHARACTERS_MAX) for s in result.sentences[: 0 if brief else SENTENCES_MAX]
            ),
            again=result.rerun,
            folder=folder,
            kept=kept,
        )

    @property
    def is_violation(self) -> bool:
        """Whether it is a violation or a hang, and not merely unknown."""
        return Verdict[self.verdict.upper()] >= Verdict.HANG

    @staticmethod
    def from_dict(raw: Mapping[str, Any]) -> Finding:
        """Read what `asdict` returned."""
        many = {name: tuple(raw[name]) for name in ("kinds", "sentences")}
        return Finding(**{**raw, **many, "cause": Cause(**raw["cause"])})


@dataclass(slots=True)
class Count:
    """
    The totals of some runs.

    Attributes:
        runs: how many were judged.
        verdicts: verdict's name -> runs.
        vacuous: runs that prove nothing, since nothing took effect or nothing was acknowledged.
        asked, bit: kind of fault -> how many were asked, and how many took effect.
        windows, available: seconds of real time in which a produce was tried, and in which one was acknowledged.
        gap_s: the longest time without an acknowledgement.
        seconds: what the runs took; in the simulator processor time of all jobs.
    """

    runs: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    vacuous: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    bit: Counter[str] = field(default_factory=Counter)
    elections: int = 0
    acked: int = 0
    windows: int = 0
    available: int = 0
    gap_s: float = 0.0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    def add(self, result: RunResult) -> None:
        """Count a result, but not its finding, which `findings` has once it is kept."""
        self.runs += 1
        self.verdicts[result.verdict.name.lower()] += 1
        self.vacuous += bool(result.vacuous)
        self.asked.update(result.activity.asked)
        self.bit.update(result.activity.bit)
        self.elections += result.activity.elections
        self.acked += result.activity.acked
        self.seconds += result.seconds

    def merge(self, other: Count) -> None:
        """Add what another one counted."""
        for each in fields(Count):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if each.name == "gap_s":
                self.gap_s = max(mine, theirs)
            elif isinstance(mine, Counter):
                mine.update(theirs)
            else:
                setattr(self, each.name, mine + theirs)

    @staticmethod
    def total(counts: Iterable[Count]) -> Count:
        """Return the sum of some counts."""
        total = Count()
        for count in counts:
            total.merge(count)
        return total

    @property
    def verdict(self) -> Verdict:
        """The gravest verdict of the findings; unknown if at least half of the runs are, or there is none."""
        worst = (Verdict[finding.verdict.upper()] for finding in self.findings)
        return verdict_of(worst, unknown=self.verdicts["unknown"], runs=self.runs)

    @property
    def violations(self) -> list[Finding]:
        """The findings that are more than unknown."""
        return [each for each in self.findings if each.is_violation]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, which `from_dict` reads back unchanged."""
        found = {each.name: getattr(self, each.name) for each in fields(Count)}
        # asdict would count a counter's pairs.
        plain = {name: dict(value) for name, value in found.items() if isinstance(value, Counter)}
        return found | plain | {"findings": [asdict(finding) for finding in self.findings]}

    @staticmethod
    def from_dict(raw: Mapping[str, Any]) -> Count:
        """Read what `to_dict` returned."""
        counters = {name: Counter(raw[name]) for name in ("verdicts", "asked", "bit")}
        return Count(**{**raw, **counters, "findings": [Finding.from_dict(each) for each in raw["findings"]]})
