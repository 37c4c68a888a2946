"""`RunResult`: the result of one run, as plain data, as stored in suite.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, get_type_hints

from harness.events.older import counted
from harness.model import ORACLES, Anomaly, Kind, Verdict
from harness.scenario.variant import Variant, is_mutant


class Status(StrEnum):
    """How a run compares with its expectation; `unknown` is never as expected."""

    AS_EXPECTED = "as expected"
    UNKNOWN = "unknown"
    MISMATCH = "mismatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """
    Counts of what happened in a run, taken from its history.

    Attributes:
        asked: kind -> how many faults and link rules were tried.
        bit: kind -> how many of them took effect.
        elections: leader epochs after the first.
        acked: records of the schedule that were acknowledged with acks=all.
        steps: steps of the simulated world; 0 on real processes.
        virtual_s: seconds of virtual time; 0 on real processes.
        skipped: steps of the schedule that were not applicable when their turn came.
        coverage: how often the simulated cores did each kind of thing (targets/simulator/broker/coverage.py).
        polls: polls of consumers that were answered.
        records_read: records that they showed, each as often as it was shown.
        records_sent: records of all producers that were acknowledged, whatever their acks.
        bytes_sent: the bytes of their values.
        replicas_moved: replicas that left a partition because it was moved, as the metadata showed it.
        recreated: topics that were created again after they had been deleted, each as often as that, by what
            clients were told or the metadata showed, whichever is more.
    """

    asked: Mapping[str, int] = field(default_factory=dict)
    bit: Mapping[str, int] = field(default_factory=dict)
    elections: int = 0
    acked: int = 0
    steps: int = 0
    virtual_s: float = 0.0
    skipped: int = 0
    coverage: Mapping[str, int] = field(default_factory=dict)
    polls: int = 0
    records_read: int = 0
    records_sent: int = 0
    bytes_sent: int = 0
    replicas_moved: int = 0
    recreated: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """
    The result of one run; only `checkers.judge.judge` creates it.

    Attributes:
        expected: the expected outcome, a short text such as "lost m2" or "none".
        found: the outcome that was found, such as "permitted m2, diverged m2, stuck A".
        reason: why the status is not "as expected", or "".
        anomalies: all that the checkers proved, in the order of the checkers.
        run: the run's folder below the suite's.
        rerun: the command that repeats this run alone.
        activity: counts of what happened in the run.
        seconds: wall time of a stored run; processor time of a run that a search judged in memory.
    """

    scenario: str
    title: str
    source: str
    protocol: str
    seed: int = 0
    expected: str
    found: str
    status: Status
    reason: str
    verdict: Verdict
    anomalies: tuple[Anomaly, ...]
    run: str
    rerun: str
    seconds: float
    activity: Activity = field(default_factory=Activity)

    @property
    def vacuous(self) -> str:
        """Why the run proves nothing, or ""."""
        return next((each.sentence for each in self.anomalies if each.kind is Kind.VACUOUS), "")

    @property
    def is_finding(self) -> bool:
        """Whether the run shows a violation, a hang, or something that prevented the checkers' verdict."""
        return any(a.verdict >= Verdict.UNKNOWN and a.kind is not Kind.VACUOUS for a in self.anomalies)

    @property
    def sentences(self) -> list[str]:
        """One sentence for each finding: the oracles' first, then the most severe first."""
        severe = [a for a in self.anomalies if a.verdict > Verdict.PERMITTED and a.kind is not Kind.VACUOUS]
        severe.sort(key=lambda a: (a.kind not in ORACLES, -a.verdict))
        return [f"{a.kind.value}: {a.sentence}" for a in severe]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, which `from_dict` reads back unchanged."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        found["anomalies"] = [anomaly.to_dict() for anomaly in self.anomalies]
        found["activity"] = {each.name: getattr(self.activity, each.name) for each in fields(Activity)}
        return found

    @staticmethod
    def from_dict(raw: Mapping[str, Any]) -> RunResult:
        """Read what `to_dict` returned, even in older versions, which had no seed and no activity."""
        result = RunResult(
            **{
                **raw,
                "protocol": _present(raw["protocol"]),
                "status": Status(raw["status"]),
                "verdict": Verdict(raw["verdict"]),
                "anomalies": tuple(map(Anomaly.from_dict, raw["anomalies"])),
                "activity": Activity(**{name: _today(value) for name, value in raw.get("activity", {}).items()}),
            }
        )
        check_texts_and_numbers(result)
        check_texts_and_numbers(result.activity)
        if Path(result.run).name != result.run:
            raise ValueError(f"run {result.run!r}; expected the name of a folder beside suite.json")
        return result


def _today(value: Any) -> Any:
    """Return a part of a stored activity; counts have the names of today."""
    return counted(value) if isinstance(value, Mapping) else value


def check_texts_and_numbers(stored: Any) -> None:
    """Raise TypeError if a field of a stored dataclass that is declared as text or number is none."""
    for name, kind in _hints(type(stored)).items():
        value = getattr(stored, name)
        accepted = _PLAIN.get(kind)
        if accepted is not None and (not isinstance(value, accepted) or isinstance(value, bool)):
            raise TypeError(f"{name} is {value!r:.80}; expected {kind.__name__}")


def _hints(kind: type) -> Mapping[str, Any]:
    """Return the types of a class's fields, which take longer to find than a stored result to read."""
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    return _HINTS[kind]


_HINTS: Final[dict[type, Mapping[str, Any]]] = {}
_PLAIN: Final[Mapping[Any, Any]] = {str: str, int: int, float: int | float}


def _present(protocol: str) -> str:
    """Return the text of a stored variant, with the current names of its rules."""
    return str(Variant.parse(protocol, "stored suite")) if is_mutant(protocol) else protocol
