"""A consumer reads on: each poll begins where the one before it ended, and nothing between is left out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from checkers.definition import Definition
from checkers.facts.compacted import may_be_gap
from checkers.facts.fact import fact
from checkers.facts.moments import anomaly
from checkers.facts.polls import Polled, first_polls
from checkers.facts.view import at, leaders_log, offsets_text
from harness.events import Poll
from harness.model import Anomaly, Kind, Op, OpType, events_of, ranges_of

KINDS: Final = (
    Definition(
        kind=Kind.POLL_SKIP,
        formula="ok(poll P) of c, o < o' neighbours in P, or o the offset before c's position and o' the first of "
        "P: o < x < o', and the final leader's log or another poll has a record at x; c's position is the end of "
        "its poll before, or what it was assigned (`sought`)",
        words="A consumer was not shown a record that lies between two that it was shown, or between its position "
        "and the first that came.",
        evidence="client: poll; log: batch",
        unchecked="An offset at which neither the final log nor any poll has a record, as after compaction.",
        source="Jepsen: kafka, poll-skip; KAFKA-6361",
    ),
    Definition(
        kind=Kind.NONMONOTONIC_POLL,
        formula="ok(poll P) of c: offsets of P do not rise, or one is below the position that P asked for, or "
        "below the end of c's poll before, and c was not assigned its position in between (`sought`)",
        words="A consumer was shown a record again, or one from before its position, without a seek.",
        evidence="client: poll",
        unchecked="",
        source="Jepsen: kafka, nonmonotonic-poll",
    ),
)


class _Wrong(NamedTuple):
    """What is wrong with one poll: the text, the offsets, and the poll before it."""

    kind: Kind
    text: str
    offsets: Sequence[int]
    polled: Polled
    before: Op | None


class _Consumer:
    """
    One consumer's position.

    Attributes:
        asked: the invoke of its poll that is under way.
        position: the offset up to which it has read, None before its first poll.
        last: the answer up to which it has read, None since it was assigned a position.
    """

    def __init__(self) -> None:
        self.asked: Op | None = None
        self.position: int | None = None
        self.last: Op | None = None

    def asks(self, op: Op, event: Poll) -> None:
        """Begin a poll; a position that is assigned is where the consumer reads on, whatever came before."""
        self.asked = op
        if event.sought or self.position is None:
            self.position, self.last = event.position, None

    def read(self, op: Op, event: Poll) -> None:
        """Take a poll's answer."""
        if event.records:
            self.position, self.last = event.records[-1][0] + 1, op


def poll_order(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find consumers that go back or skip.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each consumer and each way, with all offsets.

    Source:  Jepsen's checks of Kafka, poll-skip and nonmonotonic-poll.
    """
    consumers: dict[str, _Consumer] = {}
    groups: dict[tuple[str, Kind], list[_Wrong]] = {}
    for op, event in events_of(ops, Poll):
        consumer = consumers.setdefault(op.process, _Consumer())
        if op.type is OpType.INVOKE or consumer.asked is None:
            consumer.asks(op, event)
        if op.type is OpType.OK:
            polled = Polled(consumer.asked or op, op, event)
            for wrong in (*_back(polled, consumer), *_skips(ops, polled, consumer)):
                groups.setdefault((op.process, wrong.kind), []).append(wrong)
            consumer.read(op, event)
    return [_anomaly(ops, group) for group in groups.values()]


def _back(polled: Polled, consumer: _Consumer) -> Iterator[_Wrong]:
    records, asked = polled.records, polled.event.position
    floor = max(asked, consumer.position or 0)
    below = [offset for offset, _ in records if offset < floor]
    if below:
        text = f"below offset {floor}, up to which it had read"
        if consumer.last is None or floor == asked:
            text = f"below its position, {floor}"
        yield _Wrong(Kind.NONMONOTONIC_POLL, f"went back: it showed {{}}, {text}", below, polled, consumer.last)
    falls = [later for (earlier, _), (later, _) in pairwise(records) if later <= earlier and later >= floor]
    if falls:
        yield _Wrong(Kind.NONMONOTONIC_POLL, "does not rise to {}", falls, polled, None)


def _skips(ops: Sequence[Op], polled: Polled, consumer: _Consumer) -> Iterator[_Wrong]:
    records = polled.records
    if not records:
        return
    place = polled.event.position if consumer.position is None else min(consumer.position, polled.event.position)
    gaps = [(place, records[0][0])] if place < records[0][0] else []
    if records[-1][0] - records[0][0] != len(records) - 1:
        gaps += [(one + 1, other) for (one, _), (other, _) in pairwise(records) if one + 1 < other]
    own = {offset for offset, _ in records} if gaps else frozenset[int]()
    skipped = [offset for first, end in gaps for offset in _known_between(ops, first, end) if offset not in own]
    skipped = [offset for offset in skipped if not may_be_gap(ops, offset, polled.ok.time_ns)]
    if skipped:
        text = f"skipped {{}}: it had read up to {place}"
        yield _Wrong(Kind.POLL_SKIP, text, skipped, polled, consumer.last)


def _known_between(ops: Sequence[Op], first: int, end: int) -> Sequence[int]:
    known = _known(ops)
    return known[bisect_left(known, first) : bisect_left(known, end)]


@fact
def _known(ops: Sequence[Op]) -> Sequence[int]:
    """Return the offsets at which the last leader's log or a poll has a record that is no marker."""
    log = leaders_log(ops)
    found = {offset for offset, _ in first_polls(ops)}
    if log is not None:
        for _, batch in log.batches:
            found.update(offset for offset, _, _ in batch.records if offset >= log.start and not batch.control)
    return sorted(found)


def _anomaly(ops: Sequence[Op], group: Sequence[_Wrong]) -> Anomaly:
    first = group[0]
    own = offsets_text(ranges_of(first.offsets))
    ranges = ranges_of(offset for wrong in group for offset in wrong.offsets)
    text = f"{first.polled.said} {first.text.format(own)}"
    text += f", at {at(first.before)}" if first.before is not None else ""
    if len(group) > 1:
        text += f"; {len(group)} polls of {first.polled.ok.process} were so, about {offsets_text(ranges)}"
    proof = {each.polled.ok.index for each in group} | {each.before.index for each in group if each.before}
    return anomaly(ops, first.kind, text, proof, {each.polled.event.node for each in group}, None, ranges)
