"""
A batch whose bytes changed stays where a fault changed them: no replica takes it from another.

A broker checks what it is sent. So a final log may hold a damaged batch only if a fault flipped a byte of it on
that very disk; that is reported, and lawful. Anywhere else the batch was copied, or written, as if it were whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.rot import rots, rotten
from checkers.facts.view import FinalLog, at, final_logs, key_of, offsets_text
from harness.effect import LOSSY, nature_of
from harness.events import Corrupt, Injection, Truncate
from harness.model import Anomaly, Kind, Op, events_of

KINDS: Final = (
    Definition(
        kind=Kind.CORRUPT,
        formula="a final log of n with a batch whose checksum differs from that of its bytes, and no fault that "
        "may change or lose bytes of n's disk; or corrupt(n) or truncate(n, corrupt), and no such fault",
        words="A replica holds a damaged batch, and no fault damaged it there: it was copied or written so.",
        evidence="log: snapshot; broker: corrupt, truncate; nemesis: faults",
        unchecked="After a loss of power a damaged batch may be a torn write: that log is unreadable.",
        source="Kafka's CORRUPT_MESSAGE (error 2); Record.ensureValid",
    ),
    Definition(
        kind=Kind.BIT_ROT,
        formula="a final log of n with a damaged batch, or a checkpoint that cannot be read, of which a fault "
        "flipped a byte on n",
        words="A batch that a fault damaged is still there at the end: no whole one was copied in its place.",
        evidence="log: snapshot; nemesis: faults",
        unchecked="",
        source="docs/nemeses.md",
    ),
)

# A file's name; or its path, where files of several folders have one name.
_FILE: Final = re.compile(r"[\w./$-]+")
_CHECKSUM: Final = re.compile(r"CRC-32")


def corrupt(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find damaged batches of final logs: those that a fault explains, and those that nothing does.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each log and kind.

    Source:  Apache Kafka, which checks a batch's CRC wherever it is appended.
    """
    return [*_left(ops), *_told(ops)]


def unexplained(ops: Sequence[Op], log: FinalLog) -> list[str]:
    """Return the problems of a final log that neither a flipped byte explains nor `corrupt` finds."""
    return [text for text in log.snapshot.problems if _kind(ops, log.node, text) is None]


def _left(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield the damage that is in the final logs."""
    topic, partition = key_of(ops)
    for node, log in final_logs(ops).items():
        for kind in (Kind.CORRUPT, Kind.BIT_ROT):
            texts = [text for text in log.snapshot.problems if _kind(ops, node, text) is kind]
            if not texts:
                continue
            unread = log.snapshot.unread or ()
            where = f" at {offsets_text(unread)}" if unread else ""
            done = [rot.op.index for rot in rots(ops) if rot.node == node] if kind is Kind.BIT_ROT else []
            why = "as a fault left it" if done else "and no fault did that"
            yield Anomaly(
                kind=kind,
                topic=topic,
                partition=partition,
                ranges=unread,
                nodes=(node,),
                sentence=f"{node}'s log is damaged{where}, {why}: {'; '.join(texts)}.",
                proof=(log.index, *done),
            )


def _told(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield damage that a node has found in its log, or has cut its log for, where no fault has done any."""
    told = [
        (op, (found.base, found.end), f"found {found.path} damaged: {found.what}")
        for op, found in events_of(ops, Corrupt)
    ]
    told += [
        (op, (cut.to, cut.start), f"threw away its log from {cut.to} on as damaged")
        for op, cut in events_of(ops, Truncate)
        if cut.reason == "corrupt"
    ]
    topic, partition = key_of(ops)
    for op, span, text in told:
        if not _may_be_damaged(ops, op.process):
            yield Anomaly(
                kind=Kind.CORRUPT,
                topic=topic,
                partition=partition,
                ranges=(span,),
                nodes=(op.process,),
                sentence=f"{op.process} {text} at {at(op)}, and no fault did that.",
                proof=(op.index,),
            )


def _kind(ops: Sequence[Op], node: str, problem: str) -> Kind | None:
    """Return what a problem of a final log is, None if neither."""
    file = _FILE.match(problem)
    if file is not None and rotten(ops, node, file[0]) is not None:
        return Kind.BIT_ROT
    if _CHECKSUM.search(problem) and not _may_be_damaged(ops, node):
        return Kind.CORRUPT
    return None


def _may_be_damaged(ops: Sequence[Op], node: str) -> bool:
    """Return True if a fault may have changed or lost bytes of the node's disk."""
    return any(node in fault.nodes and nature_of(op).effect in LOSSY for op, fault in events_of(ops, Injection))
