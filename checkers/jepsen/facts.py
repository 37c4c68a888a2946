"""What the rules look up in a history: who sent a value, who polled it, and the log of each key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from checkers.jepsen.history import (
    FAIL,
    INVOKE,
    NOTHING,
    OK,
    TRANSACTIONS,
    CheckerCrashError,
    Key,
    Op,
    Value,
)
from checkers.jepsen.order import NO_LOG, KeyLog, key_logs


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """
    What follows from a history.

    Attributes:
        ops: the lines of clients; each completion has its invocation.
        transactions: the completions of `send`, `poll` and `txn`.
        writer_of: key -> value -> the last completion that sent it.
        ok_polled: key -> what `ok` operations polled; a key is there if one polled it, even nothing of it.
        ok_sent: key -> what `ok` operations sent.
        failed: key -> what `fail` operations sent.
        logs: the log of each key of which an offset is known.
    """

    ops: Sequence[Op]
    transactions: Sequence[Op]
    writer_of: Mapping[Key, Mapping[Value, Op]]
    ok_polled: Mapping[Key, set[Value]]
    ok_sent: Mapping[Key, set[Value]]
    failed: Mapping[Key, set[Value]]
    logs: Mapping[Key, KeyLog]

    def log(self, key: Key) -> KeyLog:
        """Return the log of a key, an empty one if no offset of it is known."""
        return self.logs.get(key, NO_LOG)

    def writer(self, key: Key, value: Value) -> Op:
        """
        Return the completion that sent a value.

        Raises:
            CheckerCrashError: no completion did: a phantom.
        """
        found = self.writer_of.get(key, {}).get(value)
        if found is None:
            raise CheckerCrashError(
                "no-writer-of-value",
                f"value {value!r} of key {key!r} was polled, and no send of it has a completion",
            )
        return found


def gather(ops: Sequence[Op]) -> Facts:
    """
    Return the facts of a history.

    Raises:
        CheckerCrashError: invocations and completions of a process do not alternate.
    """
    _pair(ops)
    done = [op for op in ops if op.type != INVOKE and op.f in TRANSACTIONS]
    writer_of: dict[Key, dict[Value, Op]] = {}
    for op in done:
        if op.sends is not NOTHING:
            for key, pairs in op.sends.items():
                writers = writer_of.setdefault(key, {})
                for pair in pairs:
                    writers[pair[1]] = op
    ok = [op for op in done if op.type == OK]
    ok_polled = _union((key, op.polled(key)) for op in ok for key in op.polls)
    return Facts(
        ops=ops,
        transactions=done,
        writer_of=writer_of,
        ok_polled=ok_polled,
        ok_sent=_union((key, op.sent(key)) for op in ok for key in op.sends),
        failed=_union((key, op.sent(key)) for op in done if op.type == FAIL for key in op.sends),
        logs=key_logs(ops, ok_polled),
    )


def _union(parts: Iterable[tuple[Key, Sequence[Value]]]) -> dict[Key, set[Value]]:
    found: dict[Key, set[Value]] = {}
    for key, values in parts:
        found.setdefault(key, set()).update(values)
    return found


def _pair(ops: Sequence[Op]) -> None:
    """Give each completion its invocation."""
    running: dict[int, Op] = {}
    for op in ops:
        if op.type == INVOKE:
            if op.process in running:
                raise CheckerCrashError(
                    "double-invoke",
                    f"process {op.process} invokes op {op.index} (line {op.line}) while its op "
                    f"{running[op.process].index} is running",
                )
            running[op.process] = op
        else:
            if op.process not in running:
                raise CheckerCrashError(
                    "double-complete",
                    f"process {op.process} completes op {op.index} (line {op.line}), and none is running",
                )
            op.invocation = running.pop(op.process)
