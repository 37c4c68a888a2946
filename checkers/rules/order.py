"""Epochs and offsets rise within a log: no batch has lower offsets or a lower epoch than an earlier batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.view import FinalLog, final_logs, key_of, offsets_text
from harness.events import Batch
from harness.model import Anomaly, Kind, Op

KINDS: Final = (
    Definition(
        kind=Kind.DISORDER,
        formula="batches a, b of one log, a before b: b.base <= a.last, or 0 <= b.epoch < a.epoch; or records "
        "of a batch that do not rise from base to last",
        words="Offsets or epochs decrease within a log.",
        evidence="log: batch",
        unchecked="",
        source='KIP-101, Scenario 2 ("offsets go backwards")',
    ),
)


def order(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find batches of a final log whose offsets or epoch are below those of an earlier batch.

    Batches without an epoch (-1) may be anywhere, as KIP-101's migration leaves them.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each such batch, and for all that follow it and contradict the same earlier batch in the
        same way, with their range.

    Source:  KIP-101, Scenario 2 ("offsets go backwards").
    """
    topic, partition = key_of(ops)
    found: list[Anomaly] = []
    for log in final_logs(ops).values():
        for before, group, complaint in _joined(_complaints(log)):
            index, first = group[0]
            span = (first.base, max(max(batch.last, batch.base) for _, batch in group) + 1)
            found.append(
                Anomaly(
                    kind=Kind.DISORDER,
                    topic=topic,
                    partition=partition,
                    ranges=(span,),
                    nodes=(log.node,),
                    epoch=first.epoch if first.epoch >= 0 else None,
                    sentence=f"{log.node}'s batch at {offsets_text([span])} {complaint}.",
                    proof=tuple(sorted({before, index})),
                )
            )
    return found


_Complaint = tuple[int, list[tuple[int, Batch]], str]


def _joined(complaints: Iterable[tuple[int, tuple[int, Batch], str]]) -> list[_Complaint]:
    """Return complaints, those of batches that follow each other and contradict the same batch as one."""
    groups: list[_Complaint] = []
    for before, here, complaint in complaints:
        if groups and (groups[-1][0], groups[-1][2]) == (before, complaint):
            last = groups[-1][1][-1][1]
            if (last.last + 1, last.epoch) == (here[1].base, here[1].epoch):
                groups[-1][1].append(here)
                continue
        groups.append((before, [here], complaint))
    return groups


def _complaints(log: FinalLog) -> list[tuple[int, tuple[int, Batch], str]]:
    """Return, for each batch out of order: the index of the batch that it contradicts, the batch, a complaint."""
    found: list[tuple[int, tuple[int, Batch], str]] = []
    newest: tuple[int, Batch] | None = None  # the batch with the newest epoch so far
    highest: tuple[int, Batch] | None = None  # the batch with the highest offset so far
    for here in log.batches:
        index, batch = here
        offsets = [offset for offset, _, _ in batch.records]
        if offsets != sorted(set(offsets)) or not all(batch.base <= o <= batch.last for o in offsets):
            found.append((index, here, f"holds records at {offsets}, which do not rise from base to last"))
        if highest is not None and batch.base <= highest[1].last:
            found.append((highest[0], here, f"comes after a batch that ends with offset {highest[1].last}"))
        elif newest is not None and 0 <= batch.epoch < newest[1].epoch:
            found.append((newest[0], here, f"has epoch {batch.epoch}, after a batch of epoch {newest[1].epoch}"))
        if highest is None or batch.last > highest[1].last:
            highest = here
        if newest is None or batch.epoch > newest[1].epoch:
            newest = here
    return found
