"""
Compare what is found in a stored run now with what was found in it before.

Kinds, offsets, nodes and epochs decide whether an anomaly is the same. Its sentence does not: it has times, and is
worded better from release to release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from checkers.facts.view import setup_of
from checkers.judge import Conclusion, conclude, failure_in, with_failure
from checkers.verdict import Records, records_of
from harness.events import Setup
from harness.model import Anomaly, HistoryError, Op, PartOps, Source
from harness.run.result import Status
from harness.run.spec import NO_VIOLATION
from harness.run.store import Run
from harness.scenario.expectation import ABOUT_OFFSETS, NONE
from harness.scenario.variant import Variant, expectation_of
from harness.suite.scenario_files import expectations_again
from harness.suite.stored import StoredRun, is_large
from harness.tables.manifest import TablesError
from harness.target.traits import traits_of

# An anomaly without its sentence.
_Key: TypeAlias = tuple[Any, ...]
# Ops that say what was expected and acknowledged, and whether the run ended.
_TOLD_BY: Final = frozenset({(Source.RUNNER, "setup"), (Source.RUNNER, "done"), (Source.CLIENT, "produce")})
_WORDS: Final = tuple(f'"{f}"'.encode() for _, f in _TOLD_BY)
# Expectations that name no record.
_NAMELESS: Final = frozenset({NONE, NO_VIOLATION})


class Change(StrEnum):
    """How a run's verdict compares with the stored one, or with the expectation if none is stored."""

    SAME = "same"
    UNKNOWN = "unknown"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """
    One run that was checked again.

    Attributes:
        stored: the run, with what is stored of it.
        expected: the outcome that both conclusions are compared with.
        before: what was concluded when it was judged, None if that is not stored.
        now: what is concluded now.
        anomalies: all that was found now.
        appeared: what was found now, and not before; all of it if nothing is stored.
        gone: what was found before, and not now.
    """

    stored: StoredRun
    expected: str
    before: Conclusion | None
    now: Conclusion
    anomalies: tuple[Anomaly, ...]
    appeared: tuple[Anomaly, ...]
    gone: tuple[Anomaly, ...]

    @property
    def change(self) -> Change:
        """How it compares; nothing that cannot be read is the same."""
        before, now = self.before, self.now
        if self.stored.doubt:
            return Change.UNKNOWN
        if before is None:
            same = now.status is Status.AS_EXPECTED
        else:
            told = (before.status, before.verdict) == (now.status, now.verdict)
            same = told and not self.appeared and not self.gone
        if not same and now.status is not Status.UNKNOWN:
            return Change.DIFFERENT
        return Change.SAME if same else Change.UNKNOWN


def compared(stored: StoredRun, found: Sequence[Anomaly]) -> Again:
    """
    Compare a stored run with what is found in it now.

    Args:
        stored: the run, with what is stored of its verdict.
        found: what the checkers find in its history.
    """
    history = RunHistory(stored)
    before = stored.anomalies or ()
    if failure_in(before):
        found = with_failure(before, found, ended=history.ended)
    expected = stored.result.expected if stored.result else history.expected
    appeared, gone = differences(before, found)
    return Again(
        stored=stored,
        expected=expected,
        before=_before(stored, expected, history),
        now=concluded(expected, found, history),
        anomalies=tuple(found),
        appeared=appeared,
        gone=gone,
    )


def differences(
    before: Iterable[Anomaly], now: Iterable[Anomaly]
) -> tuple[tuple[Anomaly, ...], tuple[Anomaly, ...]]:
    """Return the anomalies that are only in the second, and those that are only in the first."""
    before, now = [*before], [*now]
    return _beyond(now, before), _beyond(before, now)


def _beyond(mine: Sequence[Anomaly], theirs: Sequence[Anomaly]) -> tuple[Anomaly, ...]:
    left = Counter(map(_key, theirs))
    found: list[Anomaly] = []
    for anomaly in mine:
        if left[_key(anomaly)] > 0:
            left[_key(anomaly)] -= 1
        else:
            found.append(anomaly)
    return tuple(found)


def _key(anomaly: Anomaly) -> _Key:
    nodes = tuple(sorted(anomaly.nodes))
    return (anomaly.kind, anomaly.topic, anomaly.partition, anomaly.ranges, nodes, anomaly.epoch)


def _before(stored: StoredRun, expected: str, history: RunHistory) -> Conclusion | None:
    if stored.result:
        result = stored.result
        return Conclusion(found=result.found, status=result.status, reason=result.reason, verdict=result.verdict)
    return None if stored.anomalies is None else concluded(expected, stored.anomalies, history)


def concluded(expected: str, anomalies: Sequence[Anomaly], history: RunHistory) -> Conclusion:
    """Return what follows from a stored run's anomalies."""
    # Most runs have nothing that is named after records, and their histories need not be read again.
    named = expected not in _NAMELESS or any(each.kind in ABOUT_OFFSETS for each in anomalies)
    return conclude(expected, anomalies, history.records if named else {})


class RunHistory:
    """What a stored run's history says beside what its checkers find, read when it is asked for."""

    def __init__(self, stored: StoredRun) -> None:
        self._stored = stored
        self._told: PartOps | None = None

    @property
    def ended(self) -> bool:
        """Whether it has an end."""
        return bool(self._ops.by_key.get((Source.RUNNER, "done")))

    @property
    def records(self) -> Records:
        """What was acknowledged."""
        return records_of(self._ops)

    @property
    def setup(self) -> Setup | None:
        """What was played, None if no line says so."""
        return setup_of(self._ops)

    @property
    def expected(self) -> str:
        """
        The outcome that the scenario's file expects; NO_VIOLATION of a random run, or if there is none.

        The names in the file are not looked up: no target need be found to judge a run of it again.
        """
        setup = self.setup
        if setup is None or setup.random:
            return NO_VIOLATION
        expectations = expectations_again(setup.target, setup.scenario)
        variant = Variant(protocol=setup.protocol, changes=setup.changes or ())
        found = expectation_of(variant, traits_of(setup), expectations)
        return NO_VIOLATION if found is None else expectations[found]

    @property
    def _ops(self) -> PartOps:
        if self._told is None:
            self._told = _told_by(self._stored)
        return self._told


def _told_by(stored: StoredRun) -> PartOps:
    """Return the ops that say what was expected and acknowledged; none if the run cannot be read."""
    if stored.problem:
        return PartOps()
    if not is_large(stored.run):
        return PartOps(_readable(stored.run))
    from harness.suite.abridged import read_abridged  # with pandas: only a large run waits for it

    try:
        return read_abridged(stored.run, ())
    except (OSError, TablesError):
        return PartOps()  # Spark has told why


def _readable(run: Run) -> Iterator[Op]:
    """Yield the ops of a history that say so, but those that cannot be read; other lines are not parsed."""
    with suppress(OSError), run.history.open("rb") as lines:  # Spark has told why it cannot be read
        for line in lines:
            if not line.endswith(b"\n") or not any(word in line for word in _WORDS):
                continue
            with suppress(HistoryError, UnicodeDecodeError):
                op = Op.from_json(line[:-1].decode())
                if (op.source, op.f) in _TOLD_BY and op.event is not None:
                    yield op
