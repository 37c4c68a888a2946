"""
The items of a timeline's lanes for what runs on a host: replicas, and the processes of services, which are none.

A replica reports its role. A service reports nothing, so its lane shows its faults and when they were undone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from harness import events
from harness.effect import DOWN, Band, Effect, nature_of
from harness.model import Op, OpType, Source, events_of
from harness.report.reading import Reading
from harness.report.replicas import Piece
from harness.report.svg import epoch_class
from harness.report.text import offsets
from harness.report.timeline_items import Item, mark

# The word for a node's state under an effect.
_STATES: Final[Mapping[Effect, str]] = {
    Effect.DOWN: "killed",
    Effect.POWER_LOST: "power lost",
    Effect.PAGES_LOST: "pages lost",
    Effect.PAUSED: "paused",
    Effect.METADATA_LOST: "metadata lost",
    Effect.METADATA_WEAK: "metadata weak",
    Effect.PACKETS_IMPAIRED: "packets impaired",
    Effect.LINKS_IMPAIRED: "links impaired",
    Effect.PARTITIONED: "partitioned",
    Effect.CLIENTS_CUT: "no clients",
    Effect.CUT_OFF: "zombie",
    Effect.CLOCK_WRONG: "clock wrong",
    Effect.DISK_GONE: "disk gone",
    Effect.DISK_SLOW: "disk slow",
    Effect.MOVED_AWAY: "moved away",
}
# Faults that leave the node's process running; afterwards it has the role that it had before.
_PASSING: Final = frozenset({Band.PAUSED, Band.ZOMBIE})
_PASSES: Final = frozenset({Effect.PAUSED, Effect.CUT_OFF})
# A node's state at a time: the label, and the CSS class.
_State: TypeAlias = tuple[str, str]
_RUNNING: Final[_State] = ("running", "st-up")
_RESUMED: Final[_State] = ("as before", "st-up")
_RESTARTED: Final[_State] = ("started again", "st-up")
_DOWN: Final = "st-down"
_PAUSED: Final = "st-paused"
_IMPAIRED_ROW: Final = 3


def states(reading: Reading) -> Iterator[Item]:
    """Yield the upper row of each node: its role and epoch, or its fault, until the next change."""
    current: dict[str, Item] = {}
    before_pause: dict[str, _State] = {}
    for op in reading.ops:
        for node, state in _state_changes(reading, op):
            old = current.get(node)
            label, css = before_pause.pop(node, _RUNNING) if state == _RESUMED else state
            if old and (old.label, old.css) == (label, css):
                continue
            if old and css == _PAUSED:
                before_pause[node] = (old.label, old.css)
            if old:
                yield replace(old, last=op)
            current[node] = replace(mark((node, 0), label, css, op, rank=2), last=None)
    yield from current.values()


def _state_changes(reading: Reading, op: Op) -> Iterator[tuple[str, _State]]:
    if op.source not in (Source.RUNNER, Source.NEMESIS, Source.BROKER):
        return
    match op.event:
        case events.Setup():
            yield from ((name, _RUNNING) for name in reading.services)
        case events.Injection(name=name, nodes=nodes) if op.type is OpType.OK:
            nature = nature_of(op)
            for node in (node for node in nodes if node in (*reading.services, *reading.nodes)):
                if nature.band in (Band.DOWN, *_PASSING):
                    css = _PAUSED if nature.band in _PASSING else _DOWN
                    yield node, (_STATES.get(nature.effect, name), css)
                elif nature.heals & _PASSES:
                    yield node, _RESUMED
                elif nature.heals & DOWN and node in reading.silent:
                    yield node, _RESTARTED
        case events.Started():
            yield op.process, ("started", "st-up")
        case events.Leader(epoch=epoch):
            yield op.process, (f"leader e{epoch}", f"st-leader {epoch_class(epoch)}")
        case events.Follower(leader=leader, epoch=epoch):
            words = f"follows {reading.node_of(leader)} e{epoch}"
            yield op.process, (words, f"st-follower {epoch_class(epoch)}")


def impaired(reading: Reading) -> Iterator[Item]:
    """Yield every fault that leaves its node running, until it is healed; roles may change meanwhile."""
    current: dict[tuple[str, Effect], Item] = {}
    for op, fault in events_of(reading.ops, events.Injection):
        if op.type is not OpType.OK:
            continue
        nature = nature_of(op)
        for node in fault.nodes:
            for effect in sorted(nature.heals):
                if (node, effect) in current:
                    yield replace(current.pop((node, effect)), last=op)
            if nature.band is Band.IMPAIRED and node in (*reading.services, *reading.nodes):
                words = _STATES.get(nature.effect, fault.name)
                item = replace(mark((node, _IMPAIRED_ROW), words, _PAUSED, op, rank=2), last=None)
                current.setdefault((node, nature.effect), item)
    yield from current.values()


def logs(reading: Reading, appended: Mapping[int, Sequence[Piece]]) -> Iterator[Item]:
    """Yield the middle row of each node, its log, and the lower row, its high watermark and ISR."""
    sources = (Source.BROKER, Source.LOG)
    for op in (op for op in reading.ops if op.source in sources):
        node = op.process
        match op.event:
            case events.Append(base=base, end=end):
                names = " ".join(piece.name for piece in appended.get(op.index, ()) if piece.name)
                yield mark((node, 1), f"{names}@{offsets(base, end)}", "append", op, rank=5)
            case events.Truncate(start=start, to=to, reason=reason):
                cut = to < start or reason == "full"
                words = f"cut {start}→{to}" if cut else f"keeps {start}"
                yield mark((node, 1), words, "cut" if cut else "kept", op, rank=2)
            case events.Recovered(log_end_offset=end):
                yield mark((node, 1), f"recovered LEO {end}", "kept", op, rank=3)
            case events.Stuck(reason=reason):
                yield mark((node, 1), f"stuck: {reason}", "cut", op, rank=2)
            case events.Snapshot(log_end_offset=end):
                yield mark((node, 1), f"read LEO {end}", "kept", op, rank=4)
            case events.SnapshotFailed():
                yield mark((node, 1), "read LEO unreadable", "kept", op, rank=4)
            case events.HighWatermark(to=to):
                yield mark((node, 2), f"HW {to}", "hw", op, rank=5)
            case events.IsrChanged(isr=isr):
                yield mark((node, 2), f"ISR {''.join(map(reading.node_of, isr))}", "isr", op, rank=4)
