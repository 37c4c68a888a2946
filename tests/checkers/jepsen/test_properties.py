"""A history of a correct log is valid under all options, and what is planted into it is found."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.jepsen import COLUMNS, judge
from tests.checkers.jepsen.story import ASSIGN_WW, Story, by_name

KEYS = range(2)
STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from(KEYS)), min_size=1, max_size=40)


class CorrectLog:
    """A log as Kafka should be: each step starts or ends an operation of one process."""

    def __init__(self) -> None:
        self.story = Story()
        self._logs: dict[int, list[list[int]]] = {key: [] for key in KEYS}
        self._positions: dict[tuple[int, int], int] = {}
        self._running: dict[int, Any] = {}
        self._value = 0

    def step(self, process: int, choice: int, key: int) -> None:
        if process in self._running:
            self._end(process, choice)
        elif choice % 2:
            self._value += 1
            self._begin(process, "send", ["send", key, self._value])
        else:
            self._begin(process, "poll", ["poll"])

    def finish(self) -> Story:
        """End what is running; a new process then polls everything."""
        for process in [*self._running]:
            self._end(process, 1)
        return self.story.poll(9, {key: log for key, log in self._logs.items() if log})

    def _begin(self, process: int, f: str, mop: list[Any]) -> None:
        self._running[process] = mop
        self.story.line(process, "invoke", f, [mop])

    def _end(self, process: int, choice: int) -> None:
        mop = self._running.pop(process)
        if mop[0] == "send":
            self._end_send(process, mop, choice)
            return
        polled = {}
        for key, log in self._logs.items():
            first = self._positions.get((process, key), 0)
            if pairs := log[first : first + 1 + choice]:
                polled[key] = pairs
                self._positions[process, key] = first + len(pairs)
        self.story.line(process, "ok", "poll", [["poll", by_name(polled)]])

    def _end_send(self, process: int, mop: list[Any], choice: int) -> None:
        _, key, value = mop
        if choice == 0:
            self.story.line(process, "fail", "send", [mop])
            return
        # A gap, as a transaction's marker makes it.
        offset = (self._logs[key][-1][0] + 1 if self._logs[key] else 0) + (choice == 2)
        self._logs[key].append([offset, value])
        done = ("info", mop) if choice == 3 else ("ok", ["send", key, [offset, value]])
        self.story.line(process, done[0], "send", [done[1]])


def played(steps: list[tuple[int, int, int]]) -> CorrectLog:
    log = CorrectLog()
    for process, choice, key in steps:
        log.step(process, choice, key)
    return log


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_correct_log_is_valid_under_all_options(steps: list[tuple[int, int, int]]) -> None:
    """A last poll of nothing sets the quirk of unseen aside: see `unseen-though-seen`."""
    story = played(steps).finish().poll(8, {})
    history = story.read()
    for column, verdict in judge(history).items():
        assert ("", {}) == (verdict.crash, verdict.counts), column
    assert 3 == len(COLUMNS)


@settings(max_examples=100, deadline=None)
@given(STEPS, st.sampled_from(["duplicate", "inconsistent-offsets", "unseen", "precommitted-read", "poll-skip"]))
def test_what_is_planted_is_found(steps: list[tuple[int, int, int]], kind: str) -> None:
    story = played(steps).finish()
    plant(story, kind)
    story.poll(8, {})
    found = story.counts(ASSIGN_WW)
    assert found[kind] >= 1
    assert kind in story.verdict(ASSIGN_WW).bad


def plant(story: Story, kind: str) -> None:
    """Add a few operations on a key of their own that break one rule."""
    story.send(6, (7, 0, 1)).send(6, (7, 1, 2)).send(6, (7, 2, 3))
    whole = [[0, 1], [1, 2], [2, 3]]
    if kind == "unseen":
        story.poll(7, {7: whole[:2]})
    elif kind == "poll-skip":
        story.poll(7, {7: whole[:1]}).poll(7, {7: whole[2:]}).poll(5, {7: whole})
    elif kind == "duplicate":
        story.poll(7, {7: [*whole, [3, 1]]})
    elif kind == "inconsistent-offsets":
        story.poll(7, {7: whole}).poll(5, {7: [[0, 2]]})
    else:
        story.op(7, "txn", [["send", 7, [3, 4]], ["poll", {"7": [*whole, [3, 4]]}]])
