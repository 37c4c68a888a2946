"""Whatever comes on a connection, its reading says something that the fabric takes, or that it is not framed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.fabric.guard import Guard
from harness.target.wire import Direction, Message, NotFramedError
from targets.fluss.wire.frames import Api
from targets.fluss.wire.reading import FlussReading
from tests.targets.fluss.wire.wire import COMMANDS, FETCH, answer, learned, request


class Calling:
    """A watch that calls at once, and waits for nothing."""

    def call(self, function: Any, *args: Any) -> Any:
        return function(*args)


class Reader:
    """A reading whose every answer the guard of the fabric looks at."""

    def __init__(self) -> None:
        self.reading = FlussReading(("B", "A"), {1: "A", 2: "B"})
        watch: Any = Calling()
        self.guard = Guard("fluss", watch, self._failed)

    def _failed(self, text: str) -> None:
        raise AssertionError(text)

    def read(self, frame: bytes, direction: Direction) -> Message:
        return self.guard.read(self.reading, frame, direction)

    def stream(self, data: bytes, direction: Direction) -> None:
        """Read frame after frame, as far as there are whole ones."""
        at = 0
        while at < len(data) and (size := self.guard.size(self.reading, direction, data, at)):
            if size > len(data) - at:
                return
            self.read(data[at : at + size], direction)
            at += size


KEYS = st.sampled_from([Api.FetchLog, Api.NotifyLeaderAndIsr]) | st.integers(-(2**15), 2**15 - 1)
NUMBERS = st.integers(0, 3)
BODIES = st.binary(max_size=80)


@given(st.binary(max_size=120), st.sampled_from(Direction))
def test_arbitrary_bytes_raise_nothing_but_that_they_are_not_framed(data: bytes, direction: Direction) -> None:
    reader = Reader()
    with suppress(NotFramedError):
        reader.stream(data, direction)


@given(st.lists(st.tuples(KEYS, NUMBERS, BODIES) | st.tuples(st.integers(-128, 127), NUMBERS, BODIES), max_size=9))
def test_arbitrary_messages_in_frames_raise_nothing(said: list[tuple[int, int, bytes]]) -> None:
    reader = Reader()
    for key, number, body in said:
        reader.read(request(key, number, body), Direction.REQUEST)
        reader.read(answer(number, body, key % 3), Direction.ANSWER)


@pytest.mark.parametrize("frame", [FETCH, COMMANDS], ids=["fetch", "commands"])
def test_every_byte_of_a_frame_may_be_another_and_every_frame_cut_short(frame: bytes) -> None:
    for at in range(4, len(frame)):
        for lie in {0, 0x7F, 0x80, 0xFF, frame[at] ^ 1}:
            reader = Reader()
            reader.read(frame[:at] + bytes((lie,)) + frame[at + 1 :], Direction.REQUEST)
            for number in (7, 8):
                reader.read(answer(number, learned([(("log", 0), 5)])), Direction.ANSWER)
    for size in range(4, len(frame)):
        body = frame[4:size]
        assert (
            "" != Reader().read(frame[:size], Direction.REQUEST).error
        )  # not all of it: it says more than is there
        Reader().read(len(body).to_bytes(4) + body, Direction.REQUEST)
