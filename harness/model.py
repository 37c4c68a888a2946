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
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, TypeVar

from harness.anomaly import (
    EXIT_CODES,
    EXIT_OF_VERDICT,
    ORACLES,
    VERDICT_OF,
    Anomaly,
    CopyFate,
    Fates,
    Kind,
    Verdict,
    ranges_of,
)
from harness.events import Event, OpType, Source
from harness.events.codec import MisfitError, decode, encode, key_of, key_of_kind, place_in
from harness.events.older import renamed

__all__ = [
    "EXIT_CODES",
    "EXIT_OF_VERDICT",
    "ORACLES",
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
        return _encode_line(
            {
                "index": self.index,
                "time_ns": self.time_ns,
                "source": self.source.value,
                "process": self.process,
                "type": self.type.value,
                "f": self.f,
                "value": dict(self.value),
            }
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
            if (older := renamed(raw["source"], raw["f"])) is not None:
                raw = older.now(raw)
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
# json.dumps would make an encoder for every line.
_encode_line: Final = json.JSONEncoder(separators=(",", ":")).encode


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
    def by_kind(self) -> dict[type[Event], Any]:
        """The ops and events of each class that was asked for, in index order; see `events_of`."""
        return {}

    @cached_property
    def by_key(self) -> Mapping[tuple[Source, str], Sequence[Op]]:
        """The ops of each source and f, in index order."""
        found: dict[tuple[Source, str], list[Op]] = {}
        for op in self:
            found.setdefault((op.source, op.f), []).append(op)
        return found

    def select(self, source: Source, *fs: str) -> Sequence[Op]:
        """Return the ops of a source in index order; of these f alone, if any is given."""
        groups = [group for key, group in self.by_key.items() if key[0] is source and (not fs or key[1] in fs)]
        return groups[0] if len(groups) == 1 else sorted((op for group in groups for op in group), key=_INDEX)


def events_of(ops: Iterable[Op], kind: type[_E]) -> Iterator[tuple[Op, _E]]:
    """Return every op with an event of that class, and the event; other ops are not decoded."""
    if not isinstance(ops, PartOps):
        return _of_kind(ops, kind)
    found: list[tuple[Op, _E]] | None = ops.by_kind.get(kind)
    if found is None:
        source, f = key_of_kind(kind)
        mine = ops.select(source) if f is None else ops.select(source, f)
        found = ops.by_kind[kind] = list(_of_kind(mine, kind))
    return iter(found)


def _of_kind(ops: Iterable[Op], kind: type[_E]) -> Iterator[tuple[Op, _E]]:
    source, f = key_of_kind(kind)
    for op in ops:
        if op.source is source and f in (op.f, None):
            event = op.event
            if isinstance(event, kind):
                yield op, event


_INDEX: Final = attrgetter("index")
