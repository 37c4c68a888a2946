"""A consumer is shown only what is committed: below a high watermark, and on every member of the ISR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.moments import anomaly
from checkers.facts.uncommitted import Dirty, dirty_polls
from checkers.facts.view import offsets_text
from harness.model import Anomaly, Kind, Op, ranges_of

KINDS: Final = (
    Definition(
        kind=Kind.READ_UNCOMMITTED,
        formula="ok(poll P of n, high watermark h) at k, (o, r) in P: o >= h; or n led with high watermarks <= o "
        "from invoke(P) to k, or did not lead, and no commit(r', o) before k of a record r' that n had at o then; "
        "or n committed r with ISR I, m in I until k, and m had no append of r before k and no fetch above o",
        words="A consumer was shown a record that was not committed: at or above the high watermark in its own "
        "answer, above every high watermark that a leader had reported, or before a member of the ISR had copied "
        "it. A leader that was deposed and has not heard of it may show what was committed; so may no other.",
        evidence="client: poll; broker: high-watermark, leader, follower, append, truncate, recovered, isr; "
        "fabric: fetch",
        unchecked="Brokers that emit no events: then a poll is compared with its own high watermark alone. A copy "
        "of unknown origin proves nothing.",
        source="Kafka's design: consumers read below the high watermark; KAFKA-9196, KAFKA-9835",
    ),
)


def read_uncommitted(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find records that polls showed before they were committed.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each node that answered and each way in which its records were not committed.

    Source:  Kafka's design, consumers read below the high watermark; Jepsen, dirty read.
    """
    groups: dict[tuple[str, str, tuple[str, ...]], list[Dirty]] = {}
    for dirty in dirty_polls(ops):
        groups.setdefault((dirty.polled.event.node, dirty.way, dirty.members), []).append(dirty)
    return [_anomaly(ops, group) for group in groups.values()]


def _anomaly(ops: Sequence[Op], group: Sequence[Dirty]) -> Anomaly:
    first = group[0]
    node, members = first.polled.event.node, first.members
    offset, value = first.records[0]
    ranges = ranges_of(offset for dirty in group for offset, _ in dirty.records)
    text = f"{first.polled.said} showed {value!r} at offset {offset}, {first.way}"
    text += f": {members[0]}" if members else ""
    if ranges != ((offset, offset + 1),):
        text += f"; so are its {offsets_text(ranges)} in the answers to consumers"
    proof = {index for dirty in group for index in (dirty.polled.ok.index, *dirty.proof)}
    return anomaly(ops, Kind.READ_UNCOMMITTED, text, proof, [node, *members], None, ranges)
