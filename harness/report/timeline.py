"""
The items of a history's timeline: lanes with bars, marks and bands.

    scenario   its steps, by number
    client-N   every operation from invoke to ok, fail or info
    nemesis    every fault from invoke to ok or fail
    fabric     epoch questions and answers; fetch offsets; held frames by link, api and direction
    metadata   states, controllers and members
    A, B, …    role and epoch, or fault; appends and truncations; high watermark and ISR; faults that leave it
    running

If there are more than TIMELINE_ITEMS_MAX items, appends, high watermarks and fetches are left out first, then
elections and truncations, then steps and faults, and last the items that prove an anomaly. `left_out` counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, TypeAlias

from harness import events
from harness.effect import Band, Effect, nature_of
from harness.model import Op, OpType, Source, events_of
from harness.report.limits import CLIENT_LANES_MAX, TIMELINE_ITEMS_MAX, TITLE_LINES_MAX
from harness.report.reading import Reading, Span
from harness.report.replicas import Piece
from harness.report.svg import epoch_class
from harness.report.text import exact, offsets, shortened, value_text

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
_IMPAIRED_ROW: Final = 3
_HELD_APART: Final = {"hold": "release", "cut": "heal", "delay": "heal", "double": "heal"}
_HELD_WORDS: Final = {"hold": "held", "cut": "cut", "delay": "delayed", "double": "doubled"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """
    One drawn item.

    Attributes:
        row: the row in its lane, from 0.
        last: the op at which it ends: `first` for a mark, None if it lasts to the end of the history.
        rank: items of a lower rank are kept longer if there are too many.
        ops: the history lines that it represents.
        overlaps: the item moves down to a free row if it overlaps another.
        proof: the item proves an anomaly.
    """

    lane: str
    row: int
    label: str
    css: str
    first: Op
    last: Op | None
    rank: int
    ops: tuple[Op, ...]
    overlaps: bool = False
    proof: bool = False

    @property
    def title(self) -> str:
        """Its history lines in full; if there are too many, the first lines and the last."""
        all_fit = len(self.ops) <= TITLE_LINES_MAX
        shown = self.ops if all_fit else (*self.ops[: TITLE_LINES_MAX - 1], self.ops[-1])
        lines = [
            f"history {op.index} at {exact(op.time_ns)}: "
            f"{op.process} {op.type.value} {op.f} {value_text(op.value)}"
            for op in shown
        ]
        if len(shown) < len(self.ops):
            lines.insert(-1, f"and {len(self.ops) - len(shown):,} more")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Lanes from top to bottom, items by time, and how many items of each kind were left out."""

    lanes: tuple[str, ...]
    items: tuple[Item, ...]
    left_out: Mapping[str, int]


def timeline_of(reading: Reading, proof: frozenset[int], appended: Mapping[int, Sequence[Piece]]) -> Timeline:
    """
    Return the items to draw of a history.

    Args:
        reading: the history.
        proof: the indexes of the ops that prove the run's anomalies.
        appended: the index of an append -> the records that it appended, as far as known.
    """
    found = [
        *_steps(reading),
        *_operations(reading),
        *_polls(reading, proof),
        *_faults(reading),
        *_fabric(reading),
        *_metadata(reading),
        *_states(reading),
        *_impaired(reading),
        *_logs(reading, appended),
    ]
    marked = _marked(found, proof)
    clients = dict.fromkeys(i.lane for i in sorted(marked, key=lambda i: i.rank) if i.css.startswith("op "))
    shown = set(list(clients)[:CLIENT_LANES_MAX])
    fit = [i for i in marked if i.lane in shown or i.lane not in clients]
    kept = sorted(fit, key=lambda i: (i.rank, i.first.index))[:TIMELINE_ITEMS_MAX]
    drawn = sorted(kept, key=lambda i: i.first.index)
    here = {item.lane for item in drawn}
    order = [
        "scenario",
        *sorted(clients, key=lambda name: (len(name), name)),
        "nemesis",
        "fabric",
        "metadata",
        *reading.nodes,
    ]
    gone = Counter(i.first.f for i in marked)
    gone.subtract(i.first.f for i in kept)
    return Timeline(
        lanes=tuple(lane for lane in dict.fromkeys(order) if lane in here),
        items=tuple(drawn),
        left_out={f: count for f, count in gone.most_common() if count},
    )


