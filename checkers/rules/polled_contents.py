"""Consumers are shown what clients sent, and each record at one offset, also what no final log holds any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from checkers.definition import Definition
from checkers.facts.moments import anomaly
from checkers.facts.places import places_of
from checkers.facts.polls import Shown, first_polls, polled_places, twice_polled
from checkers.facts.sent import sent_values
from checkers.facts.view import offsets_text
from harness.model import Anomaly, Kind, Op, ranges_of

KINDS: Final = (
    Definition(
        kind=Kind.DUPLICATE,
        formula="|{o : a poll or a final log has v at o}| > |{produce(v) invoked, not failed}|, and final logs "
        "alone do not show it, if clients send once, or if v's producer is idempotent and no leader lacked the v "
        "that a poll showed when it appended the v that final logs hold",
        words="Consumers and final logs together show a record at more offsets than clients sent it to. If "
        "clients may send it again, and its producer is not idempotent, that is at-least-once delivery. A broker "
        "that has lost an idempotent producer's record does not know it again; whether it may be lost, other "
        "rules judge.",
        evidence="client: poll, produce; log: batch; broker: append, truncate, recovered; runner: setup "
        "(sends_once, idempotent)",
        unchecked="",
        source="Jepsen: kafka, duplicate; KIP-98: producers' state is rebuilt from the log",
    ),
    Definition(
        kind=Kind.PHANTOM,
        formula="ok(poll P), v in P, and no produce(v) was invoked, or every produce(v) failed; no final log "
        "holds v",
        words="A consumer was shown a record that no client sent, or one whose produce surely failed, and that no "
        "final log holds.",
        evidence="client: poll, produce; log: batch",
        unchecked="A produce with an unknown outcome, which may be appended late.",
        source="Jepsen: kafka, aborted read (G1a) and garbage reads",
    ),
)

_NEVER_SENT: Final = "which no client sent"
_FAILED: Final = "though its produce surely failed"
_TWICE: Final = "more often than clients sent it"


def polled_contents(ops: Sequence[Op]) -> list[Anomaly]:
    """
    Find records that polls showed and no client sent, or that they showed more often than clients sent them.

    Args:
        ops: the ops of one partition and the global ones.

    Returns:
        One anomaly for each way in which records are wrong; none for what final logs show alone.

    Source:  Jepsen's checks of Kafka: duplicates, garbage reads, aborted reads.
    """
    groups: dict[tuple[Kind, str], list[str]] = {}
    for kind, way, value in _wrong(ops):
        groups.setdefault((kind, way), []).append(value)
    by_value = _by_value(ops, {value for values in groups.values() for value in values})
    return [_anomaly(ops, kind, way, values, by_value) for (kind, way), values in groups.items()]


def _wrong(ops: Sequence[Op]) -> Iterator[tuple[Kind, str, str]]:
    sent, places, twice = sent_values(ops), places_of(ops), twice_polled(ops)
    for value in polled_places(ops):
        known = sent.get(value)
        if known is None or not known.appends_max:
            if value not in places:
                yield Kind.PHANTOM, _NEVER_SENT if known is None else _FAILED, value
        elif value in twice:
            yield Kind.DUPLICATE, _TWICE, value


def _by_value(ops: Sequence[Op], values: set[str]) -> Mapping[str, Sequence[Shown]]:
    found: dict[str, list[Shown]] = {}
    for shown in first_polls(ops) if values else ():
        if shown[1] in values:
            found.setdefault(shown[1], []).append(shown)
    return found


def _anomaly(
    ops: Sequence[Op], kind: Kind, way: str, values: Sequence[str], by_value: Mapping[str, Sequence[Shown]]
) -> Anomaly:
    first = first_polls(ops)[by_value[values[0]][0]]
    sent, places, twice = sent_values(ops), places_of(ops), twice_polled(ops)
    own = twice.get(values[0], polled_places(ops)[values[0]])
    ranges = ranges_of(offset for value in values for offset in twice.get(value, polled_places(ops)[value]))
    text = f"{first.said} showed {values[0]!r}, {way}"
    text += f": polls and final logs have it at {offsets_text(ranges_of(own))}" if kind is Kind.DUPLICATE else ""
    if len(values) > 1:
        text += f"; so are {len(values)} records, at {offsets_text(ranges)}"
    proof: set[int] = set()
    for value in values:
        proof.update(first_polls(ops)[shown].ok.index for shown in by_value[value])
        proof.update(place.batch for place in places.get(value, ()))
        if value in sent:
            proof.update(op.index for op in (*sent[value].invokes, *sent[value].failed))
    return anomaly(ops, kind, text, proof, (), None, ranges)
