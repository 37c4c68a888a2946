"""
The high watermark: never falls while a node leads, never passes a log's end, nor what the ISR holds.

A follower's may fall, and a new leader's may start lower than its predecessor's. One process's events are in exact
order; what members of the ISR hold is compared by their own events, with a margin on real machines.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from checkers.definition import Definition
from checkers.facts.moments import anomaly, is_polled, margin_ns, moments, once, states
from checkers.facts.reach import fences_fetches, reach
from checkers.facts.view import at, leaders_log, setup_of, traits
from harness.effect import LOSSY, Effect, nature_of
from harness.events import (
    Corrupt,
    Follower,
    Healed,
    HighWatermark,
    Injection,
    Leader,
    LogStart,
    Read,
    Recovered,
    Truncate,
)
from harness.model import Anomaly, Kind, Op, OpType, events_of

KINDS: Final = (
    Definition(
        kind=Kind.WRONG_HIGH_WATERMARK,
        formula="exists high-watermark(n, to) or leader(n, to) while n leads: to < its high watermark before; or "
        "leader(n, h) or follower(n, h) with h other than what n's process reported before; or "
        "high-watermark(n, to) or leader, follower, recovered (n, to): to > the log end of n; or "
        "high-watermark(n, to) while n leads with ISR I, m in I: to > max{end of m's log until then} "
        "(with KIP-320: in n's epoch); or high-watermark(n, to) and no log ever ended or began at to; or "
        "high-watermark(n, to) while n follows in epoch e (with KIP-320): to > the leader's high watermark in e "
        "until then, and n's log does not begin at to; or read(h), read(k), k < h or final leader's log end < h, "
        "no election and no fault between; "
        "or read(h): h > max{high-watermark}, or h < what its leader had reported before the read",
        words="A leader's high watermark fell, passed the end of a log or what a member of its ISR holds, or "
        "clients were told one that is lower than before.",
        evidence="broker leader, follower, append, truncate, recovered, high-watermark; reads; final logs",
        unchecked="Nothing: without broker events only what clients read is judged.",
        source="Kafka Replication Design V3, F and G; KAFKA-8400; KAFKA-9491",
    ),
)
_KIND: Final = Kind.WRONG_HIGH_WATERMARK


class _Told(NamedTuple):
    """A high watermark that a client was told, with the ops of its request and its answer."""

    invoked: Op
    done: Op
    high: int


def high_watermarks(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find high watermarks that fall at a leader, pass a log's end or the ISR's, or fall between two reads.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each event and each read.

    Source:  Kafka Replication Design V3, F and G; KAFKA-8400 (false progress); KAFKA-9491.
    """
    return once([*_own(ops), *_members(ops), *_sources(ops), *_reads(ops)])


