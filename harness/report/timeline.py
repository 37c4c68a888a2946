"""
The items of a history's timeline: lanes with bars, marks and bands.

    scenario   its steps, by number
    client-N   every operation from invoke to ok, fail or info
    nemesis    every fault from invoke to ok or fail
    fabric     epoch questions and answers; fetch offsets; held frames by link, api and direction
    metadata   states, controllers and members
    NAME-1, …  the processes of services that the schedule may hit: running, or the fault
    A, B, …    role and epoch, or fault; appends and truncations; high watermark and ISR; faults that leave it
    running

If there are more than TIMELINE_ITEMS_MAX items, appends, high watermarks and fetches are left out first, then
elections and truncations, then steps and faults, and last the items that prove an anomaly. `left_out` counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from harness import events
from harness.effect import nature_of
from harness.model import Op, Source
from harness.report.limits import CLIENT_LANES_MAX, TIMELINE_ITEMS_MAX
from harness.report.reading import Reading, Span
from harness.report.replicas import Piece
from harness.report.text import offsets
from harness.report.timeline_items import Item, Timeline, bar, mark
from harness.report.timeline_nodes import impaired, logs, states

_HELD_APART: Final = {"hold": "release", "cut": "heal", "delay": "heal", "double": "heal"}
_HELD_WORDS: Final = {"hold": "held", "cut": "cut", "delay": "delayed", "double": "doubled"}


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
        *states(reading),
        *impaired(reading),
        *logs(reading, appended),
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
        *reading.services,
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


# --- scenario, clients, nemesis ----------------------------------------------------------------------------

_OUTCOME_SIGNS: Final = {"ok": "", "fail": " ✗", "info": " ?", "open": " …"}


def _steps(reading: Reading) -> Iterator[Item]:
    steps = (s for s in reading.spans if isinstance(s.event, events.Step))
    for number, span in enumerate(steps, start=1):
        yield bar("scenario", f"{number}{_OUTCOME_SIGNS[span.outcome]}", "step", span, 1)
    for span in reading.spans:
        if isinstance(span.event, events.ScheduleStopped):
            yield bar("scenario", f"stopped: {span.event.rule}", "step", span, 0)
        if isinstance(span.event, events.Healed):
            yield bar("scenario", f"healed{_OUTCOME_SIGNS[span.outcome]}", "step", span, 1)


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
        yield replace(bar(group[0].first.process, label, "op", group[0], 3), last=last, ops=tuple(ops))


def _polls(reading: Reading, proof: frozenset[int]) -> Iterator[Item]:
    """Yield a tick for each poll that proves an anomaly; consumers poll all the time, and no other is drawn."""
    for span in reading.spans:
        ends = [op for op in (span.first, span.last) if op is not None]
        if isinstance(span.event, events.Poll) and any(op.index in proof for op in ends):
            yield mark((span.first.process, 0), "poll", f"op {span.outcome}", ends[-1], rank=3)


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
            yield bar("nemesis", f"{name} {whom}{_OUTCOME_SIGNS[span.outcome]}", css, span, 1)


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
                yield mark(("fabric", 0), f"{link} {epoch}?", "ask", op, rank=2)
            case events.EpochAnswer(end_offset=end_offset):
                yield mark(("fabric", 0), f"{link} ={end_offset}", "answer", op, rank=2)
            case events.Fetch(offset=offset):
                yield mark(("fabric", 1), f"{link} @{offset}", "fetch", op, rank=6)
            case events.OfFrame(api=api) | events.FrameUnreadable(api=api):
                yield mark(("fabric", 2), f"{op.f} {link} {api}", "held", op, rank=4)
            case _:
                yield mark(("fabric", 2), f"{op.f} {link}", "held", op, rank=4)
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
    return replace(bar("fabric", f"{about} {word}", "band", span, 1), row=3, css="band")


def _metadata(reading: Reading) -> Iterator[Item]:
    for op in (op for op in reading.ops if op.source is Source.METADATA):
        match op.event:
            case events.MetadataState(leader=leader, epoch=epoch, isr=isr):
                words = f"{leader or 'no leader'} e{epoch} ISR {''.join(map(str, isr))}"
                yield mark(("metadata", 0), words, "elect", op, rank=2)
            case events.Assigned(replicas=replicas):
                words = f"replicas {''.join(map(str, replicas))}"
                yield mark(("metadata", 0), words, "elect", op, rank=2)
            case events.ControllerNamed(node=node):
                yield mark(("metadata", 1), f"controller {node or 'none'}", "quietly", op, rank=4)
            case events.Members(nodes=nodes):
                names = " ".join(map(str, nodes)) or "none"
                yield mark(("metadata", 1), f"registered {names}", "quietly", op, rank=5)
