"""What consumers are told of high watermarks: they never fall in one leadership, and are the leader's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.moments import anomaly, is_polled, once
from checkers.facts.polls import Polled, polls
from checkers.facts.reigns import by_reign, changes_of, led_with, report_high_watermarks
from checkers.facts.view import at, leaders_log
from harness.model import Anomaly, Kind, Op

KINDS: Final = (
    Definition(
        kind=Kind.WRONG_HIGH_WATERMARK,
        formula="ok(poll P of n, h), ok(poll Q of n, k), ok(P) before invoke(Q), k < h, and n neither led anew, "
        "followed, restarted nor was hit by a fault from invoke(P) to ok(Q); or ok(poll of n, h), n led with high "
        "watermarks H from its invoke to its ok: h > max H, or h < min H; or h > the end of n's final log, and n "
        "led to the end",
        words="A leader told consumers a high watermark that is lower than one that it had told before, that it "
        "never had, or that is beyond its log.",
        evidence="client: poll; broker: leader, high-watermark; metadata: state; log: snapshot; nemesis",
        unchecked="A poll during which the node may have begun or ceased to lead; where the metadata are "
        "polled, each.",
        source="Kafka Replication Design V3, F and G; KIP-207",
    ),
)
_KIND: Final = Kind.WRONG_HIGH_WATERMARK


def told_high_watermarks(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find high watermarks that consumers were told and that fall within one leadership, or are not the leader's.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each leadership and each way in which it told wrong high watermarks.

    Source:  Kafka Replication Design V3, F and G.
    """
    return once([*_falling(ops), *(_not_its_own(ops) if report_high_watermarks(ops) else ()), *_beyond(ops)])


def _falling(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield, for each leadership, the first poll that was told less than one that had ended before it began."""
    for (node, _), answered in by_reign(ops).items():
        ended, top = 0, None
        for polled in sorted(answered, key=lambda each: each.invoked.index):
            while ended < len(answered) and answered[ended].ok.index < polled.invoked.index:
                if top is None or answered[ended].high_watermark > top.high_watermark:
                    top = answered[ended]
                ended += 1
            if top is not None and polled.high_watermark < top.high_watermark:
                text = f"{polled.said} was told high watermark {polled.high_watermark}, after {top.said} was told "
                text += f"{top.high_watermark}; {node} led all the time"
                span = ((polled.high_watermark, top.high_watermark),)
                yield anomaly(ops, _KIND, text, [top.ok.index, polled.ok.index], [node], None, span)
                break


def _not_its_own(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield, for each leadership, the first poll that was told what the leader did not have when it answered."""
    for (node, _), answered in by_reign(ops).items():
        found = (each for polled in answered for each in _unlike(ops, polled))
        said = next(found, None)
        if said is not None:
            polled, text, op, span = said
            yield anomaly(ops, _KIND, text, [polled.ok.index, op.index], [node], None, (span,))


def _unlike(ops: Sequence[Op], polled: Polled) -> Iterator[tuple[Polled, str, Op, tuple[int, int]]]:
    had = [*led_with(ops, polled)]
    if not had:
        return
    (low, first), (most, last) = min(had, key=_high), max(had, key=_high)
    high, node = polled.high_watermark, polled.event.node
    said = f"{polled.said} was told high watermark {high}"
    if high > most:
        yield polled, f"{said}; {node}, the leader, had reported {most} at most", last, (most, high)
    elif high < low:
        yield polled, f"{said}; {node}, the leader, had {low} at {at(first)}", first, (high, low)


def _high(each: tuple[int, Op]) -> int:
    return each[0]


def _beyond(ops: Sequence[Op]) -> Iterator[Anomaly]:
    """Yield the first poll that was told more than the log holds with which its leader then led to the end."""
    log = leaders_log(ops)
    if log is None or is_polled(ops):
        return  # or others may have led between two looks
    last = max((index for index in changes_of(ops).get(log.node, ()) if index < log.index), default=-1)
    for polled in polls(ops):
        later = last < polled.invoked.index and polled.ok.index < log.index
        if polled.event.node == log.node and later and polled.high_watermark > log.end:
            text = f"{polled.said} was told high watermark {polled.high_watermark}; the log of {log.node}, which "
            text += f"led to the end, ends at {log.end}"
            span = ((log.end, polled.high_watermark),)
            yield anomaly(ops, _KIND, text, [polled.ok.index, log.index], [log.node], None, span)
            return
