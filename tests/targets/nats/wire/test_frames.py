"""Where a frame of NATS ends, in whatever portions it comes, and which bytes are none."""

from __future__ import annotations

import pytest

from harness.fabric.limits import FRAME_BYTES_MAX
from harness.target.wire import NotFramedError
from targets.nats.wire.frames import LINE_BYTES_MAX, PAYLOAD_BYTES_MAX, Malformed, Routed, frame_size, routed

FRAMES = [
    b'INFO {"server_id":"N","port":4222}\r\n',
    b'CONNECT {"verbose":false}\r\n',
    *(b"PING\r\n", b"PONG\r\n", b"+OK\r\n", b"-ERR 'Unknown Protocol Operation'\r\n", b"PING\n", b"ping\r\n"),
    *(
        b"RS+ $G log-0\r\n",
        b"RS+ $G s.* queue 2\r\n",
        b"RS- $G log-0\r\n",
        b"LS+ leaf log-0\r\n",
        b"LS- log-0\r\n",
    ),
    *(b"A+ one\r\n", b"A- one\r\n", b"SUB log-0 1\r\n", b"SUB log-0 queue 1\r\n", b"UNSUB 1 5\r\n"),
    b"RMSG $G log-0 0\r\n\r\n",
    b"RMSG $G log-0 5\r\nvalue\r\n",
    b"RMSG $G log-0 reply 5\r\n\r\n\r\n\n\r\n",
    b"RMSG $G log-0 + reply q1 q2 5\r\nvalue\r\n",
    b"RMSG $G log-0 | q1 5\r\nvalue\r\n",
    b"RMSG\t$G  log-0\treply 5 \r\nvalue\r\n",
    b"HMSG $G log-0 12 17\r\nNATS/1.0\r\n\r\nvalue\r\n",
    b"HMSG $G log-0 reply 12 12\r\nNATS/1.0\r\n\r\n\r\n",
    b"LMSG leaf $G log-0 0 5\r\nvalue\r\n",
    b"LMSG leaf $G log-0 + reply q1 12 12\r\nNATS/1.0\r\n\r\n\r\n",
    *(b"PUB log-0 5\r\nvalue\r\n", b"PUB log-0 reply 5\r\nvalue\r\n", b"MSG log-0 1 5\r\nvalue\r\n"),
    b"HPUB log-0 reply 12 17\r\nNATS/1.0\r\n\r\nvalue\r\n",
]


@pytest.mark.parametrize("frame", FRAMES)
def test_size_is_known_when_the_line_is_there_and_not_before(frame: bytes) -> None:
    line = frame.index(b"\n") + 1
    for behind in (b"", b"PING\r\n", b"\x16\x03\x01"):
        assert [0] * line == [frame_size(b"PONG\r\n" + frame[:have], 6) for have in range(line)]
        assert len(frame) == frame_size(frame[:line], 0)
        assert len(frame) == frame_size(b"PONG\r\n" + frame + behind, 6)


@pytest.mark.parametrize(
    "begin",
    [
        b"\x16\x03\x01\x02",
        b"GET / HTTP/1.1\r\n",
        b"\r\n",
        b" PING\r\n",
        b"PINGS\r\n",
        b"RMSGS a b 1",
        b"\x00",
        b"{",
    ],
)
def test_bytes_that_begin_with_no_verb_are_no_frame_as_soon_as_that_can_be_seen(begin: bytes) -> None:
    with pytest.raises(NotFramedError, match=r"expected one that begins with a verb of NATS$"):
        frame_size(begin, 0)


@pytest.mark.parametrize("size", [1, 4, 10, 200])
def test_compressed_route_is_said_to_be_one(size: int) -> None:
    stream = (b"\xff\x06\x00\x00S2sTwO" + b"\x00n\x01\x00go" * 40)[:size]
    with pytest.raises(NotFramedError, match="compressed by S2; expected routes with `compression: off`"):
        frame_size(stream, 0)


def test_line_without_an_end_is_no_frame() -> None:
    longest = b"INFO {" + b" " * (LINE_BYTES_MAX - 8)
    assert LINE_BYTES_MAX == frame_size(longest + b"}\n", 0)
    assert 0 == frame_size(longest + b"}", 0)
    for line in (longest + b"}}", longest + b"}}\n"):
        with pytest.raises(NotFramedError, match=r"line b'INFO \{.*'…; expected one"):
            frame_size(line, 0)


