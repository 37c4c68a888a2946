"""Writes small histories of Jepsen's Kafka workload for tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from checkers.jepsen import COLUMNS, Verdict, judge, read
from checkers.jepsen.history import JepsenHistory

ASSIGN_WW, ASSIGN_ONLY, SUBSCRIBE_WW = COLUMNS


class Story:
    """A history that grows line by line."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def line(self, process: Any, type_: str, f: str, value: Any, **more: Any) -> Story:
        """Add one line."""
        index = len(self.lines)
        self.lines.append(
            {"index": index, "time": index * 1_000_000, "process": process, "type": type_, "f": f, "value": value}
            | more
        )
        return self

    def op(self, process: int, f: str, value: Any, type_: str = "ok", **more: Any) -> Story:
        """Add an invocation and, at once, its completion."""
        self.line(process, "invoke", f, asked(value))
        return self.line(process, type_, f, value, **more)

    def send(self, process: int, *sends: tuple[Any, int | None, Any], type_: str = "ok") -> Story:
        """Add an operation that sends: (key, offset, value)."""
        return self.op(process, "send", [["send", key, [offset, value]] for key, offset, value in sends], type_)

    def poll(self, process: int, polled: dict[Any, Any], type_: str = "ok", **more: Any) -> Story:
        """Add an operation with one poll: key -> [offset, value]s."""
        return self.op(process, "poll", [["poll", by_name(polled)]], type_, **more)

    def filled(self, values: int = 3) -> Story:
        """Add sends by process 0 to key 0 of the values 10, 11, … at the offsets 0, 1, …."""
        for offset in range(values):
            self.send(0, (0, offset, 10 + offset))
        return self

    def read(self) -> JepsenHistory:
        """Return the history as it is read; every line of it can be used."""
        history = read("h", enumerate(self.encoded(), 1))
        assert [] == history.problems
        return history

    def encoded(self) -> list[bytes]:
        """Return the lines of the file."""
        return [json.dumps(line).encode() + b"\n" for line in self.lines]

    def verdict(self, column: Any = ASSIGN_WW) -> Verdict:
        """Return the verdict of one column."""
        return judge(self.read())[column]

    def counts(self, column: Any = ASSIGN_WW) -> dict[str, int]:
        """Return what is found under one column; the checker does not throw."""
        verdict = self.verdict(column)
        assert "" == verdict.crash
        return verdict.counts


def by_name(polled: dict[Any, Any]) -> dict[str, Any]:
    """Return what was polled as JSON has it."""
    return {str(key): pairs for key, pairs in polled.items()}


def values(first: int, last: int) -> list[list[int]]:
    """Return the pairs of the offsets from first to last, whose values are 10 more."""
    return [[offset, 10 + offset] for offset in range(first, last + 1)]


def asked(value: Any) -> Any:
    """Return what was asked for: sends without offsets, polls without what they found."""
    if not isinstance(value, list):
        return value
    return [_asked(mop) for mop in value]


def _asked(mop: Any) -> Any:
    if not isinstance(mop, Sequence) or isinstance(mop, str):
        return mop
    if mop[0] == "poll":
        return ["poll"]
    return ["send", mop[1], mop[2][1] if isinstance(mop[2], list) else mop[2]]
