"""
Which records polls showed before they were committed: above a high watermark, or not on all of the ISR.

Most polls show only what is below a high watermark that the node which answered has reported as leader; that ends
the question. Of the others the copy is looked up with which the node answered.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from checkers.facts.acked import acked_records, last_fetch, written_by
from checkers.facts.committed import Commit, commit_of, commits_of
from checkers.facts.copies import copied, copies_of
from checkers.facts.fact import fact
from checkers.facts.polls import Polled, Shown, polls
from checkers.facts.reigns import led_at, led_with, margin_after, moments_of, report_high_watermarks, until
from checkers.facts.replica_log import UNKNOWN, Piece, Replay
from harness.model import Op

# The ways in which a read is dirty; each ends a sentence about its offsets.
ABOVE_ITS_OWN: Final = "at or above the high watermark in its own answer"
NOT_PASSED: Final = "which no leader's high watermark had passed"
NOT_LEADING: Final = "which no leader's high watermark had passed, and that node did not lead"
NOT_COPIED: Final = "which a member of the ISR had not copied"


class Dirty(NamedTuple):
    """Records that one poll showed though they were not committed, with the ops that prove it beside the poll."""

    polled: Polled
    way: str
    records: Sequence[Shown]
    proof: tuple[int, ...] = ()
    members: tuple[str, ...] = ()


@fact
def dirty_polls(ops: Sequence[Op]) -> list[Dirty]:
    """Return what polls showed and was not committed, in the order of the answers."""
    found = [*_above_own(ops)]
    if report_high_watermarks(ops):
        found += [*_unpassed(ops), *_uncopied(ops)]
    return sorted(found, key=lambda each: each.polled.ok.index)


@fact
def dirty_records(ops: Sequence[Op]) -> frozenset[Shown]:
    """Return every record that a poll showed before it was committed."""
    return frozenset(record for dirty in dirty_polls(ops) for record in dirty.records)


def _above_own(ops: Sequence[Op]) -> Iterator[Dirty]:
    """
    Yield what is above the high watermark of its own answer.

    Apache Kafka looks at its high watermark before it reads up to it, and it may have risen in between. What its
    brokers do not report is what consumers are told later: a record below that may have been committed by then.

    Source:  Apache Kafka's Partition.readRecords, initialHighWatermark.
    """
    strict = report_high_watermarks(ops)
    told_since, found = -1, list[Dirty]()
    for polled in reversed(polls(ops)):
        high = polled.high_watermark
        above = [record for record in polled.records if record[0] >= (high if strict else max(high, told_since))]
        if above:
            found.append(Dirty(polled, ABOVE_ITS_OWN, above))
        told_since = max(told_since, high)
    yield from reversed(found)


# --- high watermarks -----------------------------------------------------------------------------------------
def _unpassed(ops: Sequence[Op]) -> Iterator[Dirty]:
    """Yield what is above the high watermark of the node that answered, and whose copy there nobody committed."""
    suspects: list[tuple[Polled, list[Shown], tuple[int, ...]]] = []
    for polled in polls(ops):
        if not polled.event.node:  # a client that does not tell whom it asked; it may have asked before its poll
            continue
        reported = [*led_with(ops, polled)]
        passed, op = max(reported, key=lambda each: each[0], default=(0, None))
        rest = [record for record in polled.records if passed <= record[0] < polled.high_watermark]
        if rest:
            suspects.append((polled, rest, () if op is None else (op.index,)))
    held = _held_by(ops, suspects)
    acked = _acked_origins(ops, {record for _, rest, _ in suspects for record in rest})
    for place, (polled, rest, proof) in enumerate(suspects):
        last = until(ops, polled)
        bad = [each for each in rest if not _is_committed(ops, each, held.get(place, ()), acked.get(each), last)]
        if bad:
            yield Dirty(polled, NOT_PASSED if proof else NOT_LEADING, bad, proof)


def _held_by(
    ops: Sequence[Op], suspects: Sequence[tuple[Polled, list[Shown], tuple[int, ...]]]
) -> Mapping[int, Sequence[Piece]]:
    """Return what the node held at the offsets of each suspect when it was asked, and when it had answered."""
    points = sorted(
        (index, place)
        for place, (polled, _, _) in enumerate(suspects)
        for index in (polled.invoked.index, polled.ok.index, until(ops, polled))
    )
    replay = Replay(copies_of(ops).in_order)
    found: dict[int, list[Piece]] = {}
    for index, place in points:
        replay.to(index)
        polled, rest, _ = suspects[place]
        log = replay.logs.get(polled.event.node)
        if log is not None:
            offsets = [offset for offset, _ in rest]
            found.setdefault(place, []).extend(log.slice(min(offsets), max(offsets) + 1))
    return found


def _acked_origins(ops: Sequence[Op], records: set[Shown]) -> Mapping[Shown, int]:
    """Return the leader's append of each of the records that was acknowledged at its offset."""
    found: dict[Shown, int] = {}
    for acked in acked_records(ops) if records else ():
        if (acked.offset, acked.value) in records and (written := written_by(ops, acked)) is not None:
            found[acked.offset, acked.value] = written.index
    return found


