"""Whatever comes on a connection, its reading says something that the fabric takes, or that it is not framed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.fabric.guard import Guard
from harness.target.wire import Direction, Message, NotFramedError
from targets.nats.wire.frames import Malformed
from targets.nats.wire.memory import Memory
from targets.nats.wire.raft import append_entry, stream_message
from targets.nats.wire.reading import ClientReading, RouteReading
from targets.nats.wire.s2 import beginning
from tests.targets.nats.wire import wire as said
from tests.targets.nats.wire.wire import GROUP, rmsg, stored


class Calling:
    """A watch that calls at once, and waits for nothing."""

    def call(self, function: Any, *args: Any) -> Any:
        return function(*args)


class Reader:
    """A reading whose every answer the guard of the fabric looks at."""

    def __init__(self, *, of_clients: bool = False) -> None:
        link = ("B", "A")
        self.reading = ClientReading(link) if of_clients else RouteReading(link, Memory())
        watch: Any = Calling()
        self.guard = Guard("nats", watch, self._failed)

    def _failed(self, text: str) -> None:
        raise AssertionError(text)

    def read(self, frame: bytes, direction: Direction = Direction.REQUEST) -> Message:
        return self.guard.read(self.reading, frame, direction)

    def stream(self, data: bytes, direction: Direction) -> None:
        """Read frame after frame, as far as there are whole ones."""
        at = 0
        while at < len(data) and (size := self.guard.size(self.reading, direction, data, at)):
            if size > len(data) - at:
                return
            self.read(data[at : at + size], direction)
            at += size


VERBS = st.sampled_from(
    ["INFO", "PING", "+OK", "-ERR", "RS+", "SUB", "RMSG", "HMSG", "LMSG", "MSG", "PUB", "HPUB", "rmsg"]
)
ARGUMENTS = st.lists(
    st.sampled_from(
        ["$SYS", "log-0", "+", "|", "0", "1", "5", "-1", "99999999999", f"$NRG.AE.{GROUP}", "$NRG.R.x"]
    )
    | st.text(max_size=3),
    max_size=6,
)
BODIES = st.binary(max_size=12)
SUBJECTS = st.sampled_from(
    [
        f"$NRG.AE.{GROUP}",
        f"$NRG.V.{GROUP}",
        "$NRG.R.x",
        "$NRG.CR.x",
        "$NRG.CP.x",
        "$JSC.R.x",
        "$JSC.SYNC.x",
        "$NRG",
    ]
)
REPLIES = st.sampled_from(["", "$NRG.R.x", "$NRG.CR.x", "$NRG.CP.x", "$JSC.R.x"])
ENTRIES = st.lists(
    st.tuples(st.integers(0, 7), st.binary(max_size=30))
    | st.builds(stored, st.integers(1, 2**64 - 1), st.sampled_from(["log-0", "", "u"])),
    max_size=3,
)
PAYLOADS = (
    st.binary(max_size=90)
    | st.builds(
        said.append_entry, st.integers(0, 5) | st.integers(0, 2**64 - 1), ENTRIES, count=st.integers(-1, 4)
    )
    | st.builds(said.answer, st.integers(0, 6) | st.integers(0, 2**64 - 1))
)


@given(st.binary(max_size=120), st.sampled_from(Direction), st.booleans())
def test_arbitrary_bytes_raise_nothing_but_that_they_are_not_framed(
    data: bytes, direction: Direction, of_clients: bool
) -> None:
    with suppress(NotFramedError):
        Reader(of_clients=of_clients).stream(data, direction)


@given(st.lists(st.tuples(VERBS, ARGUMENTS, BODIES), max_size=5), st.sampled_from(Direction), st.booleans())
def test_arbitrary_lines_raise_nothing_but_that_they_are_not_framed(
    lines: list[tuple[str, list[str], bytes]], direction: Direction, of_clients: bool
) -> None:
    data = b"".join(
        " ".join((verb, *words)).encode(errors="replace") + b"\r\n" + body for verb, words, body in lines
    )
    with suppress(NotFramedError):
        Reader(of_clients=of_clients).stream(data, direction)


@given(st.lists(st.tuples(SUBJECTS, PAYLOADS, REPLIES, st.sampled_from(Direction)), max_size=9))
def test_arbitrary_payloads_in_frames_raise_nothing(frames: list[tuple[str, bytes, str, Direction]]) -> None:
    reader = Reader()
    for subject, payload, reply, direction in frames:
        reader.read(rmsg(subject, payload, reply), direction)


@given(st.binary(max_size=60), st.integers(0, 200))
def test_arbitrary_blocks_are_no_longer_than_asked(block: bytes, size: int) -> None:
    with suppress(Malformed):
        assert len(beginning(block, size)) <= size
    stream_message(b"\x0e" + block)


def test_every_byte_of_an_append_entry_may_be_another_and_it_may_be_cut_anywhere() -> None:
    whole = said.append_entry(7, [stored(5), (0, b"\x0e\x20\x40" + bytes(20)), stored(6)])
    for at in range(len(whole)):
        for lie in {0, 0x7F, 0x80, 0xFF, whole[at] ^ 1}:
            data = whole[:at] + bytes((lie,)) + whole[at + 1 :]
            Reader().read(rmsg(f"$NRG.AE.{GROUP}", data, "$NRG.R.x"))
            with suppress(Malformed):
                append_entry(data, whole=False)
    frame = rmsg(f"$NRG.AE.{GROUP}", whole, "$NRG.R.x")
    for size in range(frame.index(b"\n") + 1, len(frame)):
        Reader().read(frame[:size])
