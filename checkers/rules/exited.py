"""A broker that exits by itself has failed, without a fault of the nemesis; the line that it printed says why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.fact import fact, select
from checkers.facts.view import at, key_of
from harness.effect import DOWN, nature_of
from harness.events import Injection, Printed
from harness.model import Anomaly, Kind, Op, Source, events_of

_PRINTED: Final = "printed"


KINDS: Final = (
    Definition(
        kind=Kind.EXITED,
        formula="printed(n, what=exiting) in a process of n",
        words="A broker exited by itself, for the reason that it printed.",
        evidence="broker: printed",
        unchecked="",
        source="KAFKA-3924",
    ),
)


def exited(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find brokers that printed that they exit, whether the process ended or hung in its exit.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each process that printed such a line, however often it repeated it.

    Source:  KAFKA-3924: a follower whose log is longer than its leader's, up to Apache Kafka 2.0.
    """
    topic, partition = key_of(ops)
    words, _ = _replayed(ops)
    return [
        Anomaly(
            kind=Kind.EXITED,
            topic=topic,
            partition=partition,
            nodes=(op.process,),
            sentence=f"{op.process} ended itself at {at(op)}: {printed.line.rstrip('.')}.",
            proof=(op.index,),
        )
        for op, printed in words
    ]


@fact
def gone(ops: Sequence[Op]) -> frozenset[str]:
    """Return the nodes that exited by themselves and were not restarted: their files are not a replica's log."""
    return _replayed(ops)[1]


def exits(ops: Sequence[Op]) -> list[tuple[Op, Printed]]:
    """Return every line in which a node reports that it exits."""
    return [(op, printed) for op, printed in events_of(ops, Printed) if printed.what == "exiting"]


@fact
def _replayed(ops: Sequence[Op]) -> tuple[list[tuple[Op, Printed]], frozenset[str]]:
    """Return the first exit line of each process that exited by itself, and the nodes that were not restarted."""
    words: list[tuple[Op, Printed]] = []
    ending: set[str] = set()
    printed_lines = select(ops, Source.BROKER, _PRINTED)
    if not printed_lines:
        return words, frozenset()
    for op in sorted([*select(ops, Source.NEMESIS), *printed_lines], key=lambda op: op.index):
        match op.event:
            case Injection(nodes=nodes) if nature_of(op).heals & DOWN:
                ending.difference_update(nodes)
            case Printed(what="exiting") as printed if op.process not in ending:
                ending.add(op.process)
                words.append((op, printed))
    return words, frozenset(ending)