def _marked(found: Iterable[Item], proof: frozenset[int]) -> list[Item]:
    """Mark the items that prove an anomaly; the first of them, up to half of the room, get the lowest rank."""
    marked = []
    first = TIMELINE_ITEMS_MAX // 2
    for item in found:
        if not any(op.index in proof for op in item.ops):
            marked.append(item)
            continue
        marked.append(replace(item, proof=True, rank=0 if first > 0 else item.rank))
        first -= 1
    return marked


def _mark(place: tuple[str, int], label: str, css: str, op: Op, *, rank: int) -> Item:
    lane, row = place
    return Item(lane=lane, row=row, label=shortened(label, 40), css=css, first=op, last=op, rank=rank, ops=(op,))


def _bar(lane: str, label: str, css: str, span: Span, rank: int) -> Item:
    return Item(
        lane=lane,
        row=0,
        label=shortened(label, 40),
        css=f"{css} {span.outcome}",
        first=span.first,
        last=span.last,
        rank=rank,
        ops=(span.first,) if span.last in (None, span.first) else (span.first, span.last),
        overlaps=True,
    )


# --- scenario, clients, nemesis ----------------------------------------------------------------------------

_OUTCOME_SIGNS: Final = {"ok": "", "fail": " ✗", "info": " ?", "open": " …"}


def _steps(reading: Reading) -> Iterator[Item]:
    steps = (s for s in reading.spans if isinstance(s.event, events.Step))
    for number, span in enumerate(steps, start=1):
        yield _bar("scenario", f"{number}{_OUTCOME_SIGNS[span.outcome]}", "step", span, 1)
    for span in reading.spans:
        if isinstance(span.event, events.ScheduleStopped):
            yield _bar("scenario", f"stopped: {span.event.rule}", "step", span, 0)
        if isinstance(span.event, events.Healed):
            yield _bar("scenario", f"healed{_OUTCOME_SIGNS[span.outcome]}", "step", span, 1)


def _operations(reading: Reading) -> Iterator[Item]:
    """Yield client operations; a client's consecutive produces of records of one name are one bar."""
    spans = [s for s in reading.spans if s.first.source is Source.CLIENT and not isinstance(s.event, events.Poll)]
    for _, alike in groupby(sorted(spans, key=lambda s: s.first.process), key=_grouping):
        group = list(alike)
        ends = [s.last for s in group if s.last]
        last = max(ends, key=lambda op: op.index) if len(ends) == len(group) else None
        label = _operation_label(group[0])
        if len(group) > 1:
            label += f" ×{len(group):,}"
        ops = [op for s in group for op in ((s.first, s.last) if s.last not in (None, s.first) else (s.first,))]
        yield replace(_bar(group[0].first.process, label, "op", group[0], 3), last=last, ops=tuple(ops))


def _polls(reading: Reading, proof: frozenset[int]) -> Iterator[Item]:
    """Yield a tick for each poll that proves an anomaly; consumers poll all the time, and no other is drawn."""
    for span in reading.spans:
        ends = [op for op in (span.first, span.last) if op is not None]
        if isinstance(span.event, events.Poll) and any(op.index in proof for op in ends):
            yield _mark((span.first.process, 0), "poll", f"op {span.outcome}", ends[-1], rank=3)


def _grouping(span: Span) -> tuple[str, ...]:
    """Return the key by which consecutive operations are joined into one bar; a nameless one is never joined."""
    event = span.event
    name = event.name if isinstance(event, events.Produce) and event.name else str(span.first.index)
    return (span.first.process, span.first.f, span.outcome, name)


