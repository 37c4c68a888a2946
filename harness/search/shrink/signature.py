"""The signature of a finding: the kinds of anomalies of which a shrunk schedule must still show one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from harness.events import Step
from harness.model import ORACLES, Anomaly, Kind, Op, OpType, Verdict, events_of
from harness.run.result import RunResult
from harness.scenario.expectation import ON_THE_WAY

# The last check of a written scenario, which is no step of its own.
EVERY_RULE_BIT: Final = "every rule of a link bit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """
    What a schedule must show to be a smaller form of a finding.

    Attributes:
        kinds: one of these kinds is enough.
    """

    kinds: frozenset[Kind]

    @staticmethod
    def of(result: RunResult) -> Signature | None:
        """
        Return the signature of a finding; None if the run shows neither a violation nor a hang.

        Of the anomalies that are as severe as the verdict, those of the rules count more than those of oracles,
        which no real process has; and outcomes count more than violations on the way to one.
        """
        if result.verdict < Verdict.HANG:
            return None
        worst = frozenset(each.kind for each in result.anomalies if each.verdict is result.verdict)
        ruled = worst - ORACLES or worst
        return Signature(kinds=ruled - ON_THE_WAY or ruled)

    @property
    def needs_oracles(self) -> bool:
        """Whether only oracles show it, which watch random runs alone."""
        return self.kinds <= ORACLES

    def shown_by(self, anomalies: Collection[Anomaly], *, written: bool) -> bool:
        """
        Return True if these anomalies show it.

        Args:
            written: the run is one of a written scenario, which is unknown if it lacks any evidence.
        """
        if written and any(each.verdict is Verdict.UNKNOWN for each in anomalies):
            return False
        return any(each.kind in self.kinds for each in anomalies)

    def __str__(self) -> str:
        return " or ".join(kind.value for kind in Kind if kind in self.kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    What a candidate's run showed.

    Attributes:
        shows: whether it shows the signature.
        skipped: the lines of the steps that were not applicable.
        failed: the line of the step that failed and ended a written schedule; 0 if none did.
        found: every anomaly, as an expectation names it.
    """

    shows: bool
    skipped: frozenset[int] = frozenset()
    failed: int = 0
    found: str = ""


def outcome_of(signature: Signature, result: RunResult, ops: Sequence[Op], *, written: bool) -> Outcome:
    """Return what a run showed, from its result and its history."""
    steps = [(op.type, step) for op, step in events_of(ops, Step) if step.line and step.text != EVERY_RULE_BIT]
    return Outcome(
        shows=signature.shown_by(result.anomalies, written=written),
        skipped=frozenset(step.line for _, step in steps if step.skipped),
        failed=next((step.line for type_, step in steps if type_ is OpType.FAIL), 0),
        found=result.found,
    )
