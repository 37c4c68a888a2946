"""
A run whose schedule the live check ended is never valid: a rule finds the violation that it saw, or it is unknown.

The live check (checkers/live) makes no verdict. What it saw counts once another rule proves a violation by one of
the same ops, or by an acknowledgement at the same offsets; `check` then leaves out what is said here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.acked import acked_records
from checkers.facts.moments import anomaly
from checkers.facts.view import at, key_of, names_place, run_setup_of
from harness.events import ScheduleStopped
from harness.model import Anomaly, Kind, Op, events_of

KINDS: Final = (
    Definition(
        kind=Kind.UNCHECKED,
        formula="stopped(rule, proof, offsets), and no violation whose proof names stopped, an op of that proof "
        "or an ok(produce r, o) with o in offsets",
        words="The live check ended the schedule at a violation, and no rule finds it in the whole history.",
        evidence="runner: stopped; client: produce",
        unchecked="It is the finding itself.",
        source="Jepsen: a run without evidence is unknown",
    ),
)


def stopped(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find schedules that the live check ended; `check` drops those whose violation another rule proves.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One UNCHECKED anomaly for each.

    Source:  Jepsen: a run without evidence is unknown.
    """
    return list(_stops(ops))


def _stops(ops: Sequence[Op]) -> Iterator[Anomaly]:
    for op, seen in events_of(ops, ScheduleStopped):
        if not _is_here(ops, seen):
            continue
        about = [
            acked.index
            for acked in acked_records(ops)
            if any(first <= acked.offset < end for first, end in seen.offsets)
        ]
        text = f"the schedule ended at {at(op)}, as the live check saw {seen.rule}, and no rule finds that: "
        proof = (op.index, *seen.proof, *about)
        yield anomaly(ops, Kind.UNCHECKED, f"{text}{seen.sentence.rstrip('.')}", proof, ranges=seen.offsets)


def _is_here(ops: Sequence[Op], seen: ScheduleStopped) -> bool:
    """Return True if it is about this partition, or about none that the run has, so that every part says so."""
    if (seen.topic, seen.partition) == key_of(ops):
        return True
    setup = run_setup_of(ops)
    return setup is None or not names_place(setup, seen.topic, seen.partition)
