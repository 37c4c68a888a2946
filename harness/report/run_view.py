"""
The page's section about one run: its steps, its findings with their proof, its drawings, its history.

A run without a history has a section with the data of the suite only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness import events
from harness.model import Anomaly, Op, Source
from harness.report import limits
from harness.report.exchanges import Exchange, exchanges_of, mentioned
from harness.report.fates_svg import draw_fates
from harness.report.lineage_svg import SIGNS, draw_lineage
from harness.report.reading import Reading, Span
from harness.report.replicas import Replayed, replayed, replicas_of
from harness.report.svg import Drawing
from harness.report.text import (
    epoch_text,
    exact,
    offset_ranges,
    seconds,
    shortened,
    took,
    value_text,
)
from harness.report.timeline import timeline_of
from harness.report.timeline_svg import draw_timeline
from harness.run.result import RunResult

# Ops with a lower rank are kept longer if a history is too long to show; other events have their source's rank.
_RANKS: Final[Mapping[type[events.Event], int]] = {
    events.Truncate: 1,
    events.Recovered: 1,
    events.Leader: 1,
    events.Follower: 1,
    events.Stuck: 1,
    events.Snapshot: 1,
    events.Append: 4,
    events.Batch: 4,
    events.Flush: 5,
}
_SOURCE_RANKS: Final[Mapping[Source, int]] = {
    Source.RUNNER: 1,
    Source.NEMESIS: 1,
    Source.SIMULATOR: 1,
    Source.METADATA: 2,
    Source.CLIENT: 2,
    Source.FABRIC: 3,
    Source.BROKER: 3,
    Source.LOG: 3,
    Source.SIMULATOR: 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A history line as a row of a table; exact is its time in nanoseconds."""

    index: int
    time: str
    exact: str
    source: str
    process: str
    type: str
    f: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One anomaly as text, the lines that prove it, the indexes that are not shown or not found, and a drawing."""

    anomaly: Anomaly
    sign: str
    about: str
    sentence: str
    lines: tuple[Line, ...]
    unshown: str
    missing: str
    fates: Drawing | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step, as it was played."""

    number: int
    line: str
    text: str
    at: str
    took: str
    outcome: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The scenario's text (paragraphs), and the steps that follow it."""

    narrative: tuple[str, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """
    The section of one run.

    Attributes:
        lines: the history lines that are shown.
        total: the number of lines in the history.
        left_out: the number of lines that are not shown, by event.
        abridged: what the section of a large run lacks, "" if it is made from all lines.
        hidden: the topic and partition, which the lines omit.
    """

    result: RunResult
    key: str
    facts: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]
    more_findings: str
    passages: tuple[Passage, ...]
    exchanges: tuple[Exchange, ...]
    more_exchanges: int
    lineages: tuple[tuple[str, Drawing], ...]
    timeline: Drawing | None
    lines: tuple[Line, ...]
    total: int
    abridged: str
    left_out: str
    hidden: str

    @property
    def shown(self) -> frozenset[int]:
        """The indexes in the section's table of the history, to which links can point."""
        return frozenset(line.index for line in self.lines)


def view_of(result: RunResult, key: str, ops: Sequence[Op]) -> RunView:
    """Return the section of a run; ops is its history, empty if there is none."""
    reading = Reading(ops=ops)
    topic, partition = reading.partition
    hide = {"topic": topic, "partition": partition} if topic else {}
    shown = result.anomalies[: limits.ANOMALIES_MAX]
    exchanges = exchanges_of(ops)
    replay = replayed(reading, topic, partition)
    proof = frozenset(index for anomaly in shown for index in anomaly.proof)
    kept = chosen(ops, proof, mentioned(exchanges[: limits.EXCHANGES_MAX]))
    rest = Counter(op.f for op in ops)
    rest.subtract(op.f for op in kept)
    rest.update(reading.abridged.left_out if reading.abridged else {})
    return RunView(
        result=result,
        key=key,
        facts=_facts(reading),
        findings=tuple(_finding(reading, anomaly, hide) for anomaly in shown),
        more_findings=_more_findings(result.anomalies[limits.ANOMALIES_MAX :]),
        passages=_passages(reading),
        exchanges=exchanges[: limits.EXCHANGES_MAX],
        more_exchanges=max(len(exchanges) - limits.EXCHANGES_MAX, 0),
        lineages=_lineages(reading, result.anomalies, replay) if ops else (),
        timeline=draw_timeline(timeline_of(reading, proof, replay.appended), ops) if ops else None,
        lines=tuple(_line(op, hide) for op in kept),
        total=reading.total,
        abridged=_abridged(reading),
        left_out=", ".join(f"{count:,} {f}" for f, count in rest.most_common() if count),
        hidden=f"{topic}-{partition}" if topic else "",
    )


def chosen(ops: Sequence[Op], *first: Collection[int]) -> tuple[Op, ...]:
    """
    Return the ops that a page shows, in order: all, or the HISTORY_ROWS_MAX most important.

    Args:
        ops: the history.
        first: sets of indexes that are preferred to all other ops, the most important set first; together they get
            at most half of the rows.
    """
    if len(ops) <= limits.HISTORY_ROWS_MAX:
        return tuple(ops)
    half = limits.HISTORY_ROWS_MAX // 2
    before = [index for indexes in first for index in sorted(indexes)][:half]
    ranked = sorted(ops, key=lambda op: (_RANKS.get(type(op.event), _SOURCE_RANKS[op.source]), op.index))
    wanted = dict.fromkeys([*before, *(op.index for op in ranked)])
    kept = set(list(wanted)[: limits.HISTORY_ROWS_MAX])
    return tuple(op for op in ops if op.index in kept)


