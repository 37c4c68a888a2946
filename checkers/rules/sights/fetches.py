"""Fetches fit the logs of the followers that sent them, and what their leaders then did."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from checkers.facts.compacted import kept_of
from checkers.facts.fact import fact
from checkers.facts.moments import margin_ns, moments
from checkers.facts.rot import found_at
from checkers.facts.view import at, names_of, setup_of
from checkers.rules.sights.late import late, looked_up_late
from harness.events import Append, Fetch, Fetched, Follower, HighWatermark, IsrChanged, Ready, Started, Truncate
from harness.model import Op, events_of

Break: TypeAlias = tuple[str, str, tuple[int, ...]]

# How long a frame is under way in a simulated run, if no rule delays it.
_WAY_NS: Final = 50_000_000


def answered(ops: Sequence[Op]) -> Iterator[Break]:
    """Yield fetches that were answered and never asked."""
    asked: dict[tuple[str, str], set[int]] = {}
    seen: list[tuple[Op, Fetch | Fetched]] = [*events_of(ops, Fetch), *events_of(ops, Fetched)]
    for op, event in sorted(seen, key=lambda each: each[0].index):
        if isinstance(event, Fetch):
            asked.setdefault(event.link, set()).add(event.offset)
        elif event.offset not in asked.get(event.link, ()):
            node, leader = event.link
            text = f"{leader} answered {node}'s fetch from {event.offset} at {at(op)}, which {node} had not sent"
            yield node, text, (op.index,)


def copied(ops: Sequence[Op]) -> Iterator[Break]:
    """Yield appends of a follower from where it had not fetched from its leader."""
    names, leaders = names_of(ops), dict[str, str]()
    asked: dict[tuple[str, str], set[int]] = {}
    # Where each node's log was begun anew: its first batch may begin before what it asks for (KAFKA-6975).
    anew: dict[str, int] = {}
    seen = [*events_of(ops, Fetch), *events_of(ops, Append), *events_of(ops, Follower), *events_of(ops, Started)]
    seen += events_of(ops, Truncate)
    for op, event in sorted(seen, key=lambda each: each[0].index):
        node = op.process
        match event:
            case Fetch():
                asked.setdefault(event.link, set()).add(event.offset)
            case Started():
                leaders.pop(node, None)
            case Follower():
                leaders[node] = names.get(event.leader, "")
            case Truncate():
                anew[node] = event.to if event.reason == "full" else -1
            case Append() if event.role == "follower" and node in leaders and event.base != anew.get(node):
                begun = asked.get((node, leaders[node]), set[int]())
                if event.base not in begun and not _skipped(ops, begun, event.base):
                    text = f"{node} appended from {event.base} at {at(op)}, and had not fetched from there"
                    yield node, text, (op.index,)


def _skipped(ops: Sequence[Op], asked: Iterable[int], base: int) -> bool:
    """Return True if compaction may have removed all from where a follower had fetched to where it appended."""
    return any(offset < base and not kept_of(ops, offset, base) for offset in asked)


def reached(ops: Sequence[Op]) -> Iterator[Break]:
    """Yield what a leader did for a follower that had not fetched so far: its high watermark, or the ISR."""
    furthest: dict[tuple[str, str], int] = {}
    fetches = events_of(ops, Fetch)
    seen = next(fetches, None)
    for op, event, before, after in moments(ops):
        if before.role != "leader" or not isinstance(event, HighWatermark | IsrChanged):
            continue
        while seen is not None and seen[0].index < op.index:
            link = seen[1].link
            furthest[link] = max(seen[1].offset, furthest.get(link, 0))
            seen = next(fetches, None)
        moved = isinstance(event, HighWatermark)
        need = event.to if isinstance(event, HighWatermark) else before.high_watermark or 0
        for member in sorted((before.isr if moved else after.isr - before.isr) - {op.process}):
            if furthest.get((member, op.process), -1) < need:
                what = f"moved its high watermark to {need}" if moved else f"let {member} into the ISR"
                text = (
                    f"{op.process} {what} at {at(op)}, and {member} had not fetched from there, or beyond, of it"
                )
                yield op.process, text, (op.index,)


class _Ends(NamedTuple):
    """Where a node's log ended, event by event, in parallel lists; and the place of each end's first time."""

    indexes: list[int]
    times_ns: list[int]
    ends: list[int]
    lives: list[int]
    first: dict[int, int]


class _Command(NamedTuple):
    """A report that a node follows: its index, its time, and the leader."""

    at: int
    time_ns: int
    leader: str | None


@fact
def _ends(ops: Sequence[Op]) -> dict[str, _Ends]:
    """Return where each node's log ended, from its own reports."""
    found: dict[str, _Ends] = {}
    for op, event, before, after in moments(ops):
        if after.end is None:
            continue
        theirs = found.setdefault(op.process, _Ends([], [], [], [], {}))
        ends = [after.end]
        if isinstance(event, Truncate):
            ends = [event.start, event.to, event.end]
        elif isinstance(event, Append):
            ends = [event.base, event.end]
        elif before.end == after.end and not isinstance(event, Follower):
            continue
        for end in ends:
            theirs.first.setdefault(end, len(theirs.ends))
            theirs.indexes.append(op.index)
            theirs.times_ns.append(op.time_ns)
            theirs.ends.append(end)
            theirs.lives.append(after.life)
    return found


