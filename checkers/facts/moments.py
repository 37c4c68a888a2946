"""
What each process has said of its replica, event by event, and what the metadata's states say of epochs.

The order of one process's events is exact, also in real runs. The events of different processes, and those of the
metadata, race to the collector: compare them by epochs and versions, or with the margin of `margin_ns`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from checkers.facts.fact import fact
from checkers.facts.view import key_of, names_of, traits
from harness.events import (
    Append,
    Awaiting,
    Follower,
    Healed,
    HighWatermark,
    IsrChanged,
    Leader,
    MetadataState,
    Ready,
    Recovered,
    Started,
    Stopped,
    Truncate,
)
from harness.model import Anomaly, Kind, Op, OpType, events_of
from harness.target.traits import Seen

# How far apart events of different processes may be recorded, against their true order, on real machines.
_RACE_NS: Final = 500_000_000
_LAST_NS: Final = 250_000_000
# In the simulator, a trip to the metadata and back takes no longer.
_UNDER_WAY_NS: Final = 100_000_000

Said: TypeAlias = (
    Append
    | Awaiting
    | Follower
    | HighWatermark
    | IsrChanged
    | Leader
    | Ready
    | Recovered
    | Started
    | Stopped
    | Truncate
)
# The classes of `Said`.
SAID: Final[tuple[type[Said], ...]] = (
    Append,
    Awaiting,
    Follower,
    HighWatermark,
    IsrChanged,
    Leader,
    Ready,
    Recovered,
    Started,
    Stopped,
    Truncate,
)


class Standing(NamedTuple):
    """
    A replica as its own process has described it so far; None where it has not said.

    Attributes:
        life: the number of the node's process, counted from its first start.
        role: `leader`, `follower` or "".
        epoch: the leader epoch that the process accepted last, -1 for none.
        ready: the process has read the metadata at its start.
    """

    life: int = 0
    role: str = ""
    epoch: int = -1
    end: int | None = None
    high_watermark: int | None = None
    isr: frozenset[str] = frozenset()
    ready: bool = False


class Moment(NamedTuple):
    """One broker event, with the replica as described before it and after it."""

    op: Op
    event: Said
    before: Standing
    after: Standing


@fact
def moments(ops: Sequence[Op]) -> list[Moment]:
    """Return the events about replicas, of all nodes, in index order."""
    names, now, found = names_of(ops), dict[str, Standing](), list[Moment]()
    said: list[tuple[Op, Said]] = []
    for kind in SAID:
        said += events_of(ops, kind)
    for op, event in sorted(said, key=_place):
        before = now.get(op.process) or Standing()
        after = standing_after(before, event, names)
        now[op.process] = after
        found.append(Moment(op, event, before, after))
    return found


def _place(said: tuple[Op, Said]) -> int:
    return said[0].index


def standing_after(was: Standing, event: Said, names: dict[int, str]) -> Standing:
    """Return a replica as described once its process has also said this."""
    match event:
        case Append(end=end):
            return was._replace(end=end)
        case HighWatermark(to=to):
            return was._replace(high_watermark=to)
        case Leader() | Follower():
            members = event.isr if isinstance(event, Leader) else ()
            return was._replace(
                role="leader" if isinstance(event, Leader) else "follower",
                epoch=event.epoch,
                end=event.log_end_offset,
                high_watermark=event.high_watermark,
                isr=frozenset(names.get(i, str(i)) for i in members),
            )
        case Truncate(end=end, start=start, reason=reason):
            old = was.high_watermark
            cut = old if old is None or end >= start else min(old, end)
            return was._replace(end=end, high_watermark=end if reason == "full" else cut)
        case IsrChanged(isr=isr):
            return was._replace(isr=frozenset(names.get(i, str(i)) for i in isr))
        case Recovered(log_end_offset=end, high_watermark=high_watermark):
            return was._replace(end=end, high_watermark=high_watermark)
        case Awaiting(epoch=epoch):
            # Before KIP-380 an old command can make a process leader before it reads the metadata; it then goes on
            # to lead in the epoch that it reads there, if that is its own.
            return was._replace(epoch=epoch) if was.role == "leader" else was
        case Started():
            return Standing(life=was.life + 1)
        case Stopped():
            return Standing(life=was.life, ready=was.ready)
        case _:
            return was._replace(ready=True)


@fact
def states(ops: Sequence[Op]) -> list[tuple[Op, MetadataState]]:
    """Return the partition's states in the metadata, in the order in which the watch saw them."""
    return list(events_of(ops, MetadataState))


@fact
def is_polled(ops: Sequence[Op]) -> bool:
    """Return True if the metadata are looked at now and then: what lies between two looks is not known."""
    return traits(ops).seen is Seen.POLLED


