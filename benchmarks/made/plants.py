"""Anomalies that are planted into a made history, each with what the rules must say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from benchmarks.made.columns import Held, Sent, mixed
from harness.events import Event, Fetch, MetadataState, Printed
from harness.model import Kind

Logs: TypeAlias = dict[str, Held]
# A value that nobody sent ends with such a number.
_STRANGE: Final = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """
    One anomaly.

    Attributes:
        name: a key of PLANTS.
        number: the number of the produce at which it is planted, within its partition.
        partition: the partition.
    """

    name: str
    number: int
    partition: int = 0

    def change(self, sent: Sent, held: Logs) -> int | None:
        """Change a stretch at that produce, or at the next one that was acknowledged; return its offset."""
        places = np.flatnonzero((sent.number >= self.number) & (sent.outcome == 0))
        if not len(places):
            return None
        sort = PLANTS[self.name]
        last = max(int(log.lasts.max()) for log in held.values())
        offset = last if sort.at_end else int(sent.offset[places[0]])
        sort.change(sent, held, int(places[0]))
        return offset

    def events(self, state: MetadataState, end: int) -> list[tuple[str, Event]]:
        """Return what is seen after the stretch, and by whom: in ZooKeeper's state, with that log end."""
        seen = PLANTS[self.name].events
        return seen(state, end) if seen else []

    def read(self, offset: Any, number: Any) -> tuple[Any, Any]:
        """Return what a read shows of a stretch."""
        if self.name != "read-skips":
            return offset, number
        kept = number != self.number
        return offset[kept], number[kept]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    """
    How one sort of anomaly is planted, and the kinds that must be found, and no others.

    Attributes:
        at_end: it shows at the end of a stretch.
        events: what is seen after the stretch, and by whom.
    """

    change: Callable[[Sent, Logs, int], None]
    kinds: frozenset[Kind]
    at_end: bool = False
    events: Callable[[MetadataState, int], list[tuple[str, Event]]] | None = None


def _at(held: Held, offset: int) -> int:
    return int(np.searchsorted(held.offset, offset))


def _batch_at(held: Held, offset: int) -> int:
    return int(np.searchsorted(held.bases, offset, side="right")) - 1


def _lost(sent: Sent, held: Logs, place: int) -> None:
    """All replicas hold a record that was not answered where another was acknowledged."""
    sent_at = int(sent.offset[place])
    other = _STRANGE + int(sent.number[place])
    for log in held.values():
        log.number[_at(log, sent_at)] = other
        log.digest[_at(log, sent_at)] = mixed(np.array([other]))[0]


def _diverged(sent: Sent, held: Logs, place: int) -> None:
    log = held["C"]
    log.digest[_at(log, int(sent.offset[place]))] ^= 1
    log.crcs[_batch_at(log, int(sent.offset[place]))] ^= 1


def _other_bytes(sent: Sent, held: Logs, place: int) -> None:
    held["B"].crcs[_batch_at(held["B"], int(sent.offset[place]))] ^= 1


def _hole(sent: Sent, held: Logs, place: int) -> None:
    log = held["C"]
    batch = _batch_at(log, int(sent.offset[place]))
    kept = (log.offset < log.bases[batch]) | (log.offset > log.lasts[batch])
    for name in ("offset", "number", "digest"):
        setattr(log, name, getattr(log, name)[kept])
    for name in ("bases", "lasts", "counts", "epochs", "crcs"):
        setattr(log, name, np.delete(getattr(log, name), batch))


def _phantom(sent: Sent, _: Logs, place: int) -> None:
    """A record that was acknowledged was never sent: its produce was another, which was not answered."""
    sent.number[place], sent.outcome[place], sent.offset[place] = _STRANGE + sent.number[place], 1, -1


def _altered(sent: Sent, _: Logs, place: int) -> None:
    sent.digest[place] ^= 1


def _duplicate(sent: Sent, held: Logs, place: int) -> None:
    """A record stands where the next one that was acknowledged stood, too."""
    ok = np.flatnonzero(sent.outcome == 0)
    later = ok[ok > place]
    first, second = int(sent.offset[place]), int(sent.offset[later[0] if len(later) else place])
    for log in held.values():
        for column in (log.number, log.digest):
            column[_at(log, second)] = column[_at(log, first)]


def _incomplete(sent: Sent, held: Logs, place: int) -> None:
    log = held["C"]
    at, batch = _at(log, int(sent.offset[place])), _batch_at(log, int(sent.offset[place]))
    for name in ("offset", "number", "digest"):
        setattr(log, name, np.delete(getattr(log, name), at))
    log.counts[batch] -= 1


def _disorder(sent: Sent, held: Logs, place: int) -> None:
    """One batch of a replica has a later epoch than all that follow."""
    log = held["B"]
    log.epochs[_batch_at(log, int(sent.offset[place]))] += 1