@fact
def _commands(ops: Sequence[Op]) -> dict[str, list[_Command]]:
    """Return every node's reports that it follows, in index order."""
    names, found = names_of(ops), dict[str, list[_Command]]()
    for op, word in events_of(ops, Follower):
        found.setdefault(op.process, []).append(_Command(op.index, op.time_ns, names.get(word.leader)))
    return found


def asked_from(ops: Sequence[Op]) -> Iterator[Break]:
    """Yield fetches from where no log of that node ended in the processes that it had by then."""
    ends = _ends(ops)
    starts: dict[str, list[int]] = {}
    for op, _ in events_of(ops, Started):
        starts.setdefault(op.process, []).append(op.index)
    margin, setup = margin_ns(ops), setup_of(ops)
    if setup is None or setup.rules.get("truncate_to") == "first_fetch":
        return  # KIP-101's rejected alternative fetches from the high watermark first
    for op, fetch in events_of(ops, Fetch) if ends else ():
        node = fetch.link[0]
        if (theirs := ends.get(node)) is None:
            continue
        if margin:
            upto = bisect_right(theirs.times_ns, op.time_ns + margin)
        else:
            upto = bisect_left(theirs.indexes, op.index)
            commands = _sent_under(ops, node, op)
            since = bisect_left(theirs.indexes, commands[0].at) if commands else 0
            follows = any(fetch.link[1] == each.leader for each in commands)
            now = upto > 0 and theirs.ends[upto - 1] == fetch.offset
            if follows and (now or fetch.offset in theirs.ends[max(0, since - 1) : upto]):
                continue  # most fetches: say nothing of them
        if found_at(ops, node, fetch.offset, op.time_ns + margin):
            continue  # it asks for a damaged batch again, before it throws its own away
        life = bisect_left(starts.get(node, ()), op.index)
        first = theirs.first.get(fetch.offset)
        said = f"{node} fetched from {fetch.offset} of {fetch.link[1]} at {at(op)}"
        # A process that was killed may have asked before it reported; what the next one found says so.
        if first is None or first >= upto or theirs.lives[first] > life:
            yield node, f"{said}, where its log had never ended", (op.index,)
        elif not margin and not late(ops, fetch.link) and not _waited(ops, theirs, life, fetch, op):
            why = "where its log no longer ended" if follows else "which it did not follow"
            yield node, f"{said}, {why}", (op.index, *(each.at for each in commands))


def _sent_under(ops: Sequence[Op], node: str, seen: Op) -> list[_Command]:
    """Return the commands of which a fetch may be seen at an op: the last two, and those just before it."""
    theirs = _commands(ops).get(node, [])
    upto = bisect_left(theirs, seen.index, key=itemgetter(0))
    recent = upto - bisect_left(theirs, seen.time_ns - _WAY_NS, hi=upto, key=itemgetter(1))
    return theirs[max(0, upto - max(2, recent + 1)) : upto]


def _waited(ops: Sequence[Op], theirs: _Ends, life: int, fetch: Fetch, seen: Op) -> bool:
    """Return True if a fetch fits a time when its process followed that leader, and could not connect at once."""
    node, leader = fetch.link
    commands = [each for each in _commands(ops).get(node, ()) if each.at < seen.index]
    for command, following in pairwise(commands):
        then = slice(bisect_left(theirs.indexes, command.at), bisect_left(theirs.indexes, following.at))
        fits = command.leader == leader and (fetch.offset, life) in zip(
            theirs.ends[then], theirs.lives[then], strict=True
        )
        if fits and (looked_up_late(ops, node, command.time_ns, seen) or _listened(ops, leader, command, seen)):
            return True
    return False


def _listened(ops: Sequence[Op], leader: str, since: _Command, seen: Op) -> bool:
    """Return True if a leader's new process began to serve between a command and an op: frames wait for that."""
    return any(since.at < op.index < seen.index for op, _ in events_of(ops, Ready) if op.process == leader)