def follows(ops: Sequence[Op], old: int, new: int) -> bool:
    """
    Return True if no state can have stood between two states of these versions.

    Where the metadata are polled, versions number looks, and prove nothing.
    """
    return new == old + 1 and not is_polled(ops)


@fact
def state_of_version(ops: Sequence[Op]) -> dict[int, tuple[Op, MetadataState]]:
    """Return the first state that was seen with each version; none where versions number looks."""
    if is_polled(ops):
        return {}
    return {state.version: (op, state) for op, state in reversed(states(ops))}


@fact
def states_of_epoch(ops: Sequence[Op]) -> dict[int, list[tuple[Op, MetadataState]]]:
    """Return the states of each epoch, in the order in which the watch saw them."""
    found: dict[int, list[tuple[Op, MetadataState]]] = {}
    for op, state in states(ops):
        found.setdefault(state.epoch, []).append((op, state))
    return found


def leader_of(ops: Sequence[Op], epoch: int) -> tuple[Op, MetadataState] | None:
    """
    Return the first state that tells who leads an epoch, or that nobody does; None if none tells.

    Where the metadata are polled, a look that found no leader may have come before there was one.
    """
    seen = states_of_epoch(ops).get(epoch, [])
    return next((each for each in seen if each[1].leader is not None or not is_polled(ops)), None)


@fact
def _epochs_in_order(ops: Sequence[Op]) -> list[int]:
    return sorted(states_of_epoch(ops))


@fact
def margin_ns(ops: Sequence[Op]) -> int:
    """Return how much later another process's event must be recorded to have happened later: 0 in exact order."""
    return 0 if traits(ops).exact_order else _RACE_NS


@fact
def _last_seen(ops: Sequence[Op]) -> tuple[int, int]:
    """Return the index of the last verified healing, and the time of the last op that is not a log's."""
    healed = max((op.index for op, _ in events_of(ops, Healed) if op.type is OpType.OK), default=-1)
    return healed, max((op.time_ns for op in ops[-3:]), default=0)


def settled(ops: Sequence[Op], op: Op) -> bool:
    """Return True if what other processes saw of that op's cause has reached the history, too."""
    healed, last = _last_seen(ops)
    if not margin_ns(ops):  # nothing is late there, but a run may end, and be healed, while an answer is under way
        return op.time_ns + _UNDER_WAY_NS < last
    return op.index < healed or op.time_ns + _LAST_NS < last


def never_stood(ops: Sequence[Op], epoch: int, op: Op) -> tuple[int, ...]:
    """
    Return the proof that the metadata never had an epoch that the op names; () if it had it, or may have had it.

    A watch misses short-lived states: only two neighbouring versions show that nothing stood between. Where the
    metadata are polled, nothing shows it.
    """
    by_epoch, order = states_of_epoch(ops), _epochs_in_order(ops)
    if not order or epoch in by_epoch or is_polled(ops):
        return ()
    place = bisect_left(order, epoch)
    before = by_epoch[order[place - 1]][-1] if place else None
    after = by_epoch[order[place]][0] if place < len(order) else None
    if after is None:
        return (before[0].index,) if before is not None and settled(ops, op) else ()
    if after[1].version == (before[1].version + 1 if before is not None else 0):
        return tuple(each[0].index for each in (before, after) if each is not None)
    return ()


def whole(ops: Sequence[Op], epoch: int) -> bool:
    """Return True if the watch missed no state of that epoch but, perhaps, later ones than it saw."""
    seen, before = states_of_epoch(ops).get(epoch), states_of_epoch(ops).get(epoch - 1)
    if not seen or is_polled(ops):
        return False
    first, last = seen[0][1].version, seen[-1][1].version
    begun = first == 0 or (before is not None and before[-1][1].version == first - 1)
    return begun and len(seen) == last - first + 1


def anomaly(  # noqa: PLR0917
    ops: Sequence[Op],
    kind: Kind,
    text: str,
    proof: Iterable[int],
    nodes: Iterable[str] = (),
    epoch: int | None = None,
    ranges: tuple[tuple[int, int], ...] = (),
) -> Anomaly:
    """Return an anomaly of the partition whose sentence is the text, with a capital letter and a full stop."""
    topic, partition = key_of(ops)
    return Anomaly(
        kind=kind,
        topic=topic,
        partition=partition,
        ranges=ranges,
        nodes=tuple(sorted({*nodes})),
        epoch=epoch,
        sentence=f"{text[0].upper()}{text[1:]}.",
        proof=tuple(sorted({*proof})),
    )


def once(found: Iterable[Anomaly]) -> list[Anomaly]:
    """Return the anomalies; of those about the same nodes and epoch with one proof, only the first."""
    kept: dict[tuple[tuple[str, ...], int | None, tuple[int, ...]], Anomaly] = {}
    for each in found:
        kept.setdefault((each.nodes, each.epoch, each.proof), each)
    return list(kept.values())