@pytest.mark.parametrize(
    "line",
    [
        *(b"RMSG", b"RMSG 5", b"RMSG $G 5", b"RMSG $G log-0 -1", b"RMSG $G log-0 +5", b"RMSG $G log-0 5_0"),
        *(b"RMSG $G log-0 five", b"RMSG $G log-0 \xb2", b"PUB 5", b"MSG log-0 5", b"HMSG $G log-0 5"),
        *(b"HPUB log-0 5", b"LMSG leaf $G log-0 5", b"RMSG $G log-0 %d" % (PAYLOAD_BYTES_MAX + 1)),
        *(b"RMSG $G log-0 " + b"9" * 200, b"RMSG $G log-0 " + b"0" * 100),
    ],
)
def test_message_whose_size_is_not_there_or_none_is_no_frame(line: bytes) -> None:
    with pytest.raises(NotFramedError, match="a size up to 67174400 last: the connection passes unread"):
        frame_size(line + b"\r\n", 0)


def test_largest_frame_is_one_that_the_fabric_takes() -> None:
    line = b"RMSG $G log-0 %d\r\n" % PAYLOAD_BYTES_MAX
    assert len(line) + PAYLOAD_BYTES_MAX + 2 == frame_size(line, 0)
    assert PAYLOAD_BYTES_MAX + LINE_BYTES_MAX + 2 <= FRAME_BYTES_MAX


# --- messages --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("frame", "subject", "reply", "payload"),
    [
        (b"RMSG $G log-0 5\r\nvalue\r\n", "log-0", "", b"value"),
        (b"RMSG $G log-0 r 5\r\nvalue\r\n", "log-0", "r", b"value"),
        (b"RMSG $G log-0 + r q1 q2 0\r\n\r\n", "log-0", "r", b""),
        (b"RMSG $G log-0 | q1 q2 1\r\nx\r\n", "log-0", "", b"x"),
        (b"HMSG $G log-0 12 17\r\nNATS/1.0\r\n\r\nvalue\r\n", "log-0", "", b"value"),
        (b"HMSG $G log-0 r 12 12\r\nNATS/1.0\r\n\r\n\r\n", "log-0", "r", b""),
        (b"HMSG $G log-0 + r q 12 12\r\nNATS/1.0\r\n\r\n\r\n", "log-0", "r", b""),
        (b"RMSG $G \xff\xc3\xa4 1\r\nx\r\n", "\\xffä", "", b"x"),
    ],
)
def test_message_has_its_subject_its_reply_and_what_is_behind_its_header(
    frame: bytes, subject: str, reply: str, payload: bytes
) -> None:
    assert Routed(subject, reply, payload, whole=True) == routed(frame)


def test_beginning_of_a_message_is_read_as_far_as_it_goes() -> None:
    assert Routed("log-0", "", b"valu", whole=False) == routed(b"RMSG $G log-0 90\r\nvalu")
    assert Routed("log-0", "", b"", whole=False) == routed(b"HMSG $G log-0 12 90\r\nNATS")
    # Without what ends it, nobody knows.
    assert Routed("log-0", "", b"value", whole=False) == routed(b"RMSG $G log-0 5\r\nvalue\r")


@pytest.mark.parametrize("frame", [FRAMES[0], b"RS+ $G log-0\r\n", b"LMSG leaf $G log-0 0 5\r\nvalue\r\n"])
def test_line_alone_is_no_message_and_neither_is_a_leafs(frame: bytes) -> None:
    assert routed(frame) is None


@pytest.mark.parametrize(
    ("frame", "wrong"),
    [
        (b"HMSG $G log-0 6 5\r\nvalue\r\n", "header of 6 bytes in a message of 5"),
        (b"HMSG $G log-0 x 5\r\nvalue\r\n", "size b'x'"),
        (b"RMSG $G log-0 5\r\nvalues\n", "expected CR LF"),
        (b"RMSG $G log-0 ! r q 5\r\nvalue\r\n", "expected a subject, then `\\+` or `\\|` before queues"),
    ],
)
def test_message_that_cannot_be_so_is_malformed(frame: bytes, wrong: str) -> None:
    assert len(frame) == frame_size(frame, 0)
    with pytest.raises(Malformed, match=wrong):
        routed(frame)
