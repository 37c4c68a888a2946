"""
The data model of a run: observations (Op), violations that they prove (Anomaly), and the conclusion (Verdict).

Every other package may import this module. It imports only harness.events, and does no IO.

    FencepostError
    |- UsageError        the command or the machine: a wrong option, a taken port, too little disk   (exit 2)
    |- HistoryError      the recorder: a history that contradicts itself
    |- TargetError       the system under test: it did what no release of it may do
    |- PreconditionError the run: a step of a scenario failed, or a fault did not bite   (unknown)

Offsets that name an end are exclusive: log end offset, high watermark, `to` of a truncation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Any, Final, TypeVar

from harness.events import Event, OpType, Source
from harness.events.codec import MisfitError, decode, encode, key_of, key_of_kind, place_in

__all__ = [
    "EXIT_CODES",
    "EXIT_OF_VERDICT",
    "VERDICT_OF",
    "Anomaly",
    "BeyondHelpError",
    "CopyFate",
    "Fates",
    "FencepostError",
    "HistoryError",
    "Kind",
    "Op",
    "OpType",
    "PartOps",
    "PreconditionError",
    "Source",
    "TargetError",
    "UsageError",
    "Verdict",
    "events_of",
    "ranges_of",
]


class FencepostError(Exception):
    """Base of all our errors; the message says where, what was found, what was expected and what to do."""


class UsageError(FencepostError):
    """The command line, an input file or the machine is wrong: exit code 2."""


class HistoryError(FencepostError):
    """A history is malformed or contradicts itself; the message names the op."""


class TargetError(FencepostError):
    """The system under test sent an answer that it must not send."""


class PreconditionError(FencepostError):
    """A step of a scenario failed, or a fault's probe saw that it did not bite: the run is unknown."""


class BeyondHelpError(PreconditionError):
    """The awaited condition can never hold any more, so the wait ended early."""


