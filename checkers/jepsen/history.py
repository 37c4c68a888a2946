"""
The types of a history of Jepsen's Kafka workload: operations, and what they sent and polled.

An operation is two lines, its invocation and its completion; an invocation without a completion is still open when
the history ends. Every type here is one line. Source: jepsen.tests.kafka, the workload's operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Key: TypeAlias = int | str
Value: TypeAlias = int | str
# [offset, value]; the offset is None where it is not known. Lists, as JSON has them: a copy of each would double
# the memory of a history.
Pairs: TypeAlias = list[list[Any]]

INVOKE: Final = "invoke"
OK: Final = "ok"
FAIL: Final = "fail"
INFO: Final = "info"
TYPES: Final = (INVOKE, OK, FAIL, INFO)

SEND: Final = "send"
POLL: Final = "poll"
TXN: Final = "txn"
ASSIGN: Final = "assign"
SUBSCRIBE: Final = "subscribe"
TRANSACTIONS: Final = (SEND, POLL, TXN)
FUNCTIONS: Final = (*TRANSACTIONS, ASSIGN, SUBSCRIBE, "crash", "debug-topic-partitions")

NOTHING: Final[dict[Key, Pairs]] = {}


# Not frozen: to make a frozen one takes three times as long, and a history has hundreds of thousands.
@dataclass(slots=True, eq=False)
class Op:
    """
    One line of a client's: an invocation or a completion.

    Attributes:
        index: its place among all lines, from 0.
        line: its line in the file, from 1.
        time: nanoseconds since the start.
        value: of a transaction the micro-operations, of an assignment the keys, as the line has them.
        sends: what it sent to each key, in order; only of `send` and `txn`.
        polls: what it polled of each key, in order; only of `poll` and `txn`.
        strays: it is a `send` that polled or a `poll` that sent: the log of a key knows it, the rules do not.
        rebalanced: the keys that its rebalance log names.
        invocation: of a completion, the line that began it.
    """

    index: int
    line: int
    time: int
    process: int
    type: str
    f: str
    value: Any = None
    sends: dict[Key, Pairs] = field(default_factory=lambda: NOTHING)
    polls: dict[Key, Pairs] = field(default_factory=lambda: NOTHING)
    strays: tuple[dict[Key, Pairs], dict[Key, Pairs]] | None = None
    rebalanced: frozenset[Key] = frozenset()
    invocation: Op | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what identifies it, in the form of a line."""
        return {
            "index": self.index,
            "process": self.process,
            "type": self.type,
            "f": self.f,
            "value": self.value,
        }

    def sent(self, key: Key) -> list[Value]:
        """Return the values that it sent to a key, in order."""
        return [pair[1] for pair in self.sends.get(key, ())]

    def polled(self, key: Key) -> list[Value]:
        """Return the values that it polled of a key, all polls strung together."""
        return [pair[1] for pair in self.polls.get(key, ())]


@dataclass(frozen=True, slots=True, kw_only=True)
class JepsenHistory:
    """
    What was read of a file.

    Attributes:
        ops: the lines of clients, in order. The lines of others, such as a nemesis, are not among them.
        info_causes: the different `error`s of indefinite transactions, in the order in which they appear.
        problems: why lines cannot be used, each with its place; with one of them nothing is proven.
        problems_left_out: how many more there are.
    """

    ops: Sequence[Op]
    info_causes: Sequence[Any] = ()
    problems: Sequence[str] = ()
    problems_left_out: int = 0


class CheckerCrashError(Exception):
    """
    Jepsen's checker throws on this history, so that there is no verdict.

    Args:
        kind: what it throws, such as no-writer-of-value.
        sentence: what it met.
    """

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(f"{kind}: {sentence}")
        self.kind = kind


def pieces(mops: Sequence[Any]) -> tuple[dict[Key, Pairs], dict[Key, Pairs]]:
    """Return what sound micro-operations sent and polled, by key and in order."""
    sends: dict[Key, Pairs] = {}
    polls: dict[Key, Pairs] = {}
    for mop in mops:
        if mop[0] == SEND:
            sent = mop[2]
            sends.setdefault(mop[1], []).append(sent if type(sent) is list else [None, sent])
        elif len(mop) > 1 and mop[1]:
            _add_polls(polls, mop[1])
    return sends, polls


def _add_polls(polls: dict[Key, Pairs], found: Mapping[str, Pairs]) -> None:
    for name, pairs in found.items():
        key = poll_key(name)
        if key in polls:
            polls[key] = polls[key] + pairs
        else:
            polls[key] = pairs


def poll_key(name: str) -> Key:
    """Return the key that a name in a poll's object means: an integer, if it reads as one."""
    digits = name[1:] if name[:1] == "-" else name
    return int(name) if digits.isdigit() and digits.isascii() else name