def _line(op: Op, hide: Mapping[str, Any], near: Sequence[tuple[int, int]] = ()) -> Line:
    return Line(
        index=op.index,
        time=seconds(op.time_ns),
        exact=exact(op.time_ns),
        source=op.source.value,
        process=op.process,
        type=op.type.value,
        f=op.f,
        value=value_text(op.value, hide=hide, near=near),
    )


# --- facts -------------------------------------------------------------------------------------------------


def _facts(reading: Reading) -> tuple[tuple[str, str], ...]:
    setup = reading.setup
    if setup is None:
        return ()
    facts = {
        "nodes": ", ".join(f"{name} is broker {number}" for name, number in setup.nodes.items()),
        "services": " ".join(reading.services),
        "replicas": " ".join(setup.replicas),
        "records": ", ".join(
            f"{name} ×{len(values):,}" if len(values) != 1 else name for name, values in setup.records.items()
        ),
        "min ISR": str(setup.min_isr),
        "unclean election": "allowed" if setup.unclean else "never",
        "power loss": setup.power_tier,
        "rules": ", ".join(f"{rule}={value}" for rule, value in setup.rules.items()),
    }
    return tuple((name, text) for name, text in facts.items() if text)


# --- findings ----------------------------------------------------------------------------------------------


def _finding(reading: Reading, anomaly: Anomaly, hide: Mapping[str, Any]) -> Finding:
    known = [reading.by_index[index] for index in anomaly.proof if index in reading.by_index]
    others = [index for index in anomaly.proof if index not in reading.by_index]
    unread = [index for index in others if reading.abridged and index < reading.total]
    missing = [index for index in others if not reading.abridged or index >= reading.total]
    unshown = [*(op.index for op in known[limits.PROOF_ROWS_MAX :]), *unread]
    return Finding(
        anomaly=anomaly,
        sign=SIGNS.get(anomaly.kind, "!"),
        about=_about(anomaly),
        sentence=shortened(anomaly.sentence, limits.SENTENCE_CHARS_MAX),
        lines=tuple(_line(op, hide, anomaly.ranges) for op in known[: limits.PROOF_ROWS_MAX]),
        unshown=_indexes(unshown),
        missing=_indexes(missing),
        fates=draw_fates(anomaly.fates, reading.by_index) if anomaly.fates else None,
    )


def _indexes(indexes: Sequence[int]) -> str:
    more = len(indexes) - limits.INDEXES_MAX
    return ", ".join(map(str, indexes[: limits.INDEXES_MAX])) + (f" and {more:,} more" if more > 0 else "")


def _about(anomaly: Anomaly) -> str:
    parts = [f"{anomaly.topic}-{anomaly.partition}"]
    if anomaly.ranges:
        parts.append(f"{'offset' if anomaly.offsets == 1 else 'offsets'} {offset_ranges(anomaly.ranges)}")
    if anomaly.nodes:
        parts.append(f"{'node' if len(anomaly.nodes) == 1 else 'nodes'} {', '.join(anomaly.nodes)}")
    if anomaly.epoch is not None:
        parts.append(epoch_text(anomaly.epoch))
    if anomaly.checker:
        parts.append(f"found by {anomaly.checker}")
    return " · ".join(parts)


def _more_findings(rest: Sequence[Anomaly]) -> str:
    counted = Counter(anomaly.kind.value for anomaly in rest)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in counted.most_common())
    return f"{len(rest):,} more anomalies are not shown: {kinds}." if rest else ""


def _abridged(reading: Reading) -> str:
    """Return what the section of a large run lacks, as a sentence."""
    if reading.abridged is None:
        return ""
    return (
        f"This run is abridged: of its {reading.total:,} history lines, {len(reading.ops):,} are here. "
        "Of produces, appends, batches, high watermarks and fetches there are only those that prove an anomaly; "
        "appends and batches that follow each other are drawn as one, without the names of their records, and "
        "what was acknowledged is not drawn. The verdict is about all of them."
    )


# --- narrative ---------------------------------------------------------------------------------------------


def _passages(reading: Reading) -> tuple[Passage, ...]:
    passages: list[tuple[str, list[Step]]] = []
    steps = [(s, s.event) for s in reading.spans if isinstance(s.event, events.Step)][: limits.STEPS_MAX]
    for number, (span, step) in enumerate(steps, start=1):
        if not passages or (step.narrative and step.narrative != passages[-1][0]):
            passages.append((step.narrative, []))
        passages[-1][1].append(_step(number, span, step))
    return tuple(
        Passage(narrative=tuple(text.split("\n\n")) if text else (), steps=tuple(below))
        for text, below in passages
    )


def _step(number: int, span: Span, step: events.Step) -> Step:
    return Step(
        number=number,
        line=str(step.line),
        text=step.text,
        at=seconds(span.first.time_ns),
        took=took(span.last.time_ns - span.first.time_ns) if span.last else "",
        outcome=span.outcome,
        error=shortened(step.error),
    )


# --- drawings ----------------------------------------------------------------------------------------------


def _lineages(reading: Reading, anomalies: Sequence[Anomaly], replay: Replayed) -> tuple[tuple[str, Drawing], ...]:
    places = dict.fromkeys([reading.partition, *((a.topic, a.partition) for a in anomalies)])
    drawings = []
    for topic, partition in list(places)[: limits.PARTITIONS_MAX]:
        here = replay if (topic, partition) == reading.partition else replayed(reading, topic, partition)
        replicas = replicas_of(reading, topic, partition, here.cuts)
        if not replicas:
            continue
        about = [a for a in anomalies[: limits.ANOMALIES_MAX] if (a.topic, a.partition) == (topic, partition)]
        drawings.append((f"{topic}-{partition}", draw_lineage(reading, topic, partition, replicas, about)))
    return tuple(drawings)