_E = TypeVar("_E", bound=Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """
    One line of a history: one event, with its process and time.

    Attributes:
        index: 0 for the first op of a history; rises by one.
        time_ns: nanoseconds since the run began, by the history's clock.
        process: the client, node or part of the harness that the event belongs to.
        value: JSON data as recorded; rules and reports read `event` instead.

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
        """Return the op of an event."""
        source, f = key_of(event)
        op = Op(index=index, time_ns=time_ns, source=source, process=process, type=type, f=f, value=encode(event))
        object.__setattr__(op, "_event", event)
        return op

    @property
    def event(self) -> Event:
        """
        The op's event, decoded once; `Unknown` if no class of harness/events fits.

        Raises:
            HistoryError: a required key is missing, a key is not known, or a value has the wrong type.
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
        """The topic and partition that the op names, None if it does not name both."""
        return place_in(self.value)

    def to_json(self) -> str:
        """Return the op as one line of JSON, with keys in a fixed order."""
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
        """Parse one line of JSON; raise HistoryError with the line if it is no op, or has more than an op."""
        try:
            raw = json.loads(line)
            if raw.keys() != _OP_KEYS.keys():
                raise KeyError(*sorted(raw.keys() ^ _OP_KEYS.keys()))
            for name, kind in _OP_KEYS.items():
                if type(raw[name]) is not kind:
                    raise TypeError(f"{name} is {raw[name]!r:.80}")
            if not (0 <= raw["index"] <= _INT64_MAX and 0 <= raw["time_ns"] <= _INT64_MAX):
                raise ValueError(f"index {raw['index']}, time_ns {raw['time_ns']}")
            return Op(**{**raw, "source": Source(raw["source"]), "type": OpType(raw["type"])})
        # RecursionError: lists within lists, too deep for the reader of JSON.
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise HistoryError(
                f"history line {line[:120]!r}: {error!r}; expected one JSON object with "
                "index, time_ns, source, process, type, f and value"
            ) from error


# The keys of a line, and the exact type of each.
_OP_KEYS: Final[Mapping[str, type]] = {
    "index": int,
    "time_ns": int,
    "source": str,
    "process": str,
    "type": str,
    "f": str,
    "value": dict,
}
_INT64_MAX: Final = 2**63 - 1


class PartOps(tuple[Op, ...]):
    """
    The ops that the rules judge together, with an index by source and f.

    Attributes:
        facts: what was derived from these ops, so that each fact is derived once (checkers/facts/fact.py).
    """

    @cached_property
    def facts(self) -> dict[Any, Any]:
        """Derived facts, by the function that derives each."""
        return {}

    @cached_property
    def by_key(self) -> Mapping[tuple[Source, str], Sequence[Op]]:
        """The ops of each source and f, in index order."""
        found: dict[tuple[Source, str], list[Op]] = {}
        for op in self:
            found.setdefault((op.source, op.f), []).append(op)
        return found


def events_of(ops: Iterable[Op], kind: type[_E]) -> Iterator[tuple[Op, _E]]:
    """Yield every op with an event of that class, and the event; other ops are not decoded."""
    source, f = key_of_kind(kind)
    if isinstance(ops, PartOps) and f is not None:
        ops = ops.by_key.get((source, f), ())
    for op in ops:
        if op.source is source and f in (op.f, None):
            event = op.event
            if isinstance(event, kind):
                yield op, event


class Verdict(IntEnum):
    """The verdict on a run, by severity: `merge` returns the largest, so nothing masks a violation."""

    VALID = 0
    PERMITTED = 1
    UNKNOWN = 2
    HANG = 3
    INVALID = 4

    @staticmethod
    def merge(verdicts: Iterable[Verdict]) -> Verdict:
        """Return the most severe verdict, VALID for none."""
        return max(verdicts, default=Verdict.VALID)


# One table for all commands. Python itself exits with 1 after a crash, argparse with 2 for wrong usage.
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
    """The kinds of anomalies. VERDICT_OF has their severity; docs/checkers.md is printed from both."""

    LOST = "lost"
    PERMITTED = "permitted"
    UNCLEAN = "permitted-unclean"
    RETURNED = "returned-unseen"
    LAST_STANDING = "last-standing"
    UNPROMISED = "unpromised"
    COMMITTED_LOST = "committed-lost"
    NOT_REPLICATED = "not-replicated"
    FALSE_ACK = "false-ack"
    DIVERGED = "diverged"
    TWO_LEADERS = "two-leaders"
    LED_TWICE = "led-twice"
    DISORDER = "disorder"
    HOLE = "hole"
    CHECKPOINT = "checkpoint"
    DUPLICATE = "duplicate"
    PHANTOM = "phantom"
    ALTERED = "altered"
    INCOMPLETE = "incomplete"
    LONGER = "longer"
    EPOCHS_DIFFER = "epochs-differ"
    REORDERED = "reordered"
    WRONG_READ = "wrong-read"
    WRONG_CONTROLLER = "wrong-controller"
    WRONG_LEADER = "wrong-leader"
    WRONG_ISR = "wrong-isr"
    WRONG_HIGH_WATERMARK = "wrong-high-watermark"
    STUCK = "stuck"
    EXITED = "exited"
    UNREADABLE = "unreadable"
    UNCHECKED = "unchecked"
    VACUOUS = "vacuous"
    ORACLE_COMMITTED = "oracle-committed"
    ORACLE_PREFIX = "oracle-prefix"
    ORACLE_ACKNOWLEDGED = "oracle-acknowledged"


# The kinds that only the simulator's oracles prove, which check every step.
ORACLES: Final = frozenset({Kind.ORACLE_COMMITTED, Kind.ORACLE_PREFIX, Kind.ORACLE_ACKNOWLEDGED})

VERDICT_OF: Final[dict[Kind, Verdict]] = {
    Kind.LOST: Verdict.INVALID,
    Kind.PERMITTED: Verdict.PERMITTED,
    Kind.UNCLEAN: Verdict.PERMITTED,
    Kind.RETURNED: Verdict.PERMITTED,
    Kind.LAST_STANDING: Verdict.PERMITTED,
    Kind.UNPROMISED: Verdict.VALID,
    Kind.COMMITTED_LOST: Verdict.INVALID,
    Kind.NOT_REPLICATED: Verdict.INVALID,
    Kind.FALSE_ACK: Verdict.INVALID,
    Kind.DIVERGED: Verdict.INVALID,
    Kind.TWO_LEADERS: Verdict.INVALID,
    Kind.LED_TWICE: Verdict.INVALID,
    Kind.DISORDER: Verdict.INVALID,
    Kind.HOLE: Verdict.INVALID,
    Kind.CHECKPOINT: Verdict.INVALID,
    Kind.DUPLICATE: Verdict.INVALID,
    Kind.PHANTOM: Verdict.INVALID,
    Kind.ALTERED: Verdict.INVALID,
    Kind.INCOMPLETE: Verdict.INVALID,
    Kind.LONGER: Verdict.INVALID,
    Kind.EPOCHS_DIFFER: Verdict.INVALID,
    Kind.REORDERED: Verdict.INVALID,
    Kind.WRONG_READ: Verdict.INVALID,
    Kind.WRONG_CONTROLLER: Verdict.INVALID,
    Kind.WRONG_LEADER: Verdict.INVALID,
    Kind.WRONG_ISR: Verdict.INVALID,
    Kind.WRONG_HIGH_WATERMARK: Verdict.INVALID,
    Kind.STUCK: Verdict.HANG,
    Kind.EXITED: Verdict.INVALID,
    Kind.UNREADABLE: Verdict.UNKNOWN,
    Kind.UNCHECKED: Verdict.UNKNOWN,
    Kind.VACUOUS: Verdict.UNKNOWN,
    **dict.fromkeys(sorted(ORACLES), Verdict.INVALID),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFate:
    """
    One replica's copy of a lost record.

    Attributes:
        begun: the index of the op from which on the node had it.
        ended: the index of the op that ended it, None if the node had it to the end.
        by_fault: whether a fault that may end a copy did.
        text: the end in words, "" if there is none.
    """

    node: str
    begun: int
    ended: int | None
    by_fault: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fates:
    """
    What became of a lost record, for reports.

    Attributes:
        offset: its offset; the first one, if several records were lost alike.
        copies: every copy, by node, each node's in index order.
        marks: (index, text) of what happened to all copies, such as the acknowledgement and the election.
    """

    offset: int
    copies: tuple[CopyFate, ...]
    marks: tuple[tuple[int, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, which `from_dict` reads back unchanged."""
        return {
            "offset": self.offset,
            "copies": [asdict(copy) for copy in self.copies],
            "marks": [list(mark) for mark in self.marks],
        }

    @staticmethod
    def from_dict(raw: Mapping[str, Any]) -> Fates:
        """Read what `to_dict` returned."""
        return Fates(
            offset=raw["offset"],
            copies=tuple(CopyFate(**copy) for copy in raw["copies"]),
            marks=tuple((int(index), str(text)) for index, text in raw["marks"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """
    One proven violation or permitted loss, with the history lines that prove it.

    Attributes:
        ranges: [first, end) pairs of offsets, end exclusive, rising, never touching; () if the anomaly is not
            about offsets.
        nodes: node names as in the history ("A", "B").
        epoch: the leader epoch that the anomaly is about, or None.
        sentence: the anomaly in words, for reports.
        proof: indexes of ops in the run's history.
        checker: the name of the checker that proved it.
        fates: what became of the record's copies, if the anomaly is a loss and brokers reported their logs.
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
    fates: Fates | None = None

    @property
    def verdict(self) -> Verdict:
        """The severity of the anomaly's kind."""
        return VERDICT_OF[self.kind]

    @property
    def offsets(self) -> int:
        """How many offsets are in the ranges."""
        return sum(end - first for first, end in self.ranges)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, which `from_dict` reads back unchanged."""
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
            **({"fates": self.fates.to_dict()} if self.fates else {}),
        }

    @staticmethod
    def from_dict(raw: Mapping[str, Any]) -> Anomaly:
        """Read what `to_dict` returned."""
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
            fates=Fates.from_dict(raw["fates"]) if raw.get("fates") else None,
        )


def ranges_of(offsets: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """
    Return offsets, in any order and with repeats, as rising [first, end) ranges that never touch.

    ranges_of([3, 1, 2, 7]) == ((1, 4), (7, 8)); () for no offsets.
    """
    found: list[tuple[int, int]] = []
    for offset in sorted(set(offsets)):
        if found and found[-1][1] == offset:
            found[-1] = (found[-1][0], offset + 1)
        else:
            found.append((offset, offset + 1))
    return tuple(found)
