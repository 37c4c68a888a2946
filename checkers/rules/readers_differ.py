"""All readers are shown the same record at an offset, unless a fault that permits its loss lies between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final, NamedTuple

from checkers.definition import Definition
from checkers.facts.compacted import may_be_removed
from checkers.facts.deleted import deleted_before
from checkers.facts.moments import anomaly
from checkers.facts.polls import Shown, first_polls, shown_by_reads, twice_polled, values_at
from checkers.facts.sent import sent_values
from checkers.facts.uncommitted import dirty_records
from checkers.facts.view import at, leaders_log, offsets_text
from checkers.rules.read_loss import read_losses
from harness.model import VERDICT_OF, Anomaly, Kind, Op, Verdict, ranges_of

KINDS: Final = (
    Definition(
        kind=Kind.INCONSISTENT_OFFSETS,
        formula="ok(poll P), ok(poll or read Q), P[o] != Q[o], and no permitted, unchecked or uncommitted loss of "
        "either record at o, nor a deletion past o of one that is not there at the end",
        words="Two consumers were shown different records at one offset, or one consumer was at two times, and no "
        "permitted loss explains it.",
        evidence="client: poll, read; and those of the losses",
        unchecked="An offset of which the loss of a record is unchecked.",
        source="Jepsen: kafka, inconsistent-offsets; KIP-101, Motivation",
    ),
)


class _Showing(NamedTuple):
    """The op that showed a record first, in words."""

    place: int
    said: str


def readers_differ(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find offsets at which consumers were shown different records.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for all offsets at which the same two ops differ.

    Source:  Jepsen's checks of Kafka, inconsistent-offsets.
    """
    groups: dict[tuple[_Showing, _Showing], list[int]] = {}
    example: dict[tuple[_Showing, _Showing], tuple[str, str]] = {}
    polled = first_polls(ops)
    for offset, values in sorted(values_at(chain(polled, shown_by_reads(ops))).items()):
        shown = [(offset, value) for value in values]
        if not any(each in polled for each in shown) or any(_is_excused(ops, each) for each in shown):
            continue
        first, second = sorted(shown, key=lambda each: _first(ops, each).place)[:2]
        pair = (_first(ops, first), _first(ops, second))
        groups.setdefault(pair, []).append(offset)
        example.setdefault(pair, (first[1], second[1]))
    return [_anomaly(ops, pair, offsets, example[pair]) for pair, offsets in groups.items()]


def _first(ops: Sequence[Op], shown: Shown) -> _Showing:
    """Return the first op that showed a record: a poll rather than a final read."""
    polled = first_polls(ops).get(shown)
    if polled is not None:
        return _Showing(polled.ok.index, polled.said)
    op = shown_by_reads(ops)[shown]
    return _Showing(op.index, f"{op.process}'s read at {at(op)}")


def _is_excused(ops: Sequence[Op], shown: Shown) -> bool:
    """Return True if a lawful loss may explain that others were shown another record, or another rule names it."""
    log, sent = leaders_log(ops), sent_values(ops).get(shown[1])
    if log is None or shown[0] < log.start or sent is None or not sent.appends_max:
        return True
    if shown in dirty_records(ops) or shown[1] in twice_polled(ops):
        return True
    held = log.records.get(shown[0])
    gone = held is None or held.value != shown[1]
    if gone and shown[0] < deleted_before(ops):
        return True  # whether it was lost, or deleted before, is not told any more
    judged = read_losses(ops).get(shown)
    if judged is not None:
        return VERDICT_OF[judged.loss.kind] is not Verdict.INVALID
    if gone and may_be_removed(ops, *shown):
        return True  # whether it was lost, or compacted, is not told any more
    return gone and shown not in first_polls(ops)


def _anomaly(
    ops: Sequence[Op], pair: tuple[_Showing, _Showing], offsets: Sequence[int], values: tuple[str, str]
) -> Anomaly:
    first, second = pair
    ranges = ranges_of(offsets)
    text = f"{first.said} showed {values[0]!r} at offset {offsets[0]}, "
    text += f"and {second.said} showed {values[1]!r} there"
    if len(offsets) > 1:
        text += f"; they differ at {offsets_text(ranges)}"
    return anomaly(ops, Kind.INCONSISTENT_OFFSETS, text, (first.place, second.place), (), None, ranges)
