"""
What a checker finds (Kind, Anomaly), how severe it is (Verdict), and with which code a command then ends.

Offsets that name an end are exclusive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import IntEnum, StrEnum
from typing import Any, Final


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
    STORES_DIFFER = "stores-differ"
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
    READ_LOST = "read-lost"
    READ_UNCOMMITTED = "read-uncommitted"
    INCONSISTENT_OFFSETS = "inconsistent-offsets"
    POLL_SKIP = "poll-skip"
    NONMONOTONIC_POLL = "nonmonotonic-poll"
    WRONG_CONTROLLER = "wrong-controller"
    WRONG_LEADER = "wrong-leader"
    WRONG_ISR = "wrong-isr"
    WRONG_HIGH_WATERMARK = "wrong-high-watermark"
    DELETED_EARLY = "deleted-early"
    UNDELETED = "undeleted"
    NOT_COMPACTED = "not-compacted"
    RESURRECTED = "resurrected"
    WRONG_TOPIC = "wrong-topic"
    OLD_GENERATION = "old-generation"
    STUCK = "stuck"
    EXITED = "exited"
    CORRUPT = "corrupt"
    BIT_ROT = "bit-rot"
    UNREADABLE = "unreadable"
    UNCHECKED = "unchecked"
    VACUOUS = "vacuous"
    ORACLE_COMMITTED = "oracle-committed"
    ORACLE_PREFIX = "oracle-prefix"
    ORACLE_ACKNOWLEDGED = "oracle-acknowledged"
    ORACLE_LEADERS = "oracle-leaders"
    ORACLE_HIGH_WATERMARK = "oracle-high-watermark"
    ORACLE_FOLLOWER_HIGH_WATERMARK = "oracle-follower-high-watermark"
    ORACLE_SERVED = "oracle-served"
    ORACLE_CHECKPOINT = "oracle-checkpoint"
    ORACLE_LOG_START = "oracle-log-start"
    ORACLE_OFFICE = "oracle-office"
    ORACLE_ANSWERS = "oracle-answers"
    ORACLE_REST = "oracle-rest"
    ORACLE_DUE = "oracle-due"
    ORACLE_GENERATION = "oracle-generation"
    ORACLE_FAIL_STOP = "oracle-fail-stop"


# The kinds that only the simulator's oracles prove, which check every step.
ORACLES: Final = frozenset(
    {
        Kind.ORACLE_COMMITTED,
        Kind.ORACLE_PREFIX,
        Kind.ORACLE_ACKNOWLEDGED,
        Kind.ORACLE_LEADERS,
        Kind.ORACLE_HIGH_WATERMARK,
        Kind.ORACLE_FOLLOWER_HIGH_WATERMARK,
        Kind.ORACLE_SERVED,
        Kind.ORACLE_CHECKPOINT,
        Kind.ORACLE_LOG_START,
        Kind.ORACLE_OFFICE,
        Kind.ORACLE_ANSWERS,
        Kind.ORACLE_REST,
        Kind.ORACLE_DUE,
        Kind.ORACLE_GENERATION,
        Kind.ORACLE_FAIL_STOP,
    }
)

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
    Kind.STORES_DIFFER: Verdict.INVALID,
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
    Kind.READ_LOST: Verdict.INVALID,
    Kind.READ_UNCOMMITTED: Verdict.INVALID,
    Kind.INCONSISTENT_OFFSETS: Verdict.INVALID,
    Kind.POLL_SKIP: Verdict.INVALID,
    Kind.NONMONOTONIC_POLL: Verdict.INVALID,
    Kind.WRONG_CONTROLLER: Verdict.INVALID,
    Kind.WRONG_LEADER: Verdict.INVALID,
    Kind.WRONG_ISR: Verdict.INVALID,
    Kind.WRONG_HIGH_WATERMARK: Verdict.INVALID,
    Kind.DELETED_EARLY: Verdict.INVALID,
    Kind.UNDELETED: Verdict.INVALID,
    Kind.NOT_COMPACTED: Verdict.INVALID,
    Kind.RESURRECTED: Verdict.INVALID,
    Kind.WRONG_TOPIC: Verdict.INVALID,
    Kind.OLD_GENERATION: Verdict.INVALID,
    Kind.STUCK: Verdict.HANG,
    Kind.EXITED: Verdict.INVALID,
    Kind.CORRUPT: Verdict.INVALID,
    Kind.BIT_ROT: Verdict.PERMITTED,
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
