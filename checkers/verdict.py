"""
Turn anomalies into a verdict and a short canonical text, and compare them with a scenario's expectation.

    text         none | term, term, …
    term         KIND [offsets …] [NODE …] [epoch N] | hang
    offsets      a record's name (m2), 17 or 11-15, both ends included
    NODE         a capital letter, as in the documents

`permitted m2, diverged m2 A B, stuck A` is such a text. `hang` means that the cluster did not recover after every
fault was healed, and that no single replica is the cause. An expectation is exact: anything more or less is a
mismatch. A term may omit nodes and epoch, which then match anything; it may omit offsets only if its kind is not
about offsets. Losses of unpromised records are listed, and need no expectation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from checkers.facts.acked import acked_records
from checkers.facts.fact import fact
from checkers.facts.view import setup_of
from harness.model import Anomaly, Kind, Op, UsageError, Verdict, ranges_of
from harness.scenario.expectation import ABOUT_OFFSETS, HANG, LOSSES, NONE, ON_THE_WAY, Expected

# A record's name -> {offset: index of its ok produce}, in the order in which the scenario names them.
Records = Mapping[str, Mapping[int, int]]

# Offsets of anomalies that are looked at one by one, to name the records that were there.
_NAMED_MAX: Final = 250_000
# Ranges of one kind that a text without names has.
_TERMS_MAX: Final = 50
_SHOWS_EPOCH: Final = frozenset({Kind.TWO_LEADERS, Kind.LED_TWICE})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """One offset of one anomaly (None if it is not about offsets); names are the records that its proof names."""

    kind: Kind
    offset: int | None
    nodes: frozenset[str]
    epoch: int | None
    names: frozenset[str]


def verdict_of(anomalies: Iterable[Anomaly]) -> Verdict:
    """Return the most severe of the anomalies' verdicts; VALID if there are none."""
    return Verdict.merge(anomaly.verdict for anomaly in anomalies)


@fact
def records_of(ops: Sequence[Op]) -> Records:
    """Return each name's acknowledged offsets, with the index of the op that acknowledged each."""
    setup = setup_of(ops)
    records: dict[str, dict[int, int]] = {name: {} for name in (setup.records if setup else ())}
    for acked in acked_records(ops):
        if acked.offset >= 0:
            records.setdefault(acked.name, {})[acked.offset] = acked.index
    return records


def outcome(anomalies: Iterable[Anomaly]) -> list[Anomaly]:
    """
    Return the anomalies that an expectation is compared with.

    Violations on the way (harness/scenario/expectation.py) are left out if another violation shows what came of
    them. If none does, they are the outcome.
    """
    found = list(anomalies)
    shows = any(each.verdict is Verdict.INVALID and each.kind not in ON_THE_WAY for each in found)
    return [each for each in found if not (shows and each.kind in ON_THE_WAY)]


def found_text(anomalies: Iterable[Anomaly], records: Records) -> str:
    """
    Return the findings as the most specific expectation: `lost m2`, `diverged 11-15 A B`, `none`.

    Terms are sorted by kind in the order of the model, then by offset. If a term has all offsets of a named group,
    it has the group's name. If two groups have the same offsets, it has the name in the anomaly's proof, else the
    first. If there are very many offsets, terms have no names.
    """
    anomalies = outcome(anomalies)
    if sum(each.offsets for each in anomalies) > _NAMED_MAX:
        return _wide_text(anomalies)
    return _text([unit for anomaly in anomalies for unit in _units(anomaly, records)], records) or NONE


def difference(expected: Sequence[Expected], anomalies: Iterable[Anomaly], records: Records) -> str:
    """
    Compare exactly; return "" if all is as expected, else a text with the missing and the unexpected findings.

    Raises:
        UsageError: an expectation names a record that was never acknowledged in the run.
    """
    left = [unit for anomaly in outcome(anomalies) for unit in _units(anomaly, records)]
    at: dict[tuple[Kind, int | None], list[_Unit]] = {}
    for unit in left:
        at.setdefault((unit.kind, unit.offset), []).append(unit)
    missing: list[_Unit] = []
    # The narrowest terms match first, so that an open term cannot take a finding that only they accept.
    for term in sorted(expected, key=lambda term: (not term.nodes, term.epoch is None, not term.names)):
        for offset, name in _wanted(term, records):
            here = at.get((term.kind, offset), [])
            match = next((unit for unit in here if _accepts(term, offset, name, unit)), None)
            if match is None:
                missing.append(_missing(term, offset, name))
            else:
                here.remove(match)
    more = [unit for units in at.values() for unit in units if unit.kind is not Kind.UNPROMISED]
    parts = (("missing", _text(missing, records)), ("unexpected", _text(more, records)))
    return "; ".join(f"{word}: {found}" for word, found in parts if found)


