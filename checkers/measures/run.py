"""
Measure one run: its produces, its faults, and how long it lasted.

A measure is one number about one thing (`Measure`), and those of a run add up, wherever each was taken: a small
run is measured from its lines, a large one from its tables, part by part. `facts_of` adds them up to facts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from checkers.facts.activity import Counts
from checkers.measures.availability import Availability, Bools, Ints, window_of, windows_of
from checkers.measures.in_force import InForce
from checkers.measures.latency import bounds_of, buckets_of
from harness.events import Done, LineUnreadable, Produce, Setup
from harness.model import Op, OpType, Source
from harness.target.traits import traits_of

# What is measured, a word, two numbers that tell it from others, and two that add up: a sum and a maximum.
Measure: TypeAlias = tuple[str, str, int, int, int, int]
NAMES: Final = ("what", "name", "key", "place", "sum", "max")

LATENCY, WINDOW, OPEN, ASKED, BIT, SPAN, ABOUT = "latency", "window", "open", "asked", "bit", "span", "about"
# A kind of fact, beside the measures.
FAULT: Final = "fault"
UNREADABLE: Final = "unreadable"

# All that is looked at: no other op is decoded.
LOOKED_AT: Final[Mapping[Source, frozenset[str]]] = {
    Source.RUNNER: frozenset({"setup", "done", "unreadable"}),
    Source.CLIENT: frozenset({"produce"}),
    Source.SIMULATOR: frozenset({"world"}),
    Source.FABRIC: frozenset(
        {"hold", "release", "cut", "heal", "delay", "double", "held", "lost", "delayed", "doubled"}
    ),
}


def is_looked_at(source: Source, f: str) -> bool:
    """Return True for an op that is measured; all that the nemesis does is."""
    return source is Source.NEMESIS or f in LOOKED_AT.get(source, ())


@dataclass(slots=True)
class RunMeasures:
    """The measures of a run's ops so far, which are those of `is_looked_at` in index order."""

    setup: Setup | None = None
    _done: bool = False
    _last_ns: int = 0
    _unreadable: str = ""
    _counts: Counts = field(default_factory=Counts)
    _in_force: InForce = field(default_factory=InForce)
    _waiting: dict[tuple[Any, ...], tuple[int, int]] = field(default_factory=dict)
    _ended: list[tuple[int, int, str, int]] = field(default_factory=list)

    def add(self, op: Op) -> None:
        """Take one op into account; raise HistoryError if it is no op that is known."""
        self._last_ns = max(self._last_ns, op.time_ns)
        match op.event:
            case Setup() as setup:
                self.setup = self.setup or setup
            case Done():
                self._done = True
            case LineUnreadable(error=error):
                self._unreadable = self._unreadable or error
            case Produce() as produce:
                self._add_produce(op, produce)
            case _:
                self._counts.add(op)
                self._in_force.add(op)

    def measures(self) -> Iterator[Measure]:
        """Yield all measures; if something of the run cannot be read, only what that is."""
        problem = self._problem()
        if problem or self.setup is None:
            yield UNREADABLE, problem, 0, 0, 1, 0
            return
        yield ABOUT, _about(self.setup), 0, 0, 0, self._last_ns
        for what, counts in ((ASKED, self._counts.asked), (BIT, self._counts.bit)):
            for kind, count in counts.items():
                yield what, kind, 0, 0, count, 0
        for kind, since_ns, end_ns in self._in_force.spans(self._last_ns):
            yield SPAN, kind, since_ns, end_ns, 0, 0
        yield from self._produces(window_of(virtual=traits_of(self.setup).exact_order))

    def _problem(self) -> str:
        if self._unreadable:
            return self._unreadable
        if self.setup is None:
            return "no set-up; expected one in the first line"
        return "" if self._done else "ends without `done`; expected a whole history"

    def _add_produce(self, op: Op, produce: Produce) -> None:
        key = op.process, *produce.asked
        if op.type is OpType.INVOKE:
            self._waiting[key] = op.time_ns, produce.acks
            return
        sent_ns, acks = self._waiting.pop(key, (op.time_ns, produce.acks))
        self._ended.append((sent_ns, op.time_ns, op.type.value, acks))

    def _produces(self, window_ns: int) -> Iterator[Measure]:
        if self._ended:
            sent, ended, outcomes, acks = zip(*self._ended, strict=True)
            yield from produce_measures(_ints(sent), _ints(ended), np.array(outcomes), _ints(acks), window_ns)
        if self._waiting:
            sent_ns = _ints([sent for sent, _ in self._waiting.values()])
            yield OPEN, "", 0, 0, len(sent_ns), 0
            yield from _windows(sent_ns, sent_ns, np.zeros(len(sent_ns), dtype=bool), window_ns)