def _operation_label(span: Span) -> str:
    sign = _OUTCOME_SIGNS[span.outcome]
    match span.event:
        case events.Produce(name=name, value=value):
            return f"{name or value}{sign}"
        case events.Read(records=((first, _), *_) as records):
            return f"read {offsets(first, records[-1][0] + 1)}{sign}"
        case _:
            return f"{span.first.f}{sign}"


def _faults(reading: Reading) -> Iterator[Item]:
    for span in reading.spans:
        if isinstance(span.event, events.Injection):
            name, whom = span.event.name, " ".join(span.event.nodes)
            css = "heal" if nature_of(span.first).heals else "fault"
            yield _bar("nemesis", f"{name} {whom}{_OUTCOME_SIGNS[span.outcome]}", css, span, 1)


# --- fabric and metadata -----------------------------------------------------------------------------------


def _fabric(reading: Reading) -> Iterator[Item]:
    held: dict[tuple[str, ...], Op] = {}
    for op in (op for op in reading.ops if op.source is Source.FABRIC):
        link = "→".join(op.event.link) if isinstance(op.event, events.OfLink) else "?"
        match op.event:
            case events.Hold() | events.Cut() | events.Delay() | events.Double() as rule:
                held.setdefault((_HELD_APART[op.f], *_about(rule)), op)
            case events.Release() | events.Heal() as end:
                ended = [k for k in held if _ends(k, (op.f, *_about(end)))]
                yield from (_band(held.pop(k), op) for k in ended)
            case events.EpochQuestion(leader_epoch=epoch):
                yield _mark(("fabric", 0), f"{link} {epoch}?", "ask", op, rank=2)
            case events.EpochAnswer(end_offset=end_offset):
                yield _mark(("fabric", 0), f"{link} ={end_offset}", "answer", op, rank=2)
            case events.Fetch(offset=offset):
                yield _mark(("fabric", 1), f"{link} @{offset}", "fetch", op, rank=6)
            case events.OfFrame(api=api) | events.FrameUnreadable(api=api):
                yield _mark(("fabric", 2), f"{op.f} {link} {api}", "held", op, rank=4)
            case _:
                yield _mark(("fabric", 2), f"{op.f} {link}", "held", op, rank=4)
    yield from (_band(op, None) for op in held.values())


def _about(event: events.OfLink) -> tuple[str, str, str]:
    """Return the link of a rule, its API and its direction; "" for one that it does not name."""
    link = "→".join(event.link)
    if isinstance(event, events.LinkRule | events.Heal):
        return link, event.api or "", event.direction or ""
    return link, "", ""