def _is_committed(ops: Sequence[Op], record: Shown, held: Sequence[Piece], acked: int | None, last: int) -> bool:
    """Return True if a copy that may have been shown had been committed by that op, or cannot be followed."""
    offset = record[0]
    origins = {origin for first, end, origin in held if first <= offset < end}
    if UNKNOWN in origins:
        return True
    commits = (commit_of(ops, offset, origin) for origin in (*origins, *(() if acked is None else (acked,))))
    return any(commit is not None and commit.index <= last for commit in commits)


# --- members of the ISR --------------------------------------------------------------------------------------
def _uncopied(ops: Sequence[Op]) -> Iterator[Dirty]:
    """Yield what a member of the leader's ISR lacked when the leader committed it, and still when it answered."""
    lacking = _lacking(ops)
    for polled in polls(ops) if lacking else ():
        last, isr = until(ops, polled), _isr_of(ops, polled)
        found: dict[str, list[tuple[Shown, Commit]]] = {}
        for record in polled.records:
            for commit, members in lacking.get((polled.event.node, record[0]), ()):
                for member in members & isr if commit.op.index <= last else ():
                    if _reached(ops, commit, member, last) <= record[0]:
                        found.setdefault(member, []).append((record, commit))
        for member, bad in sorted(found.items()):
            proof = tuple(sorted({commit.op.index for _, commit in bad}))
            yield Dirty(polled, NOT_COPIED, [record for record, _ in bad], proof, (member,))


def _lacking(ops: Sequence[Op]) -> Mapping[tuple[str, int], Sequence[tuple[Commit, frozenset[str]]]]:
    """Return, by leader and offset, the commits of what members of the leader's ISR had not copied, and these."""
    found: dict[tuple[str, int], list[tuple[Commit, frozenset[str]]]] = {}
    for commit in commits_of(ops):
        leader = commit.op.process
        places, known = moments_of(ops)[leader]
        isr = known[bisect_left(places, commit.op.index)].before.isr
        last = margin_after(ops, commit.op)
        reached = {member: _reached(ops, commit, member, last) for member in isr - {leader}}
        first = min(reached.values(), default=commit.end)
        for offset in range(max(first, commit.first), commit.end):
            without = frozenset(member for member, end in reached.items() if end <= offset)
            found.setdefault((leader, offset), []).append((commit, without))
    return found


def _isr_of(ops: Sequence[Op], polled: Polled) -> frozenset[str]:
    """Return the members of the ISR of the node that answered, at every time at which it may have done so."""
    isrs = [moment.after.isr for moment in led_at(ops, polled)]
    return frozenset.intersection(*isrs) if isrs else frozenset()


def _reached(ops: Sequence[Op], commit: Commit, member: str, last: int) -> int:
    """Return up to which offset a member had copied what was committed, by its own events and its fetches."""
    piece = (commit.first, commit.end, commit.origin)
    ends = (each.end for each in copied(ops, piece) if each.node == member and each.op.index <= last)
    return max(*ends, last_fetch(ops, member, commit.op.process, last), commit.first)
