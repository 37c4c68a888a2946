"""
Who must still have a promised record, if the protocol is right: what is seen where brokers report nothing.

A promise puts the record on every member of the ISR. From then on a replica keeps it, until a fault may have taken
it: its own power loss, or a leader that need not have it and that it follows. A replica that must have the record
and is seen without it lost it by no fault. Every doubt is an excuse: a doubt proves nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Final

import numpy as np

from checkers.facts.assured import Assured, assured_records
from checkers.facts.durable import flushed
from checkers.facts.fact import fact
from checkers.facts.keeping import Keeping, Standing, Why
from checkers.facts.moments import margin_ns
from checkers.facts.refuters import Ints, Refuters, refuters
from checkers.facts.seen import Away, Back, Deleted, Lead, Obeyed, Seen, timeline
from checkers.facts.sightings import Sighting, last_answer
from checkers.facts.view import at, final_logs, setup_of
from harness.events import Snapshot
from harness.model import Op, events_of


class Keepers:
    """Every replica's standing over time, about one promised record."""

    def __init__(self, ops: Sequence[Op], assured: Assured) -> None:
        """Follow the replicas through the history."""
        setup = setup_of(ops)
        self.assured = assured
        self._ops = ops
        self._margin = margin_ns(ops)
        self._offset = assured.acked.offset
        self._now: dict[str, Keeping] = {}
        self._past: dict[str, list[Keeping]] = {}
        self._leading: set[str] = set()
        self._led: list[tuple[int, frozenset[str]]] = []
        self._down: set[str] = set()
        self._last: dict[str, Sighting] = {}
        self._back: dict[str, int] = {}
        for node in setup.replicas if setup else ():
            self._set(node, Keeping(since_ns=-1, standing=Standing.EXCUSED, why=Why.OUTSIDE))
        self._begun = False
        others = refuters(ops)
        rest = others.of(assured)
        places, done = others.places[rest], 0
        for place, seen in enumerate(timeline(ops)):
            if done < len(rest) and places[done] <= place:
                end = int(np.searchsorted(places, place, side="right"))
                self._refuted(others, rest[done:end])
                done = end
            self._begin(seen.time_ns)
            self._take(seen)
        self._refuted(others, rest[done:])
        self._begin(assured.begun_ns)
        self._read_logs()

    @property
    def nodes(self) -> tuple[str, ...]:
        """The replicas."""
        return tuple(self._now)

    def at(self, node: str, time_ns: int) -> Keeping | None:
        """Return the node's standing at that time, None if it is no replica."""
        past = self._past.get(node, [])
        place = bisect_right(past, time_ns, key=_SINCE)
        return past[place - 1] if place else None

    def before(self, node: str, leader: str, time_ns: int) -> Keeping | None:
        """Return the node's standing at that time, as it was before the node may have followed that leader."""
        past = self._past.get(node, [])
        place = bisect_right(past, time_ns, key=_SINCE)
        while place > 1 and past[place - 1].why is Why.FOLLOWED and past[place - 1].leader == leader:
            place -= 1
        return past[place - 1] if place else None

    def at_end(self, node: str) -> Keeping | None:
        """Return the node's last standing."""
        return self._now.get(node)

    def stays_due(self, node: str, since_ns: int) -> bool:
        """Return True if no fault may have taken the record from the node from that time to the end."""
        now = self.at(node, since_ns)
        later = [each for each in self._past.get(node, ()) if each.since_ns > since_ns]
        return now is not None and all(each.standing is not Standing.EXCUSED for each in (now, *later))

    def seen_gone(self, node: str, since_ns: int, until_ns: int | None) -> bool:
        """Return True if the node was seen without the record, by no fault, at some time between the two."""
        first = self.at(node, since_ns)
        later = [each for each in self._past.get(node, ()) if each.since_ns > since_ns]
        between = [each for each in later if until_ns is None or each.since_ns < until_ns]
        return any(each is not None and each.standing is Standing.GONE for each in (first, *between))

    def gone(self) -> Iterator[tuple[str, Keeping]]:
        """Yield each time that a node was seen without the record by no fault, in the order of nodes."""
        for node, past in sorted(self._past.items()):
            yield from ((node, each) for each in past if each.standing is Standing.GONE)

    # --- one thing after another -----------------------------------------------------------------------------
    def _begin(self, now: int) -> None:
        """The record is promised once it was asked for."""
        assured = self.assured
        if self._begun or now < assured.begun_ns:
            return
        self._begun = True
        for node in sorted(assured.members & self._now.keys() - self._down):
            due = Keeping(since_ns=assured.begun_ns, standing=Standing.DUE, begun=assured.acked.index)
            self._set(node, due)
        for leader in sorted(self._leading):
            self._lead(leader, assured.begun_ns)

    def _take(self, seen: Seen) -> None:
        match seen.event:
            case Lead() as lead:
                self._elect(lead, seen.time_ns)
            case Away(node=node):
                self._down.add(node)
                if seen.event.power_lost and not self._durable(node, seen.event.op):
                    self._excuse(node, Why.POWER, seen.time_ns, seen.event.op)
            case Back(node=node):
                self._down.discard(node)
                self._last.pop(node, None)
                self._back[node] = seen.time_ns
                self._lead(node, seen.time_ns)
                for leader in sorted(self._leading):
                    self._follow(node, leader, seen.time_ns)
            case Deleted(node=node, op=op):
                self._excuse(node, Why.DELETED, seen.time_ns, op)
            case Obeyed(node=node, leader=leader):
                self._follow(node, leader, seen.time_ns)
            case Sighting() as sighting:
                self._see(sighting)

    def _refuted(self, others: Refuters, rest: Ints) -> None:
        """Take those other acknowledgements into account, one after another; nothing is seen between them."""
        while len(rest):
            other = others.assured[rest[0]]
            self._begin(other.acked.ok.time_ns)
            self._refuted_by(other)
            if any(map(self._is_due, other.members)):
                rest = rest[1:]
            else:
                # None of these members has the record any more: what else they promised says no more.
                rest = rest[others.groups[rest] != others.groups[rest[0]]]

    def _elect(self, lead: Lead, now: int) -> None:
        leader, state = lead.state.leader, lead.state
        if not lead.alone:
            for node in (*sorted(lead.missed), leader):  # who led in a state that the watch missed is not known
                if node is not None:
                    self._leading.add(node)
                    self._lead(node, now)
        else:
            self._leading = set() if leader is None else {leader}
        self._led.append((now, frozenset(self._leading)))
        if not lead.alone or leader is None or not self._is_due(leader):
            return
        for node in state.isr:
            if node in state.joined:
                self._joined(node, leader, state.op)
            now_is = self._now.get(node)
            settled = state.op.time_ns - self._margin >= self.assured.acked.ok.time_ns
            if settled and now_is is not None and now_is.why is Why.OUTSIDE and not now_is.leader:
                self._set(node, Keeping(since_ns=now, standing=Standing.DUE, begun=state.op.index))

    def _joined(self, node: str, leader: str, op: Op) -> None:
        """A follower joins the ISR whose last fetch, from below the record, was not answered yet."""
        last = self._last.get(node)
        if last is None or node in self._down or last.leader != leader or last.end > self._offset:
            return
        answered = last_answer(self._ops, (node, leader), op.index)
        if answered is None or last.op.index < answered:
            return
        if last.sent_ns > self.assured.acked.ok.time_ns and not self._is_gone(node):
            self._lose(node, op.time_ns, op, f"joined the ISR at {at(op)} without it")

    def _see(self, sighting: Sighting) -> None:
        node, leader, offset = sighting.node, sighting.leader, self._offset
        before, now = self._last.get(node), self._now.get(node)
        time_ns, told = sighting.op.time_ns, self.assured.acked.ok.time_ns
        if node in self._down or self._was_back(node, time_ns):
            return  # a process that has ended sent it
        self._follow(node, leader, time_ns)
        if not self._led_at(leader, sighting.sent_ns) or self._was_back(leader, sighting.sent_ns):
            return  # it may have waited until that broker was there again
        if sighting.fresh:
            self._last[node] = sighting
        if now is None or not self._is_due(leader):
            return
        if sighting.end > offset:
            rose = before is not None and before.leader == leader and before.end <= offset
            kept = now.why is Why.POWER and not now.leader
            if sighting.fresh and now.standing is not Standing.DUE and (rose or kept):
                self._set(node, Keeping(since_ns=time_ns, standing=Standing.DUE, begun=sighting.op.index))
        elif now.standing is Standing.DUE and sighting.sent_ns > max(told, now.since_ns):
            text = f"fetched from offset {sighting.end} of {leader} at {at(sighting.op)}, after it had it"
            self._lose(node, time_ns, sighting.op, text)

    def _refuted_by(self, other: Assured) -> None:
        """Another record is acknowledged at or below the offset: whoever promised that one lacks this one."""
        acked = other.acked
        due = {node: self._now[node] for node in sorted(other.members) if self._is_due(node)}
        for node, now in due.items():
            if now.since_ns < other.begun_ns:
                text = f"has {acked.name} at offset {acked.offset}, acknowledged at {at(acked.ok)}"
                self._lose(node, acked.ok.time_ns, acked.ok, text)

    def _read_logs(self) -> None:
        """A replica that must have the record at the end has it in its final log."""
        read = {op.process: op for op, _ in events_of(self._ops, Snapshot)}
        for node, log in final_logs(self._ops).items():
            now = self._now.get(node)
            if now is None or now.standing is not Standing.DUE:
                continue
            if log.snapshot.problems or log.start > self._offset:
                continue  # it could not be read, or retention removed the record
            held, op = log.records.get(self._offset), read[node]
            if held is None or held.value != self.assured.acked.value:
                self._lose(node, op.time_ns, op, "lacks it in its final log, though no fault can have taken it")

    # --- standings -------------------------------------------------------------------------------------------
    def _set(self, node: str, keeping: Keeping) -> None:
        self._now[node] = keeping
        self._past.setdefault(node, []).append(keeping)

    def _lose(self, node: str, now: int, op: Op, text: str) -> None:
        self._set(node, Keeping(since_ns=now, standing=Standing.GONE, op=op, text=text))
        if node in self._leading:
            self._lead(node, now)

    def _excuse(self, node: str, why: Why, now: int, op: Op) -> None:
        if node in self._now and not self._is_gone(node):
            self._set(node, Keeping(since_ns=now, standing=Standing.EXCUSED, why=why, op=op))

    def _lead(self, leader: str, now: int) -> None:
        """Excuse all that may follow the leader, if it leads and need not have the record."""
        if leader in self._leading and leader not in self._down:
            for node in sorted(self._now.keys() - {leader} - self._down):
                self._follow(node, leader, now)

    def _follow(self, node: str, leader: str, now: int) -> None:
        was = self._now.get(node)
        if was is None or node == leader or leader in self._down or self._is_due(leader):
            return
        if was.standing is Standing.DUE:
            self._set(node, Keeping(since_ns=now, standing=Standing.EXCUSED, why=Why.FOLLOWED, leader=leader))
        elif was.standing is Standing.EXCUSED and not was.leader:
            self._set(node, replace(was, since_ns=now, leader=leader))

    def _is_due(self, node: str) -> bool:
        return node in self._now and self._now[node].standing is Standing.DUE

    def _is_gone(self, node: str) -> bool:
        return self._now[node].standing is Standing.GONE

    def _was_back(self, node: str, now: int) -> bool:
        """Return True if the node has just started, so that a frame from before may still be on its way."""
        return now < self._back.get(node, -_WIRE_NS) + _WIRE_NS

    def _led_at(self, node: str, time_ns: int) -> bool:
        """Return True if the node may have led at that time, which is not in the future."""
        place = bisect_right(self._led, time_ns, key=itemgetter(0))
        return place > 0 and node in self._led[place - 1][1]

    def _durable(self, node: str, fault: Op) -> bool:
        now = self._now.get(node)
        if now is None or now.standing is not Standing.DUE:
            return False
        return flushed(self._ops, node, self._offset, now.begun, fault.index) is not None


def keepers_of(ops: Sequence[Op], offset: int, value: str) -> Keepers | None:
    """Return the standings about a record, None if it was not acknowledged with acks=all at that offset."""
    known, record = _known(ops), (offset, value)
    if record not in known:
        assured = _assured(ops).get(record)
        known[record] = None if assured is None else Keepers(ops, assured)
    return known[record]


@fact
def _assured(ops: Sequence[Op]) -> dict[tuple[int, str], Assured]:
    """Return each record's first acknowledgement."""
    return {(each.acked.offset, each.acked.value): each for each in reversed(assured_records(ops))}


@fact
def _known(_ops: Sequence[Op]) -> dict[tuple[int, str], Keepers | None]:
    return {}


# How long a frame of a process may be on its way after its end.
_WIRE_NS: Final = 100_000_000
_SINCE: Final = attrgetter("since_ns")