def _reordered(sent: Sent, held: Logs, place: int) -> None:
    """A record and one of a later batch stand in each other's places, as they were acknowledged."""
    later = np.flatnonzero((sent.outcome == 0) & (sent.invoked > sent.done[place]))
    other = int(later[0]) if len(later) else place
    one, two = int(sent.offset[place]), int(sent.offset[other])
    sent.offset[place], sent.offset[other] = two, one
    for log in held.values():
        here, there = _at(log, one), _at(log, two)
        for column in (log.number, log.digest):
            column[here], column[there] = column[there], column[here]


def _short(sent: Sent, held: Logs, place: int) -> None:
    """A replica's log ends earlier; planted in the last stretch."""
    log = held["C"]
    batch = _batch_at(log, int(sent.offset[place]))
    kept = log.offset < log.bases[batch]
    for name in ("offset", "number", "digest"):
        setattr(log, name, getattr(log, name)[kept])
    for name in ("bases", "lasts", "counts", "epochs", "crcs"):
        setattr(log, name, getattr(log, name)[:batch])


def _longer(_: Sent, held: Logs, _place: int) -> None:
    """A replica's log has a record more than the leader's, which nobody sent; planted in the last stretch."""
    log = held["B"]
    end, number = int(log.lasts[-1]) + 1, _STRANGE + int(log.lasts[-1])
    for name, value in (("offset", end), ("number", number), ("digest", number), ("bases", end), ("lasts", end)):
        setattr(log, name, np.append(getattr(log, name), value))
    for name, value in (("counts", 1), ("epochs", log.epochs[-1]), ("crcs", 7)):
        setattr(log, name, np.append(getattr(log, name), value))


def _nothing(sent: Sent, held: Logs, place: int) -> None:
    """What is seen, or the read, is changed instead."""


def _strange_member(state: MetadataState, _: int) -> list[tuple[str, Event]]:
    """A broker that is no replica is in the ISR."""
    return [("metadata", replace(state, isr=(*state.isr, "D"), version=state.version + 1))]


def _other_leader(state: MetadataState, _: int) -> list[tuple[str, Event]]:
    """Another replica leads in the same epoch, and then its leader again."""
    other = next(node for node in state.isr if node != state.leader)
    return [
        ("metadata", replace(state, leader=leader, version=state.version + step))
        for step, leader in enumerate((other, state.leader), start=1)
    ]


def _fetched_again(state: MetadataState, end: int) -> list[tuple[str, Event]]:
    """A member of the ISR fetches again what it had when it was acknowledged, and all after it."""
    node = next(node for node in state.isr if node != state.leader)
    link = (str(node), str(state.leader))
    return [
        ("fabric", Fetch(topic=state.topic, partition=state.partition, link=link, offset=each))
        for each in (end - 3, end)
    ]


def _exiting(state: MetadataState, _: int) -> list[tuple[str, Event]]:
    """A broker says that it ends, though no fault made it; it has no replica, so that all logs are judged."""
    line = "FATAL Exiting because log truncation is not allowed"
    return [("D", Printed(topic=state.topic, partition=state.partition, what="exiting", line=line))]


PLANTS: Final[dict[str, Sort]] = {
    "lost": Sort(change=_lost, kinds=frozenset({Kind.LOST, Kind.PHANTOM})),
    "diverged": Sort(change=_diverged, kinds=frozenset({Kind.DIVERGED, Kind.ALTERED})),
    "other-bytes": Sort(change=_other_bytes, kinds=frozenset({Kind.ALTERED})),
    "hole": Sort(change=_hole, kinds=frozenset({Kind.HOLE})),
    "phantom": Sort(change=_phantom, kinds=frozenset({Kind.PHANTOM})),
    "altered": Sort(change=_altered, kinds=frozenset({Kind.ALTERED})),
    "duplicate": Sort(change=_duplicate, kinds=frozenset({Kind.DUPLICATE, Kind.LOST})),
    "incomplete": Sort(change=_incomplete, kinds=frozenset({Kind.INCOMPLETE})),
    "disorder": Sort(change=_disorder, kinds=frozenset({Kind.DISORDER, Kind.EPOCHS_DIFFER, Kind.CHECKPOINT})),
    "reordered": Sort(change=_reordered, kinds=frozenset({Kind.REORDERED})),
    "short": Sort(change=_short, kinds=frozenset({Kind.STUCK}), at_end=True),
    "longer": Sort(change=_longer, kinds=frozenset({Kind.LONGER, Kind.PHANTOM}), at_end=True),
    "strange-member": Sort(change=_nothing, kinds=frozenset({Kind.WRONG_ISR}), events=_strange_member),
    "other-leader": Sort(change=_nothing, kinds=frozenset({Kind.TWO_LEADERS}), events=_other_leader),
    "fetched-again": Sort(
        change=_nothing, kinds=frozenset({Kind.NOT_REPLICATED}), at_end=True, events=_fetched_again
    ),
    "exiting": Sort(change=_nothing, kinds=frozenset({Kind.EXITED}), events=_exiting),
    "read-skips": Sort(change=_nothing, kinds=frozenset({Kind.WRONG_READ, Kind.LOST})),
}
# Those that are planted into the last stretch of a partition.
AT_END: Final = frozenset({"short", "longer"})
