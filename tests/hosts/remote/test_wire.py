"""A message arrives whole, with its bytes, or not at all."""

from __future__ import annotations

import io

import pytest

from harness.hosts.remote import wire

MESSAGES = [({"id": 1, "do": "kill"}, b""), ({"id": 2, "part": {}}, b"\n\x00{}\n"), ({"ask": 3}, b"x" * 70_000)]
PACKED = b"".join(wire.pack(message, payload) for message, payload in MESSAGES)


def test_messages_arrive_with_their_bytes_in_order() -> None:
    source = io.BytesIO(PACKED)
    for message, payload in MESSAGES:
        received = wire.receive(source)
        assert received is not None
        assert (payload, message) == (received[1], {k: v for k, v in received[0].items() if k != "bytes"})
    assert wire.receive(source) is None


@pytest.mark.parametrize("cut", [0, 1, 10, 25, 40, 60, 100, len(PACKED) - 1])
def test_end_in_the_middle_of_a_message_is_the_end(cut: int) -> None:
    source, whole = io.BytesIO(PACKED[:cut]), 0
    while wire.receive(source) is not None:
        whole += 1
    ends = [len(b"".join(wire.pack(*each) for each in MESSAGES[:count])) for count in range(4)]
    assert whole == sum(end <= cut for end in ends) - 1


@pytest.mark.parametrize("line", [b"hello\n", b"[1]\n", b'{"bytes": -1}\n', b'{"bytes": 9999999999}\n', b"3\n"])
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"no message|no JSON"):
        wire.receive(io.BytesIO(line))


def test_line_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="a line of more than"):
        wire.receive(io.BytesIO(b"x" * (wire.LINE_BYTES_MAX + 1)))


def test_what_a_login_shell_prints_comes_before_the_mark() -> None:
    source = io.BytesIO(b"Welcome\nto m1\n" + wire.MARK + PACKED)
    assert wire.skip_greeting(source) is None
    assert wire.receive(source) is not None


def test_command_that_prints_no_mark_is_given_with_what_it_said() -> None:
    assert b"python3: not found\n" == wire.skip_greeting(io.BytesIO(b"python3: not found\n"))
    flood = wire.skip_greeting(io.BytesIO((b"y" * 999 + b"\n") * 1000))
    assert flood is not None
    assert wire.GREETING_BYTES_MAX <= len(flood) < wire.GREETING_BYTES_MAX + 1000
