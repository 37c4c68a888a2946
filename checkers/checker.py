"""
What a checker is: a pure rule over the ops of one partition of one run, and how any runner applies it.

The same `check` runs in a plain loop and in a Spark executor, so that both give the same anomalies.
A checker that cannot be made (a source is missing, the rule crashes) gives UNCHECKED, never silence.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from checkers.facts.view import key_of
from harness.model import Anomaly, Kind, Op, Source

Rule = Callable[[Sequence[Op]], list[Anomaly]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """
    One rule with its name, what it must see, and where it comes from.

    Shapes:  rule takes one partition's ops and the run's global ops, in index order. needs: for every group,
             at least one of its sources must be in the history. doc is one sentence for docs/checkers.md.
    """

    name: str
    needs: tuple[tuple[Source, ...], ...]
    rule: Rule
    doc: str
    source: str


def check(ops: Sequence[Op], checkers: Mapping[str, Checker], clean: frozenset[str]) -> list[Anomaly]:
    """
    Apply every checker to the ops of one partition.

    Shapes:  clean names the checkers whose rule need not be called, because a search of the whole suite has
             found nothing suspicious in this partition; what they need is still looked for.
             Returns the anomalies in the order of the checkers.
    """
    return [anomaly for checker in checkers.values() for anomaly in _apply(checker, ops, clean)]


def partitions(ops: Sequence[Op]) -> dict[tuple[str, int], list[Op]]:
    """
    Part one run's ops by (topic, partition), with the ops that are about no partition in each part.

    Shapes:  what the runner and the nemesis say is about the whole run, whatever it names. A run that never
             came to a partition has one part all the same, so that it is checked, and found wanting.
    """
    keys = dict.fromkeys(key for op in ops if (key := partition_of(op)) is not None) or {key_of(ops): None}
    return {key: [op for op in ops if partition_of(op) in (None, key)] for key in keys}


def partition_of(op: Op) -> tuple[str, int] | None:
    """Give the (topic, partition) that the op belongs to, None when it is about the whole run."""
    return None if op.source in (Source.RUNNER, Source.NEMESIS) else op.place


def _apply(checker: Checker, ops: Sequence[Op], clean: frozenset[str]) -> list[Anomaly]:
    seen = {op.source for op in ops}
    missing = [group for group in checker.needs if not seen.intersection(group)]
    if missing:
        wanted = " and ".join(" or ".join(source.value for source in group) for group in missing)
        return [_unchecked(checker, ops, f"the history has nothing from {wanted}")]
    if checker.name in clean:
        return []
    try:
        found = checker.rule(ops)
    # Whatever a rule raises, the run is not valid: the other checkers go on and the verdict is unknown.
    except Exception as error:
        return [_unchecked(checker, ops, traceback.format_exception_only(error)[-1].strip())]
    return [replace(anomaly, checker=checker.name) for anomaly in found]


def _unchecked(checker: Checker, ops: Sequence[Op], why: str) -> Anomaly:
    topic, partition = key_of(ops)
    return Anomaly(
        kind=Kind.UNCHECKED,
        topic=topic,
        partition=partition,
        sentence=f"Checker {checker.name} could not judge {topic}-{partition}: {why}.",
        checker=checker.name,
    )
