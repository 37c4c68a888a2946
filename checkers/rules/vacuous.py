"""
A random run that proves nothing: no fault took effect, or no acknowledged record could have been lost.

Each partition is asked whether it proves anything, and a run proves nothing if none of them does (`of_run` in
checkers/checker.py). What takes effect counts for all of them. Records of topics that come and go do not count, as
nobody judges whether they were lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.activity import count
from checkers.facts.view import is_churned, run_setup_of
from harness.events import Setup, Step
from harness.model import Anomaly, Kind, Op, events_of

KINDS: Final = (
    Definition(
        kind=Kind.VACUOUS,
        formula="setup.random, and (no fault with an effect that bit, or in each partition that lasts no "
        "ok(produce, acks=all) of the schedule, or a skipped step that is in setup.must_play)",
        words="A random run proves nothing: no fault took effect, no record was acknowledged, or the replay of a "
        "run skipped a step that the run had played.",
        evidence="runner: setup; client: produce; nemesis; fabric",
        unchecked="",
        source="Jepsen: a run without evidence is unknown",
    ),
)


def vacuous(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Return one VACUOUS anomaly if this partition of a random run proves nothing, else [].

    A written scenario is never vacuous. The anomaly is the same for each partition, and of the schedule's.
    """
    first = next(events_of(ops, Setup), None)
    if first is None or not _is_random(first[1]):
        return []
    sentence = _reason(ops)
    if not sentence:
        return []
    op, setup = first
    topic, partition = setup.topic, setup.partition
    return [Anomaly(kind=Kind.VACUOUS, topic=topic, partition=partition, sentence=sentence, proof=(op.index,))]


def _is_random(setup: Setup) -> bool:
    # Older histories do not have the field; their random schedules were named after their seeds.
    return setup.scenario.startswith("seed-") if setup.random is None else setup.random


def _reason(ops: Sequence[Op]) -> str:
    setup, counts = run_setup_of(ops), count(ops)
    needed = setup.must_play if setup is not None else None
    for _, step in events_of(ops, Step) if needed else ():
        if step.skipped and step.line in (needed or ()):
            return (
                f"Line {step.line}, {step.text!r}, was skipped ({step.skipped}), and is played in the simulator."
            )
    if not counts.bitten:
        return "No fault of the schedule bit."
    if is_churned(ops) or not counts.acked:
        return "No record of the schedule was acknowledged by all, so nothing could be lost."
    return ""