def _own(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield high watermarks that contradict the same process's earlier events."""
    for moment in moments(ops):
        op, event, before, after = moment
        if not isinstance(event, HighWatermark | Leader | Follower | Recovered):
            continue
        high, old = after.high_watermark or 0, before.high_watermark
        lower = old is not None and high < old and before.role == "leader"
        sound = after.end is None or high <= after.end
        if sound and not lower and (high == old or old is None or isinstance(event, HighWatermark)):
            continue  # most events: say nothing of them
        node, epoch = op.process, after.epoch if after.epoch >= 0 else None
        said = f"{node}'s high watermark is {high} at {at(op)}"
        if after.end is not None and high > after.end:
            text = f"{said}, above the end of its log, {after.end}"
            yield anomaly(ops, _KIND, text, [op.index], [node], epoch, ((after.end, high),))
        if old is None or isinstance(event, Recovered):
            continue
        if before.role == "leader" and isinstance(event, HighWatermark | Leader) and high < old:
            text = f"{said}, and was {old} before; it leads, and that of a leader does not fall"
            yield anomaly(ops, _KIND, text, [op.index], [node], epoch, ((high, old),))
        elif isinstance(event, Leader | Follower) and high != old:
            what = "lead" if isinstance(event, Leader) else "follow"
            text = f"{said} when it begins to {what}, and was {old} before"
            yield anomaly(ops, _KIND, text, [op.index], [node], epoch, ((min(high, old), max(high, old)),))


def _members(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield high watermarks of a leader that no copy on a member of its ISR justifies."""
    reached = reach(ops)
    for op, event, before, _ in moments(ops):
        if not isinstance(event, HighWatermark) or before.role != "leader":
            continue
        for member in sorted(before.isr - {op.process}):
            has = reached.by(member, op, before.epoch, "fence_high_watermark")
            if has is not None and has[0] < event.to:
                held = max(has[0], 0)
                text = f"{op.process}'s high watermark passed {event.to} at {at(op)} in epoch {before.epoch}; the "
                text += f"log of {member}, a member of its ISR, had reached {held}"
                text += f" {margin_ns(ops) / 1e9:.1f} s later" if margin_ns(ops) else ""
                text += "" if has[1] else " in that epoch"
                nodes, proof = [op.process, member], [op.index, *has[1]]
                yield anomaly(ops, _KIND, text, proof, nodes, before.epoch, ((held, event.to),))


def _sources(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield high watermarks at which no log ever ended or began, and those of a follower above its leader's."""
    told = moments(ops)
    ends = {0, traits(ops).first_offset, *(moment.after.end for moment in told)}
    ends |= {end for _, cut in events_of(ops, Truncate) for end in (cut.start, cut.to, cut.end)}
    # A follower is good up to where its log is damaged, and says so when it fetches from there.
    ends |= {told_of.base for _, told_of in events_of(ops, Corrupt)}
    # A deletion may move a log's start into a batch. A follower's high watermark is never below its log's start,
    # and may be there as it begins to lead.
    ends |= {move.to for _, move in events_of(ops, LogStart)}
    led: dict[int, tuple[list[int], list[int]]] = {}
    margin, setup = margin_ns(ops), setup_of(ops)
    # Before KIP-320, and in sessions before KAFKA-9338, a leader serves followers that it has in another epoch.
    fenced = setup is not None and fences_fetches(setup.rules)
    for op, _, _, after in told if fenced else ():
        if after.role == "leader" and after.high_watermark is not None:
            whens, highs = led.setdefault(after.epoch, ([], []))
            if not highs or after.high_watermark > highs[-1]:
                whens.append(op.index)
                highs.append(after.high_watermark)
    for op, event, before, _ in told:
        if not isinstance(event, HighWatermark):
            continue
        said = f"{op.process}'s high watermark moved to {event.to} at {at(op)}"
        if event.to not in ends:
            yield anomaly(ops, _KIND, f"{said}, where no log ever ended", [op.index], [op.process], before.epoch)
        elif before.role == "follower" and before.epoch in led:
            whens, highs = led[before.epoch]
            # On real machines the leader's report may be recorded later; only what it never had proves anything.
            place = len(whens) if margin else bisect_right(whens, op.index)
            # A follower's own start may be above that: it deletes below what an earlier leader told it.
            if place and highs[place - 1] < event.to and event.to != _start(ops, op):
                text = f"{said}, and that of its leader in epoch {before.epoch} was {highs[place - 1]}"
                spans = ((highs[place - 1], event.to),)
                yield anomaly(ops, _KIND, text, [op.index], [op.process], before.epoch, spans)


def _start(ops: Sequence[Op], seen: Op) -> int:
    """Return where a node said that its log begins, 0 if it never did."""
    moves = events_of(ops, LogStart)
    return max((move.to for op, move in moves if op.process == seen.process and op.index < seen.index), default=0)


def _reads(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield high watermarks that clients were told, and that fall afterwards or contradict the leader's own."""
    asked: dict[str, Op] = {}
    told: list[_Told] = []
    for op, read in events_of(ops, Read):
        if op.type is OpType.INVOKE:
            asked[op.process] = op
        elif read.high_watermark is not None:
            told.append(_Told(asked.get(op.process, op), op, read.high_watermark))
    if not told:
        return
    changes, ends = _changes(ops), _ends(ops)
    healed = max((op.index for op, _ in events_of(ops, Healed) if op.type is OpType.OK), default=len(ops))
    top: _Told | None = None
    for each in told:
        # Once the cluster is whole again, the leader has caught up with all that clients were told.
        moved = changes if each.invoked.index < healed else ends
        calm = top is not None and not _between(moved, top.done, each.done)
        # Between two looks at the metadata another may have led.
        calm = calm and (moved is ends or not is_polled(ops))
        if top is not None and calm and each.high < top.high and each.invoked.index > top.done.index:
            text = f"a client read high watermark {each.high} at {at(each.done)}, after {top.high} at "
            text += f"{at(top.done)}, "
            proof, span = [top.done.index, each.done.index], ((each.high, top.high),)
            yield anomaly(ops, _KIND, text + "and nothing may have taken a record", proof, (), None, span)
        elif not calm or top is None or each.high > top.high:
            top = each
    yield from _against_replicas(ops, told)
    log, last = leaders_log(ops), told[-1]
    if log is None or log.index < last.done.index or log.end >= last.high:
        return
    calm = last.invoked.index >= healed or not is_polled(ops)
    if calm and bisect_right(changes, log.index) == bisect_right(changes, last.done.index):
        text = f"a client read high watermark {last.high} at {at(last.done)}; the log of the leader, {log.node}, "
        proof = [last.done.index, log.index]
        yield anomaly(ops, _KIND, f"{text}ends at {log.end}", proof, [log.node], None, ((log.end, last.high),))


def _changes(ops: Sequence[Op]) -> list[int]:
    """Return the indexes of elections and of faults, after which a high watermark may lawfully be lower."""
    begun = [moment.op.index for moment in moments(ops) if isinstance(moment.event, Leader | Recovered)]
    faults = [op.index for op, _ in events_of(ops, Injection) if nature_of(op).effect is not Effect.NONE]
    return sorted([*(op.index for op, _ in states(ops)), *faults, *begun])


def _ends(ops: Sequence[Op]) -> list[int]:
    """Return the indexes of what may end committed records: lost power or files, or an unclean election."""
    setup = setup_of(ops)
    unclean = [op.index for op, _ in states(ops)] if setup is None or setup.unclean else []
    return sorted([*unclean, *(op.index for op, _ in events_of(ops, Injection) if nature_of(op).effect in LOSSY)])


def _between(changes: Sequence[int], first: Op, last: Op) -> bool:
    return bisect_right(changes, first.index) < bisect_right(changes, last.index)


def _against_replicas(ops: Sequence[Op], told: Sequence[_Told]) -> Iterator[Anomaly]:
    """Yield high watermarks that no replica ever had, or below the one that the only leader since had before."""
    if next(events_of(ops, HighWatermark), None) is None:
        return  # brokers report no high watermark
    known = [(each.op, each.after.high_watermark, each) for each in moments(ops)]
    highest = max(((high, op) for op, high, _ in known if high is not None), key=lambda k: k[0], default=None)
    led = [
        (op, high)
        for op, high, moment in known
        if high is not None and moment.after.role == "leader" and isinstance(moment.event, HighWatermark | Leader)
    ]
    places = [op.index for op, _ in led]
    last_begun = max((op.index for op, _, moment in known if isinstance(moment.event, Leader)), default=-1)
    for each in told:
        said = f"a client read high watermark {each.high} at {at(each.done)}"
        place = bisect_right(places, each.invoked.index) - 1
        if highest is not None and each.high > highest[0]:
            text = f"{said}; the highest that any replica had is {highest[0]}"
            proof, nodes = [each.done.index, highest[1].index], [highest[1].process]
            yield anomaly(ops, _KIND, text, proof, nodes, None, ((highest[0], each.high),))
        elif place >= 0 and last_begun < each.invoked.index and each.high < led[place][1]:
            op, high = led[place]
            text = f"{said}; {op.process}, the leader, had {high} at {at(op)}"
            yield anomaly(ops, _KIND, text, [each.done.index, op.index], [op.process], None, ((each.high, high),))
