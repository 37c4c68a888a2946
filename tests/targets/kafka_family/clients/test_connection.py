"""One connection of the raw client: whether a request without a valid answer may have been executed."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

import pytest

from harness import limits
from harness.cleanup.process import until
from targets.kafka_family.clients.connection import FRAME_BYTES_MAX, Connection, NoAnswer, NotSent
from targets.kafka_family.wire import requests
from targets.kafka_family.wire.errors import ErrorCode
from tests.workloads.peers import framed, peer

pytestmark = pytest.mark.slow

# The body of an answer with no error and no APIs.
TOLD = struct.pack(">hi", 0, 0)


def soon(seconds: float = limits.CONDITION_WAIT_S_MAX) -> float:
    """Return a deadline this many seconds from now."""
    return time.monotonic() + seconds


def test_questions_on_one_connection_are_numbered_and_named() -> None:
    asked: list[bytes] = []

    def answer(frame: bytes) -> bytes:
        asked.append(frame)
        return framed(frame[4:8] + TOLD)

    with peer(answer) as address, Connection(address, "client-1", soon()) as connection:
        for _ in range(2):
            assert ErrorCode.NONE is connection.ask(requests.api_versions())
    assert [struct.pack(">hhih8s", 18, 0, number, 8, b"client-1") for number in (1, 2)] == asked


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(lambda _: None, "hung up after 0 of 4 bytes", id="hang-up"),
        pytest.param(lambda _: b"\0\0\0\x0a\0", "time", id="half a frame"),
        pytest.param(lambda _: framed(struct.pack(">i", 7) + TOLD), "answer 7; expected 1", id="another's answer"),
        pytest.param(lambda frame: framed(frame[4:8]), "of a sound answer to ApiVersions v0", id="cut short"),
        pytest.param(lambda _: b"\xff\xff\xff\xff", f"expected 0 to {FRAME_BYTES_MAX}", id="no length"),
    ],
)
def test_request_that_left_and_has_no_sound_answer_may_have_been_done(
    answer: Callable[[bytes], bytes | None], words: str
) -> None:
    with (
        peer(answer) as address,
        Connection(address, "x", soon(0.3 if words == "time" else 10)) as connection,
        pytest.raises(NoAnswer, match=words),
    ):
        connection.ask(requests.api_versions())


def test_request_that_cannot_even_leave_has_surely_not_been_done() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(NotSent, match=f"{address}: .*refused"):
        Connection(address, "x", soon())


def test_deadline_that_has_passed_ends_what_is_asked_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        with Connection(address, "x", soon(0.05)) as connection, pytest.raises(NoAnswer, match="timed out"):
            connection.ask(requests.api_versions())
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("said", [b"", b"unasked"], ids=["closed", "what nobody asked for"])
def test_connection_that_can_be_used_no_more_is_over(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with Connection(address, "x", soon()) as connection:
            theirs, _ = server.accept()
            assert False is connection.over
            with theirs:
                theirs.sendall(said)
            assert until(lambda: connection.over, limits.CONDITION_WAIT_S_MAX)


def test_deadline_can_be_moved_for_the_next_question() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with Connection(address, "x", soon(86_400)) as connection:
            connection.deadline = soon(0)
            with pytest.raises(NoAnswer, match="timed out"):
                connection.ask(requests.api_versions())
