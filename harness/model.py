"""
The data model of a run: what was observed (Op), what was proven (Anomaly), what is concluded (Verdict).

Every other package may import this module; it imports harness.events alone, what an op says, and does no IO.

    FencepostError
    |- UsageError        you: a wrong option, a taken port, too little disk, a broken Java   (exit 2)
    |- HistoryError      the recorder: a history that contradicts itself
    |- TargetError       the system under test: it did what no release of it may do
    |- PreconditionError the run: a step of a scenario did not come about, or a fault did not bite (unknown)

Offsets are exclusive wherever they name an end: log end offset, high watermark, `to` of a truncation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any, Final, TypeVar

from harness.events import Event, OpType, Source, Unknown
from harness.events.codec import MisfitError, decode, encode, key_of, key_of_kind, place_in

__all__ = [
    "EXIT_CODES",
    "EXIT_OF_VERDICT",
    "VERDICT_OF",
    "Anomaly",
    "BeyondHelpError",
    "FencepostError",
    "HistoryError",
    "Kind",
    "Op",
    "OpType",
    "PreconditionError",
    "Source",
    "TargetError",
    "UsageError",
    "Verdict",
    "events_of",
    "ranges_of",
]


class FencepostError(Exception):
    """Say what went wrong, where, what was expected and what to do; every error of ours is one of these."""


class UsageError(FencepostError):
    """The person or the machine is not as the command needs it: exit code 2."""


class HistoryError(FencepostError):
    """A history is malformed or contradicts itself; names the op."""


class TargetError(FencepostError):
    """The system under test answered what it may not answer."""


class PreconditionError(FencepostError):
    """A scenario's step was not met, or a fault's probe saw that it did not bite: the cell is unknown."""


class BeyondHelpError(PreconditionError):
    """What was waited for can come about no more, so that nobody waited any longer."""


_E = TypeVar("_E", bound=Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """
    One line of a history: who did or saw what, and when.

    Attributes:
        time_ns: nanoseconds since the run began, by the collector's clock; index rises by one.
        value: JSON data as recorded; `event` is what it means, and what rules and reports read.

    Source: Jepsen's history, with faults and broker events as ops among the clients' ops.
    """

    index: int
    time_ns: int
    source: Source
    process: str
    type: OpType
    f: str
    value: Mapping[str, Any] = field(default_factory=dict)
    _event: Event | None = field(default=None, init=False, repr=False, compare=False)

    @staticmethod
    def of(event: Event, *, index: int, time_ns: int, process: str, type: OpType) -> Op:
        """Return the op that says an event."""
        source, f = key_of(event)
        op = Op(index=index, time_ns=time_ns, source=source, process=process, type=type, f=f, value=encode(event))
        if not isinstance(event, Unknown):  # what is recorded as received may be known, and is decoded when asked
            object.__setattr__(op, "_event", event)
        return op

    @property
    def event(self) -> Event:
        """
        What the op says, decoded once: harness/events has the classes, `Unknown` is what none of them is.

        Raises:
            HistoryError: a key that the event must have is missing, or a value has the wrong type.
        """
        found = self._event
        if found is None:
            try:
                found = decode(self.source, self.f, self.type, self.value)
            except MisfitError as error:
                raise HistoryError(f"op {self.index}: {self.source} {self.f!r}: {error}") from error
            object.__setattr__(self, "_event", found)
        return found

    @property
    def place(self) -> tuple[str, int] | None:
        """The topic and partition that the op names, None where it names none."""
        return place_in(self.value)

    def to_json(self) -> str:
        """Give the op as one line of JSON, keys in a fixed order."""
        return json.dumps(
            {
                "index": self.index,
                "time_ns": self.time_ns,
                "source": self.source.value,
                "process": self.process,
                "type": self.type.value,
                "f": self.f,
                "value": dict(self.value),
            },
            separators=(",", ":"),
        )

    @staticmethod
    def from_json(line: str) -> Op:
        """Read one line of JSON; raise HistoryError where it is not an op, with the line."""
        try:
            raw = json.loads(line)
            return Op(
                index=int(raw["index"]),
                time_ns=int(raw["time_ns"]),
                source=Source(raw["source"]),
                process=str(raw["process"]),
                type=OpType(raw["type"]),
                f=str(raw["f"]),
                value=raw.get("value", {}),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise HistoryError(
                f"history line {line[:120]!r}: {error!r}; expected one JSON object with "
                "index, time_ns, source, process, type, f and value"
            ) from error


def events_of(ops: Iterable[Op], kind: type[_E]) -> Iterator[tuple[Op, _E]]:
    """Yield every op that says an event of that class, with the event; no other op is decoded."""
    source, f = key_of_kind(kind)
    for op in ops:
        if op.source is source and f in (op.f, None):
            event = op.event
            if isinstance(event, kind):
                yield op, event


class Verdict(IntEnum):
    """What a run is, by severity: merging takes the larger, so nothing masks a violation."""

    VALID = 0
    PERMITTED = 1
    UNKNOWN = 2
    HANG = 3
    INVALID = 4

    @staticmethod
    def merge(verdicts: Iterable[Verdict]) -> Verdict:
        """Give the most severe of them; VALID when there is none."""
        return max(verdicts, default=Verdict.VALID)


# One table for every command. 1 is Python's own for a crash, 2 argparse's own for wrong usage.
EXIT_CODES: Final[dict[str, int]] = {
    "valid": 0,
    "crash": 1,
    "usage": 2,
    "unknown": 3,
    "invalid": 4,
    "hang": 5,
}

EXIT_OF_VERDICT: Final[dict[Verdict, int]] = {
    Verdict.VALID: EXIT_CODES["valid"],
    Verdict.PERMITTED: EXIT_CODES["valid"],
    Verdict.UNKNOWN: EXIT_CODES["unknown"],
    Verdict.HANG: EXIT_CODES["hang"],
    Verdict.INVALID: EXIT_CODES["invalid"],
}


class Kind(StrEnum):
    """What an anomaly is. VERDICT_OF gives how severe each is; docs/checkers.md is printed from both."""

    LOST = "lost"
    PERMITTED = "permitted"
    UNCLEAN = "permitted-unclean"
    RETURNED = "returned-unseen"
    LAST_STANDING = "last-standing"
    UNPROMISED = "unpromised"
    DIVERGED = "diverged"
    TWO_LEADERS = "two-leaders"
    LED_TWICE = "led-twice"
    DISORDER = "disorder"
    HOLE = "hole"
    CHECKPOINT = "checkpoint"
    STUCK = "stuck"
    EXITED = "exited"
    UNREADABLE = "unreadable"
    UNCHECKED = "unchecked"
    VACUOUS = "vacuous"
    ORACLE_COMMITTED = "oracle-committed"
    ORACLE_PREFIX = "oracle-prefix"
    ORACLE_ACKNOWLEDGED = "oracle-acknowledged"


# What the simulator's oracles prove, step by step; no other environment has them.
ORACLES: Final = frozenset({Kind.ORACLE_COMMITTED, Kind.ORACLE_PREFIX, Kind.ORACLE_ACKNOWLEDGED})

VERDICT_OF: Final[dict[Kind, Verdict]] = {
    Kind.LOST: Verdict.INVALID,
    Kind.PERMITTED: Verdict.PERMITTED,
    Kind.UNCLEAN: Verdict.PERMITTED,
    Kind.RETURNED: Verdict.PERMITTED,
    Kind.LAST_STANDING: Verdict.PERMITTED,
    Kind.UNPROMISED: Verdict.VALID,
    Kind.DIVERGED: Verdict.INVALID,
    Kind.TWO_LEADERS: Verdict.INVALID,
    Kind.LED_TWICE: Verdict.INVALID,
    Kind.DISORDER: Verdict.INVALID,
    Kind.HOLE: Verdict.INVALID,
    Kind.CHECKPOINT: Verdict.INVALID,
    Kind.STUCK: Verdict.HANG,
    Kind.EXITED: Verdict.INVALID,
    Kind.UNREADABLE: Verdict.UNKNOWN,
    Kind.UNCHECKED: Verdict.UNKNOWN,
    Kind.VACUOUS: Verdict.UNKNOWN,
    **dict.fromkeys(sorted(ORACLES), Verdict.INVALID),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """
    One proven violation (or permitted loss), with the history lines that prove it.

    Shapes:  ranges are [first, end) pairs of offsets, end exclusive, rising, never touching; () where the
             anomaly is not about offsets. nodes are node names as in the history ("A", "B"). epoch is the
             leader epoch it is about, or None. proof holds indexes of Ops in this run's history.
    """

    kind: Kind
    topic: str
    partition: int
    ranges: tuple[tuple[int, int], ...] = ()
    nodes: tuple[str, ...] = ()
    epoch: int | None = None
    sentence: str = ""
    proof: tuple[int, ...] = ()
    checker: str = ""

    @property
    def verdict(self) -> Verdict:
        """How severe the anomaly's kind is."""
        return VERDICT_OF[self.kind]

    @property
    def offsets(self) -> int:
        """How many offsets the ranges hold."""
        return sum(end - first for first, end in self.ranges)

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON data; from_dict reads it back unchanged."""
        return {
            "kind": self.kind.value,
            "topic": self.topic,
            "partition": self.partition,
            "ranges": [list(r) for r in self.ranges],
            "nodes": list(self.nodes),
            "epoch": self.epoch,
            "sentence": self.sentence,
            "proof": list(self.proof),
            "checker": self.checker,
        }

    @staticmethod
    def from_dict(raw: Mapping[str, Any]) -> Anomaly:
        """Read what to_dict gave."""
        return Anomaly(
            kind=Kind(raw["kind"]),
            topic=raw["topic"],
            partition=raw["partition"],
            ranges=tuple((int(a), int(b)) for a, b in raw["ranges"]),
            nodes=tuple(raw["nodes"]),
            epoch=raw["epoch"],
            sentence=raw["sentence"],
            proof=tuple(raw["proof"]),
            checker=raw["checker"],
        )


def ranges_of(offsets: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """
    Fold offsets into rising [first, end) ranges that never touch.

    Shapes:  any order, repeats allowed; () for none. ranges_of([3, 1, 2, 7]) == ((1, 4), (7, 8)).
    """
    found: list[tuple[int, int]] = []
    for offset in sorted(set(offsets)):
        if found and found[-1][1] == offset:
            found[-1] = (found[-1][0], offset + 1)
        else:
            found.append((offset, offset + 1))
    return tuple(found)
