"""Records stand in the log in the order in which they were sent and acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from checkers.definition import Definition
from checkers.facts.acked import Acked, acked_records
from checkers.facts.polls import Polled, Shown, gone
from checkers.facts.reigns import by_reign
from checkers.facts.view import at, key_of, leaders_log, setup_of
from harness.model import Anomaly, Kind, Op

# The index of a record's ok -> the record, and one above it that came before it.
_Pairs: TypeAlias = dict[int, tuple[Acked, Acked]]

KINDS: Final = (
    Definition(
        kind=Kind.REORDERED,
        formula="ok(produce a, o) before invoke(produce b), ok(produce b, p), both in the final log, or both "
        "shown by polls of one leadership: p < o; if clients send once, also invoke(a) before invoke(b), or ok(a) "
        "before ok(b), of one process",
        words="A record that was sent after another was acknowledged has a lower offset; or one producer's "
        "records are not in the order in which it sent them, or in which they were acknowledged.",
        evidence="client: produce, poll; log: batch",
        unchecked="A record that is not at its offset at the end, and that no consumer was shown together with "
        "the other.",
        source="Apache Kafka's documentation: messages of one producer are appended in the order in which they "
        "are sent",
    ),
)


def producer_order(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find records that stand below a record that was acknowledged before, or that their producer sent before.

    They stand so in the final log, or they stood so in the log of one leader, as its polls showed.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each such record, with the highest record that it should follow.

    Source:  Apache Kafka's documentation, guarantees.
    """
    log = leaders_log(ops)
    sent = [acked for acked in acked_records(ops) if acked.invoked < acked.index]
    kept = [
        acked
        for acked in sent
        if log is not None and (held := log.records.get(acked.offset)) is not None and held.value == acked.value
    ]
    found = [_anomaly(ops, before, after) for after, before in _disordered(ops, kept).values()]
    for shown in _shown_together(ops):
        pairs = _disordered(ops, [acked for acked in sent if (acked.offset, acked.value) in shown])
        for after, before in pairs.values():
            if gone(ops).keys() & {(each.offset, each.value) for each in (after, before)}:
                polled = max((shown[each.offset, each.value] for each in (after, before)), key=_answered)
                found.append(_anomaly(ops, before, after, polled))
    return found


def _answered(polled: Polled) -> int:
    return polled.ok.index


def _shown_together(ops: Sequence[Op]) -> Iterator[dict[Shown, Polled]]:
    """Yield what polls of one leadership showed, if some of it is gone: the final log no longer has its order."""
    missing = gone(ops)
    for answered in by_reign(ops).values() if missing else ():
        shown: dict[Shown, Polled] = {}
        for polled in answered:
            for record in polled.records:
                shown.setdefault(record, polled)
        if not missing.keys().isdisjoint(shown):
            yield shown


def _disordered(ops: Sequence[Op], records: Sequence[Acked]) -> _Pairs:
    """Return, of records of one log, each that stands below one that should stand before it."""
    # In real time: what was acknowledged before another record was sent, by any client, stands before it.
    pairs = _pairs(records, _index, _invoked)
    setup = setup_of(ops)
    if setup is not None and setup.sends_once:
        # A client that never sends again has one request under way: its records are sent and answered in turn.
        by_process: dict[str, list[Acked]] = {}
        for acked in records:
            by_process.setdefault(acked.ok.process, []).append(acked)
        for theirs in by_process.values():
            pairs |= _pairs(theirs, _invoked, _invoked) | _pairs(theirs, _index, _index)
    return pairs


def _index(acked: Acked) -> int:
    return acked.index


def _invoked(acked: Acked) -> int:
    return acked.invoked


def _pairs(records: Sequence[Acked], ended: Callable[[Acked], int], begun: Callable[[Acked], int]) -> _Pairs:
    """Return each record that stands below one that ended before it began, with the highest such record."""
    found: _Pairs = {}
    earlier = sorted(records, key=ended)
    place, highest = 0, None
    for acked in sorted(records, key=begun):
        while place < len(earlier) and ended(earlier[place]) < begun(acked):
            if highest is None or earlier[place].offset > highest.offset:
                highest = earlier[place]
            place += 1
        if highest is not None and acked.offset < highest.offset:
            found[acked.index] = acked, highest
    return found


def _anomaly(ops: Sequence[Op], before: Acked, after: Acked, polled: Polled | None = None) -> Anomaly:
    topic, partition = key_of(ops)
    stands = "stands" if polled is None else f"stood, as {polled.said} showed,"
    shown = () if polled is None else (polled.ok.index,)
    return Anomaly(
        kind=Kind.REORDERED,
        topic=topic,
        partition=partition,
        ranges=((after.offset, after.offset + 1),),
        sentence=f"{after.ok.process}'s {after.value!r} {stands} at offset {after.offset}, below {before.value!r} "
        f"of {before.ok.process} at {before.offset}, which came before it, acknowledged at {at(before.ok)}.",
        proof=(before.index, after.invoked, after.index, *shown),
    )
