"""
A checker is a pure rule over the ops of one partition of one run; `check` applies all checkers.

The same `check` runs in a plain loop and in Spark executors, so both return the same anomalies. A checker that
cannot run (a source is missing, or the rule raises) returns UNCHECKED; it is never silent.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from checkers.definition import Definition
from checkers.facts.unread import unread
from checkers.facts.view import is_churned, key_of, unchecked
from harness.events import LineUnreadable
from harness.model import Anomaly, HistoryError, Kind, Op, PartOps, Source, Verdict, events_of

Rule = Callable[[Sequence[Op]], list[Anomaly]]


class Scope(StrEnum):
    """Which partitions a checker judges: those that last as long as the run, those of churned topics, or all."""

    LASTING = "lasting"
    CHURNED = "churned"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """
    One rule with its name, the sources of events that it needs, and its origin.

    Attributes:
        needs: groups of sources; the history must have ops from at least one source of each group.
        rule: the function from one partition's ops and the run's global ops, in index order, to anomalies.
        doc: one sentence for docs/checkers.md.
        source: the document or issue that states the rule.
        kinds: the definitions of the kinds that it finds.
        of_history: it finds where the history contradicts itself; nothing is said of an op that shows a violation.
        scope: which partitions it judges. Of a topic that clients delete and create again little is promised that
            is promised of one that lasts.
    """

    name: str
    needs: tuple[tuple[Source, ...], ...]
    rule: Rule
    doc: str
    source: str
    kinds: tuple[Definition, ...] = ()
    of_history: bool = False
    scope: Scope = Scope.LASTING

    def judges(self, ops: Sequence[Op]) -> bool:
        """Return True if it judges the partition that these ops are about."""
        return self.scope is Scope.ALL or is_churned(ops) is (self.scope is Scope.CHURNED)


def check(ops: Sequence[Op], checkers: Mapping[str, Checker]) -> list[Anomaly]:
    """
    Apply every checker to the ops of one partition that judges such a partition.

    Args:
        ops: the ops of one partition and the global ones, in index order.
        checkers: the checkers by name.

    Returns:
        The anomalies in the order of the checkers.
    """
    ops = ops if isinstance(ops, PartOps) else PartOps(ops)
    sources = frozenset(op.source for op in ops)
    judging = [checker for checker in checkers.values() if checker.judges(ops)]
    found = [anomaly for checker in judging for anomaly in _apply(checker, ops, sources)]
    found = _unexplained(found, {name for name, checker in checkers.items() if checker.of_history})
    readable = not unread(ops) and not any(True for _ in events_of(ops, LineUnreadable))
    return found if readable else unproven(found)


def _unexplained(anomalies: Sequence[Anomaly], of_history: Collection[str]) -> list[Anomaly]:
    """
    Return the anomalies without contradictions that a violation explains: both name the same op.

    A broker that does what it must not contradicts what the others saw of it; that is no doubt about the history.
    """
    shown = {index for each in anomalies if each.verdict > Verdict.UNKNOWN for index in each.proof}
    return [each for each in anomalies if each.checker not in of_history or shown.isdisjoint(each.proof)]


def of_run(parts: Iterable[Sequence[Anomaly]]) -> list[Anomaly]:
    """
    Return what was found in a run, from what `check` found in each of its partitions.

    A run proves nothing only if none of its partitions proves anything; then that is said once.
    """
    found = [*parts]
    proven = not all(any(_is_vacuous(each) for each in part) for part in found)
    return [
        each
        for number, part in enumerate(found)
        for each in part
        if not (_is_vacuous(each) and (proven or number))
    ]


def _is_vacuous(anomaly: Anomaly) -> bool:
    return anomaly.kind is Kind.VACUOUS


def unproven(anomalies: Iterable[Anomaly]) -> list[Anomaly]:
    """
    Return what was found in a history that lacks a line, or has one that cannot be read.

    What the missing line would have said may contradict a violation, so that none is proven.
    """
    why = "The history lacks a line, so this is not proven."
    return [
        replace(each, kind=Kind.UNCHECKED, sentence=f"{each.sentence} {why}")
        if each.verdict > Verdict.UNKNOWN
        else each
        for each in anomalies
    ]


def partitions(ops: Sequence[Op]) -> dict[tuple[str, int], PartOps]:
    """
    Split one run's ops by (topic, partition); each part includes the ops that are about the whole run.

    Ops of the runner and the nemesis are about the whole run, whatever partition they name. A run without ops of a
    partition has one part all the same, so that checkers report the missing evidence.
    """
    ops = ops if isinstance(ops, PartOps) else PartOps(ops)
    if len({op.place for op in ops} - {None}) == 1:
        return {key_of(ops): ops}
    places = [partition_of(op) for op in ops]
    keys = dict.fromkeys(place for place in places if place is not None) or {key_of(ops): None}
    return {
        key: PartOps(op for op, place in zip(ops, places, strict=True) if place in (None, key)) for key in keys
    }


def partition_of(op: Op) -> tuple[str, int] | None:
    """Return the (topic, partition) of the op, None if it is about the whole run."""
    return None if op.source in (Source.RUNNER, Source.NEMESIS) else op.place


def _apply(checker: Checker, ops: Sequence[Op], sources: frozenset[Source]) -> list[Anomaly]:
    missing = [group for group in checker.needs if sources.isdisjoint(group)]
    if missing:
        wanted = " and ".join(" or ".join(source.value for source in group) for group in missing)
        return [_unchecked(checker, ops, f"the history has nothing from {wanted}")]
    try:
        found = checker.rule(ops)
    except HistoryError as error:
        # Checker `whole` names each op that cannot be read, once for all rules that needed it.
        return [] if unread(ops) else [_unchecked(checker, ops, str(error))]
    # A rule that raises must not hide the other checkers' findings; it makes the verdict unknown.
    except Exception as error:
        return [_unchecked(checker, ops, traceback.format_exception_only(error)[-1].strip())]
    return [replace(anomaly, checker=checker.name) for anomaly in found]


def _unchecked(checker: Checker, ops: Sequence[Op], why: str) -> Anomaly:
    topic, partition = key_of(ops)
    text = f"Checker {checker.name} could not judge {topic}-{partition}: {why}."
    return unchecked((topic, partition), text, checker.name)