def _ends(held: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Return True if a release or a heal ends the rule; it may name less than the rule does."""
    return held[:2] == wanted[:2] and all(b in ("", a) for a, b in zip(held[2:], wanted[2:], strict=True))


def _band(first: Op, last: Op | None) -> Item:
    about = " ".join(filter(None, _about(first.event))) if isinstance(first.event, events.OfLink) else ""
    span = Span(first=first, last=last)
    word = _HELD_WORDS[first.f]
    return replace(_bar("fabric", f"{about} {word}", "band", span, 1), row=3, css="band")


def _metadata(reading: Reading) -> Iterator[Item]:
    for op in (op for op in reading.ops if op.source is Source.METADATA):
        match op.event:
            case events.MetadataState(leader=leader, epoch=epoch, isr=isr):
                words = f"{leader or 'no leader'} e{epoch} ISR {''.join(map(str, isr))}"
                yield _mark(("metadata", 0), words, "elect", op, rank=2)
            case events.Assigned(replicas=replicas):
                words = f"replicas {''.join(map(str, replicas))}"
                yield _mark(("metadata", 0), words, "elect", op, rank=2)
            case events.ControllerNamed(node=node):
                yield _mark(("metadata", 1), f"controller {node or 'none'}", "quietly", op, rank=4)
            case events.Members(nodes=nodes):
                names = " ".join(map(str, nodes)) or "none"
                yield _mark(("metadata", 1), f"registered {names}", "quietly", op, rank=5)


# --- nodes -------------------------------------------------------------------------------------------------


def _states(reading: Reading) -> Iterator[Item]:
    """Yield the upper row of each node: its role and epoch, or its fault, until the next change."""
    current: dict[str, Item] = {}
    before_pause: dict[str, _State] = {}
    for op in reading.ops:
        for node, state in _state_changes(reading, op):
            old = current.get(node)
            label, css = before_pause.pop(node, _RUNNING) if state == _RESUMED else state
            if old and (old.label, old.css) == (label, css):
                continue
            if old and css == "st-paused":
                before_pause[node] = (old.label, old.css)
            if old:
                yield replace(old, last=op)
            current[node] = replace(_mark((node, 0), label, css, op, rank=2), last=None)
    yield from current.values()


def _state_changes(reading: Reading, op: Op) -> Iterator[tuple[str, _State]]:
    if op.source not in (Source.NEMESIS, Source.BROKER):
        return
    match op.event:
        case events.Injection(name=name, nodes=nodes) if op.type is OpType.OK:
            nature = nature_of(op)
            for node in (node for node in nodes if node in reading.nodes):
                if nature.band in (Band.DOWN, *_PASSING):
                    css = "st-paused" if nature.band in _PASSING else "st-down"
                    yield node, (_STATES.get(nature.effect, name), css)
                elif nature.heals & _PASSES:
                    yield node, _RESUMED
        case events.Started():
            yield op.process, ("started", "st-up")
        case events.Leader(epoch=epoch):
            yield op.process, (f"leader e{epoch}", f"st-leader {epoch_class(epoch)}")
        case events.Follower(leader=leader, epoch=epoch):
            words = f"follows {reading.node_of(leader)} e{epoch}"
            yield op.process, (words, f"st-follower {epoch_class(epoch)}")


def _impaired(reading: Reading) -> Iterator[Item]:
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
            if nature.band is Band.IMPAIRED and node in reading.nodes:
                words = _STATES.get(nature.effect, fault.name)
                item = replace(_mark((node, _IMPAIRED_ROW), words, "st-paused", op, rank=2), last=None)
                current.setdefault((node, nature.effect), item)
    yield from current.values()


def _logs(reading: Reading, appended: Mapping[int, Sequence[Piece]]) -> Iterator[Item]:
    """Yield the middle row of each node, its log, and the lower row, its high watermark and ISR."""
    sources = (Source.BROKER, Source.LOG)
    for op in (op for op in reading.ops if op.source in sources):
        node = op.process
        match op.event:
            case events.Append(base=base, end=end):
                names = " ".join(piece.name for piece in appended.get(op.index, ()) if piece.name)
                yield _mark((node, 1), f"{names}@{offsets(base, end)}", "append", op, rank=5)
            case events.Truncate(start=start, to=to, reason=reason):
                cut = to < start or reason == "full"
                words = f"cut {start}→{to}" if cut else f"keeps {start}"
                yield _mark((node, 1), words, "cut" if cut else "kept", op, rank=2)
            case events.Recovered(log_end_offset=end):
                yield _mark((node, 1), f"recovered LEO {end}", "kept", op, rank=3)
            case events.Stuck(reason=reason):
                yield _mark((node, 1), f"stuck: {reason}", "cut", op, rank=2)
            case events.Snapshot(log_end_offset=end):
                yield _mark((node, 1), f"read LEO {end}", "kept", op, rank=4)
            case events.SnapshotFailed():
                yield _mark((node, 1), "read LEO unreadable", "kept", op, rank=4)
            case events.HighWatermark(to=to):
                yield _mark((node, 2), f"HW {to}", "hw", op, rank=5)
            case events.IsrChanged(isr=isr):
                yield _mark((node, 2), f"ISR {''.join(map(reading.node_of, isr))}", "isr", op, rank=4)
