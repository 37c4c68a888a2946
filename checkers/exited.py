"""A broker that ends itself has failed, though nobody took it down; the line that it printed says why."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.view import at, key_of
from harness.model import Anomaly, Kind, Op


def exited(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find brokers that said that they end themselves, whether the process went or hung in its exit.

    Shapes:  ops of one partition and the global ones. Returns one anomaly for every time that a node said so, but
             for repetitions by one process.
    Source:  KAFKA-3924: a follower whose log is longer than its leader's, up to Apache Kafka 2.0.
    """
    topic, partition = key_of(ops)
    found: list[Anomaly] = []
    ending: set[str] = set()
    for op in ops:
        if op.f == "restart":
            ending -= set(op.value["nodes"])
        elif is_exit(op) and op.process not in ending:
            ending.add(op.process)
            text = f"{op.process} ended itself at {at(op)}: {str(op.value['line']).rstrip('.')}."
            found.append(
                Anomaly(
                    kind=Kind.EXITED,
                    topic=topic,
                    partition=partition,
                    nodes=(op.process,),
                    sentence=text,
                    proof=(op.index,),
                )
            )
    return found


def is_exit(op: Op) -> bool:
    """Whether a node says that it ends itself."""
    return op.f == "printed" and bool(op.value["what"] == "exiting")
