"""
The replicas' lineage side by side: one axis of offsets, a row for acknowledged records, and a row for each log.

Below a replica's row are the tails that it had and lost: hatched, with from, to and the reason. Each epoch has a
colour and is named in the segment; a batch without an epoch is labelled so. A frame through all rows marks the
offsets of each anomaly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from xml.etree import ElementTree as ET

from harness.events import Produce, Truncate
from harness.model import Anomaly, Kind
from harness.report import svg
from harness.report.axis import Axis, axis_of
from harness.report.limits import CUTS_MAX, RANGES_MAX, SEGMENTS_MAX
from harness.report.reading import Reading
from harness.report.replicas import Cut, Piece, Replica, merged
from harness.report.text import epoch_text, exact, offset_ranges, offsets, plural, seconds

SIGNS: Final = {
    Kind.LOST: "✗",
    Kind.DIVERGED: "≠",
    Kind.HOLE: "∅",
    Kind.PERMITTED: "~",
    Kind.UNCLEAN: "~",
    Kind.RETURNED: "~",
    Kind.LAST_STANDING: "~",
    Kind.UNPROMISED: "~",
}
REASONS: Final = {
    "high-watermark": "to its own high watermark",
    "epoch-answer": "to the leader's answer",
    "no-epoch-information": "to its high watermark, no epoch being known",
    "out-of-range": "its fetch offset was out of range",
    "full": "the whole log",
    "corrupt": "from a damaged batch on, to copy it again",
}

_ROW_PX: Final = 36.0
_CUT_PX: Final = 26.0
_GAP_PX: Final = 12.0
_MARK_PX: Final = 18.0
_AXIS_PX: Final = 22.0
_NAMES_PX: Final = 148.0


@dataclass(slots=True, kw_only=True)
class _Sheet:
    """The drawing under construction: the names at the left, the plot, and the current y."""

    names: ET.Element
    plot: ET.Element
    axis: Axis
    y: float = 0.0
    width: float = 0.0

    def name(self, text: str, y: float, css: str = "") -> None:
        svg.label(self.names, 8, y, text, css)

    def beside(self, x: float, y: float, text: str, css: str) -> None:
        svg.label(self.plot, x, y, text, css)
        self.width = max(self.width, x + svg.text_px(text))


def draw_lineage(
    reading: Reading, topic: str, partition: int, replicas: Sequence[Replica], anomalies: Sequence[Anomaly]
) -> svg.Drawing:
    """
    Draw the logs of one partition at the end of the run, with the tails that each of them lost.

    Args:
        reading: the history.
        topic: the partition's topic.
        partition: the partition's number.
        replicas: the replicas, as replicas_of returns them.
        anomalies: the anomalies of this partition.
    """
    anomalies, undrawn = _drawable(anomalies)
    acknowledged = () if reading.abridged else _acknowledged(reading, topic, partition)
    axis = axis_of(_interesting(replicas, anomalies, acknowledged))
    words = _in_words(topic, partition, replicas, anomalies)
    sheet = _Sheet(names=svg.picture(0, 0, "names of the rows"), plot=svg.picture(0, 0, words), axis=axis)
    sheet.width = axis.width
    frames = svg.group(sheet.plot)
    _draw_marks(sheet, anomalies)
    _draw_axis(sheet)
    otherwise = "too many to draw" if reading.abridged else "nothing was acknowledged"
    notes = [
        *undrawn,
        *_draw_acknowledged(sheet, acknowledged, otherwise),
        *(note for replica in replicas for note in _draw_replica(sheet, replica)),
    ]
    for anomaly in anomalies:
        for first, end in anomaly.ranges:
            x = axis.x(first)
            svg.box(frames, (x, 2, axis.x(end) - x, sheet.y - 4), f"frame v-{anomaly.verdict.name.lower()}")
    return _finished(sheet, notes)


def _drawable(anomalies: Sequence[Anomaly]) -> tuple[Sequence[Anomaly], Sequence[str]]:
    """Return the anomalies with the ranges that are drawn of each, and a sentence for each that has more."""
    notes = [
        f"Of {len(each.ranges):,} ranges of one anomaly ({each.kind.value}), the first {RANGES_MAX} are drawn."
        for each in anomalies
        if len(each.ranges) > RANGES_MAX
    ]
    return [replace(each, ranges=each.ranges[:RANGES_MAX]) for each in anomalies], notes


def _finished(sheet: _Sheet, notes: Iterable[str]) -> svg.Drawing:
    sheet.y += 5
    for element, width in ((sheet.names, _NAMES_PX), (sheet.plot, sheet.width + 16)):
        element.set("width", f"{width:.0f}")
        element.set("height", f"{sheet.y:.0f}")
        element.set("viewBox", f"0 0 {width:.0f} {sheet.y:.0f}")
    sheet.names.set("class", "names")
    unique = tuple(dict.fromkeys(notes))
    return svg.Drawing(names=svg.markup(sheet.names), plot=svg.markup(sheet.plot), notes=unique)


# --- what there is to draw ---------------------------------------------------------------------------------


def _acknowledged(reading: Reading, topic: str, partition: int) -> tuple[tuple[Piece, ...], ...]:
    """Return the acknowledged records by request, with one row for each time that an offset was acknowledged."""
    pieces: list[Piece] = []
    for span in reading.spans:
        match span.event:
            case Produce(offset=int(offset)) as record if span.outcome == "ok":
                if (record.topic, record.partition) == (topic, partition):
                    pieces.append(Piece(first=offset, end=offset + 1, epoch=-1, name=record.name))
    rows: list[list[Piece]] = []
    for piece in merged(pieces):
        row = next((r for r in rows if r[-1].end <= piece.first), None)
        if row is None:
            rows.append([piece])
        else:
            row.append(piece)
    return tuple(map(tuple, rows))


def _interesting(
    replicas: Sequence[Replica], anomalies: Sequence[Anomaly], acknowledged: Sequence[Sequence[Piece]]
) -> Iterable[int]:
    """Yield the offsets that should be knots of the axis, the most important first."""
    ends = [o for r in replicas for o in (r.start, r.end, r.high_watermark) if o is not None]
    yield from (min(ends, default=0), max(ends, default=1))
    yield from (offset for a in anomalies for pair in a.ranges for offset in pair)
    yield from ends
    yield from (offset for r in replicas for cut in r.cuts[:CUTS_MAX] for offset in (cut.to, cut.end))
    yield from (offset for r in replicas for p in _by_epoch(r.pieces) for offset in (p.first, p.end))
    yield from (offset for r in replicas for p in r.pieces for offset in (p.first, p.end))
    yield from (offset for row in acknowledged for p in row for offset in (p.first, p.end))


def _by_epoch(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    return merged(Piece(first=p.first, end=p.end, epoch=p.epoch, name="") for p in pieces)


def _in_words(topic: str, partition: int, replicas: Sequence[Replica], anomalies: Sequence[Anomaly]) -> str:
    logs = "; ".join(f"{r.node} {_end_text(r)}" for r in replicas)
    found = "; ".join(f"{a.kind.value} at {offset_ranges(a.ranges)}" for a in anomalies if a.ranges)
    return f"Logs of {topic}-{partition} at the end of the run: {logs}. Marked: {found or 'nothing'}."


def _end_text(replica: Replica) -> str:
    if replica.snapshot is None:
        return "was not read"
    mark = "none" if replica.high_watermark is None else f"{replica.high_watermark:,}"
    return f"LEO {replica.end:,} · HW {mark}"


# --- drawing, from top to bottom ---------------------------------------------------------------------------


def _draw_marks(sheet: _Sheet, anomalies: Sequence[Anomaly]) -> None:
    sheet.y = 4
    for anomaly in anomalies:
        if not anomaly.ranges:
            continue
        css = f"bracket v-{anomaly.verdict.name.lower()}"
        words = f"{SIGNS.get(anomaly.kind, '!')} {anomaly.kind.value} {offset_ranges(anomaly.ranges)}"
        y = sheet.y + _MARK_PX - 3
        marked = svg.group(sheet.plot, title=anomaly.sentence)
        for first, end in anomaly.ranges:
            x1, x2 = sheet.axis.x(first) + 2, sheet.axis.x(end) - 2
            svg.path(marked, f"M{x1:.1f} {y:.1f}v-5H{x2:.1f}v5", css)
        right = sheet.axis.x(anomaly.ranges[-1][1])
        sheet.beside(right + 6, y, words, f"word {css}")
        sheet.y += _MARK_PX
    if sheet.y > 4:
        sheet.name("marked", _MARK_PX, "quiet")


def _draw_axis(sheet: _Sheet) -> None:
    y = sheet.y + 15
    sheet.name("offset", y, "quiet")
    for first, end, is_short in sheet.axis.stretches():
        if is_short:
            middle = (sheet.axis.x(first) + sheet.axis.x(end)) / 2
            svg.label(sheet.plot, middle, y, f"{first:,} … {end - 1:,}", "quiet", middle=True)
            continue
        for offset in range(first, end):
            middle = (sheet.axis.x(offset) + sheet.axis.x(offset + 1)) / 2
            svg.label(sheet.plot, middle, y, f"{offset:,}", "quiet", middle=True)
    sheet.y += _AXIS_PX
    svg.line(sheet.plot, (0, sheet.y, sheet.axis.width, sheet.y), "rule")


def _draw_acknowledged(sheet: _Sheet, rows: Sequence[Sequence[Piece]], otherwise: str) -> Iterable[str]:
    sheet.y += _GAP_PX / 2
    for number, row in enumerate(rows[:CUTS_MAX]):
        sheet.name(
            "acknowledged" if number == 0 else "and later", sheet.y + 17, "strong" if not number else "quiet"
        )
        for piece in row[:SEGMENTS_MAX]:
            drawn = svg.group(sheet.plot, title=f"{piece.name} acknowledged at {offsets(piece.first, piece.end)}")
            _draw_piece(drawn, sheet.axis, piece, "seg ack", top=sheet.y, height=_CUT_PX, second="")
        if len(row) > SEGMENTS_MAX:
            yield f"Of {len(row):,} acknowledged stretches of records, the first {SEGMENTS_MAX} are drawn."
        sheet.y += _CUT_PX + 3
    if not rows:
        sheet.name("acknowledged", sheet.y + 17, "strong")
        sheet.beside(4, sheet.y + 17, otherwise, "quiet")
        sheet.y += _CUT_PX + 3


def _draw_replica(sheet: _Sheet, replica: Replica) -> Iterable[str]:
    sheet.y += _GAP_PX
    sheet.name(replica.node, sheet.y + 15, "node")
    sheet.name(_end_text(replica), sheet.y + 30, "quiet")
    pieces = replica.pieces if len(replica.pieces) <= SEGMENTS_MAX else _by_epoch(replica.pieces)
    if pieces != replica.pieces:
        yield f"One segment for each epoch: a log has {plural(len(replica.pieces), 'named segment')}."
    if len(pieces) > SEGMENTS_MAX:
        yield f"Of {plural(len(pieces), 'epoch')} in one log, the last {SEGMENTS_MAX} are drawn."
    for piece in pieces[-SEGMENTS_MAX:]:
        title = f"{replica.node}: {_piece_text(piece)}"
        drawn = svg.group(sheet.plot, title=title)
        css = f"seg {svg.epoch_class(piece.epoch)}"
        _draw_piece(
            drawn, sheet.axis, piece, css, top=sheet.y, height=_ROW_PX, second=epoch_text(piece.epoch, short=True)
        )
    for first, end, codec in replica.batches[-SEGMENTS_MAX:]:
        drawn = svg.group(sheet.plot, title=f"{replica.node}: one batch, {offsets(first, end)}, codec {codec}")
        x1, x2, y = sheet.axis.x(first) + 5, sheet.axis.x(end) - 5, sheet.y + _ROW_PX - 2.5
        svg.path(drawn, f"M{x1:.1f} {y - 3:.1f}v3H{x2:.1f}v-3", "batch")
    if replica.snapshot is None or not pieces:
        words = "its files were not read" if replica.snapshot is None else "empty log"
        sheet.beside(4, sheet.y + 21, words, "quiet")
    if replica.high_watermark is not None:
        x, y = sheet.axis.x(replica.high_watermark), sheet.y + _ROW_PX + 1
        mark = svg.group(sheet.plot, title=f"{replica.node}: high watermark checkpoint {replica.high_watermark:,}")
        svg.path(mark, f"M{x:.1f} {y:.1f}l-5 7h10z", "hw")
    for number, problem in enumerate(replica.problems[:3]):
        sheet.beside(sheet.axis.x(replica.end) + 12, sheet.y + 14 + 13 * number, f"! {problem}", "word v-unknown")
    sheet.y += _ROW_PX + (8 if replica.high_watermark is not None else 2)
    for cut in replica.cuts[:CUTS_MAX]:
        _draw_cut(sheet, replica.node, cut)
    if len(replica.cuts) > CUTS_MAX:
        yield f"Of {len(replica.cuts):,} cuts of {replica.node}, the first {CUTS_MAX} are drawn."


def _draw_cut(sheet: _Sheet, node: str, cut: Cut) -> None:
    sheet.y += 3
    reason = REASONS.get(cut.reason, cut.reason)
    verb = "cut" if isinstance(cut.op.event, Truncate) else "lost"
    sheet.name(f"{verb} at {seconds(cut.op.time_ns)}", sheet.y + 17, "quiet indent")
    when = f"at {exact(cut.op.time_ns)}, history {cut.op.index}"
    title = f"{node} {verb} {cut.end:,} → {cut.to:,}: {reason}, {when}"
    drawn = svg.group(sheet.plot, title=title)
    left, right = sheet.axis.x(cut.to), sheet.axis.x(cut.end)
    for piece in cut.pieces[:SEGMENTS_MAX] or (Piece(first=cut.to, end=cut.end, epoch=-1, name=""),):
        css = f"seg gone {svg.epoch_class(piece.epoch)}"
        second = epoch_text(piece.epoch, short=True) if cut.pieces else ""
        _draw_piece(drawn, sheet.axis, piece, css, top=sheet.y, height=_CUT_PX, second=second)
    svg.box(drawn, (left, sheet.y, right - left, _CUT_PX), "hatch")
    svg.line(drawn, (left, sheet.y - 3, left, sheet.y + _CUT_PX + 3), "knife")
    sheet.beside(right + 10, sheet.y + 17, f"{verb} {cut.end:,} → {cut.to:,}, {reason}", "word")
    sheet.y += _CUT_PX + 2


def _draw_piece(
    parent: ET.Element,
    axis: Axis,
    piece: Piece,
    css: str,
    *,
    top: float,
    height: float,
    second: str,
) -> None:
    """Draw a segment, with name above epoch if it is high enough for two lines."""
    x = axis.x(piece.first)
    width = axis.x(piece.end) - x
    svg.box(parent, (x + 1, top, width - 2, height), css, round_=2)
    count = piece.end - piece.first
    name = f"{piece.name} ×{count:,}" if piece.name and count > 1 else piece.name
    middle = top + height / 2
    if height < _ROW_PX or not second:
        lines = [(middle + 4, name or second)]
    else:
        lines = [(middle - 3, name or f"×{count:,}"), (middle + 11, second)]
    for base, text in lines:
        fitted = _fitted(text, width - 6)
        if fitted:
            svg.label(parent, x + width / 2, base, fitted, "in", middle=True)


def _fitted(text: str, width: float) -> str:
    room = int(width / svg.CHAR_PX)
    if len(text) <= room:
        return text
    return f"{text[: room - 1]}…" if room >= 3 else ""


def _piece_text(piece: Piece) -> str:
    name = f"{piece.name} " if piece.name else ""
    return f"{name}at {offsets(piece.first, piece.end)}, {epoch_text(piece.epoch)}"