def _wide_text(anomalies: Iterable[Anomaly]) -> str:
    """Return findings of very many offsets; nothing is kept of each offset."""
    groups: dict[tuple[Kind, tuple[str, ...], int | None], list[tuple[int, int]]] = {}
    for each in anomalies:
        nodes = () if each.kind in LOSSES else tuple(sorted(each.nodes))
        key = (each.kind, nodes, each.epoch if each.kind in _SHOWS_EPOCH else None)
        groups.setdefault(key, []).extend(each.ranges if each.kind in ABOUT_OFFSETS else ())
    order = list(Kind)
    terms: list[tuple[int, int, str]] = []
    for (kind, nodes, epoch), ranges in groups.items():
        tail = [*nodes, *([f"epoch {epoch}"] if epoch is not None else [])]
        word = HANG if kind is Kind.STUCK and not nodes else kind.value
        for first, text in _wide_offsets(sorted({*ranges})):
            terms.append((order.index(kind), first, " ".join(filter(None, [word, text, *tail]))))
    return ", ".join(text for _, _, text in sorted(terms))


def _wide_offsets(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, str]]:
    """Return the first ranges as text; the last is followed by the number of all others."""
    texts = [
        (first, str(first) if end == first + 1 else f"{first}-{end - 1}") for first, end in ranges[:_TERMS_MAX]
    ]
    if len(ranges) > _TERMS_MAX:
        first, text = texts[-1]
        texts[-1] = (first, f"{text} and {len(ranges) - _TERMS_MAX} more ranges")
    return texts or [(-1, "")]


def _units(anomaly: Anomaly, records: Records) -> list[_Unit]:
    spans = [offset for first, end in anomaly.ranges for offset in range(first, end)]
    # Only a loss is about one named record; other anomalies may be about another record at that offset.
    about = records if anomaly.kind in LOSSES else {}
    return [
        _Unit(
            kind=anomaly.kind,
            offset=offset,
            nodes=frozenset(anomaly.nodes),
            epoch=anomaly.epoch,
            names=frozenset(
                name for name, acked in about.items() if offset is not None and acked.get(offset) in anomaly.proof
            ),
        )
        for offset in (spans if anomaly.kind in ABOUT_OFFSETS and spans else [None])
    ]


def _wanted(term: Expected, records: Records) -> list[tuple[int | None, str | None]]:
    wanted: list[tuple[int | None, str | None]] = []
    for name in term.names:
        if not records.get(name):
            known = ", ".join(name for name, acked in records.items() if acked) or "none"
            raise UsageError(
                f"expectation {term.kind.value} {name}: no record of that name was acknowledged; "
                f"expected one of: {known}"
            )
        wanted += [(offset, name) for offset in records[name]]
    for first, last in term.spans:
        wanted += [(offset, None) for offset in range(first, last + 1)]
    return wanted or [(None, None)]


def _accepts(term: Expected, offset: int | None, name: str | None, unit: _Unit) -> bool:
    return (
        unit.kind is term.kind
        and unit.offset == offset
        and (not term.nodes or frozenset(term.nodes) == unit.nodes)
        and not (term.hang and unit.nodes)
        and (term.epoch is None or term.epoch == unit.epoch)
        and (name is None or not unit.names or name in unit.names)
    )


def _missing(term: Expected, offset: int | None, name: str | None) -> _Unit:
    names = frozenset({name} if name else ())
    return _Unit(kind=term.kind, offset=offset, nodes=frozenset(term.nodes), epoch=term.epoch, names=names)


def _text(units: Iterable[_Unit], records: Records) -> str:
    """Join units into terms: units that differ in nothing that the text shows become one term."""
    groups: dict[tuple[Kind, tuple[str, ...], int | None], list[_Unit]] = {}
    for unit in units:
        nodes = () if unit.kind in LOSSES else tuple(sorted(unit.nodes))
        epoch = unit.epoch if unit.kind in _SHOWS_EPOCH else None
        groups.setdefault((unit.kind, nodes, epoch), []).append(unit)
    order = list(Kind)
    terms: list[tuple[int, int, str]] = []
    for (kind, nodes, epoch), group in groups.items():
        tail = [*nodes, *([f"epoch {epoch}"] if epoch is not None else [])]
        word = HANG if kind is Kind.STUCK and not nodes else kind.value
        for first, offsets in _offsets(group, records):
            terms.append((order.index(kind), first, " ".join([word, *offsets, *tail])))
    return ", ".join(term for _, _, term in sorted(terms))


def _offsets(group: Sequence[_Unit], records: Records) -> list[tuple[int, list[str]]]:
    left = [unit for unit in group if unit.offset is not None]
    found: list[tuple[int, list[str]]] = []
    # The largest first: if one group's offsets are within another's, the name that covers more is used.
    for name, acked in sorted(records.items(), key=lambda item: -len(item[1])):
        named = [unit for unit in left if unit.offset in acked and (not unit.names or name in unit.names)]
        if acked and {unit.offset for unit in named} == acked.keys():
            found.append((min(acked), [name]))
            taken = {*named}
            left = [unit for unit in left if unit not in taken]
    for first, end in ranges_of(unit.offset for unit in left if unit.offset is not None):
        found.append((first, [str(first) if end == first + 1 else f"{first}-{end - 1}"]))
    return found or [(-1, [])]