def produce_measures(
    sent_ns: Ints, ended_ns: Ints, outcomes: np.ndarray[Any, Any], acks: Ints, window_ns: int
) -> Iterator[Measure]:
    """Yield the latencies of produces that ended, and their windows."""
    buckets, took = buckets_of(ended_ns - sent_ns), ended_ns - sent_ns
    for outcome in np.unique(outcomes):
        for each in np.unique(acks[outcomes == outcome]):
            chosen = (outcomes == outcome) & (acks == each)
            found, place, counts = np.unique(buckets[chosen], return_inverse=True, return_counts=True)
            most = np.zeros(len(found), dtype=np.int64)
            np.maximum.at(most, place, took[chosen])
            for bucket, count, max_ns in zip(found.tolist(), counts.tolist(), most.tolist(), strict=True):
                yield LATENCY, str(outcome), int(each), bucket, count, max_ns
    acked = (outcomes == OpType.OK.value) & (acks != 0)
    yield from _windows(sent_ns, ended_ns, acked, window_ns)


def facts_of(measures: Iterable[Measure]) -> list[dict[str, Any]]:
    """
    Return the facts of one run, each with `what` it is: a `run`, a `fault`, a `latency`, or what is `unreadable`.

    Args:
        measures: all measures of the run, in any order; those of one thing may be in parts.
    """
    found: dict[str, list[Measure]] = {}
    for measure in measures:
        found.setdefault(measure[0], []).append(measure)
    if UNREADABLE in found:
        return [{"what": UNREADABLE, "reason": min(name for _, name, *_ in found[UNREADABLE])}]
    if ABOUT not in found:
        return [{"what": UNREADABLE, "reason": "no set-up; expected one in the first line"}]
    latencies = [_latency(*key, *value) for key, value in sorted(_added(found.get(LATENCY, ())).items())]
    asked, bit = _totals(found.get(ASKED, ())), _totals(found.get(BIT, ()))
    faults = [
        {"what": FAULT, "kind": kind, "asked": asked[kind], "bit": bit[kind]}
        for kind in sorted(asked.keys() | bit.keys())
        if asked[kind] or bit[kind]
    ]
    return [_run(found, latencies), *faults, *latencies]


def _run(found: Mapping[str, Sequence[Measure]], latencies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    about = json.loads(found[ABOUT][0][1])
    window_ns = window_of(virtual=about["virtual"])
    windows = {key: bool(available) for (_, key, _), (_, available) in _added(found.get(WINDOW, ())).items()}
    availability = Availability.of(windows)
    outcomes: Counter[str] = Counter()
    for each in latencies:
        outcomes[each["outcome"]] += each["count"]
    run = {
        "what": "run",
        "release": about["release"],
        "lasted_s": found[ABOUT][0][5] / 1e9,
        **{outcome: outcomes[outcome] for outcome in ("ok", "fail", "info")},
        "open": sum(count for *_, count, _ in found.get(OPEN, ())),
        "window_s": window_ns / 1e9,
        "windows": availability.windows,
        "available": availability.available,
        "unavailable_s": 0.0,
        "around": [],
    }
    if availability.stretch is None:
        return run
    first_ns, end_ns = (window * window_ns for window in availability.stretch)
    around = {
        name
        for _, name, since, until, *_ in found.get(SPAN, ())
        if since < end_ns and until >= first_ns - window_ns
    }
    return run | {
        "unavailable_s": (end_ns - first_ns) / 1e9,
        "unavailable_from_s": first_ns / 1e9,
        "around": sorted(around),
    }


def _latency(outcome: str, acks: int, bucket: int, count: int, max_ns: int) -> dict[str, Any]:
    from_ns, to_ns = bounds_of(bucket)
    about = {"what": LATENCY, "outcome": outcome, "acks": acks, "bucket": bucket}
    return about | {"from_ns": from_ns, "to_ns": to_ns, "count": count, "max_ns": max_ns}


def _added(measures: Iterable[Measure]) -> dict[tuple[str, int, int], tuple[int, int]]:
    """Return the sum and the maximum of each thing that was measured."""
    found: dict[tuple[str, int, int], tuple[int, int]] = {}
    for _, name, key, place, count, most in measures:
        before = found.get((name, key, place), (0, 0))
        found[name, key, place] = before[0] + count, max(before[1], most)
    return found


def _totals(measures: Iterable[Measure]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for _, name, _, _, count, _ in measures:
        totals[name] += count
    return totals


def _windows(sent_ns: Ints, ended_ns: Ints, acked: Bools, window_ns: int) -> Iterator[Measure]:
    for window, available in windows_of(sent_ns, ended_ns, acked, window_ns).items():
        yield WINDOW, "", window, 0, 1, int(available)


def _about(setup: Setup) -> str:
    # The protocols of another system are its releases; our broker has one release, and many protocols.
    traits = traits_of(setup)
    release = f"{setup.target}:{setup.protocol}" if traits.models else setup.target
    return json.dumps({"release": release, "virtual": traits.exact_order})


def _ints(numbers: Sequence[int]) -> Ints:
    return np.array(numbers, dtype=np.int64)
