"""
The frames of NATS: a line of text that begins with a verb, and for some verbs a payload of the length it says.

    RMSG account subject [reply] size                 from server to server; the payload, then CR LF
    RMSG account subject + reply queue... size        with queues: `+` before a reply, `|` if there is none
    HMSG account subject [reply] header size          the payload begins with a header of so many bytes
    LMSG origin account subject [reply] header size   of a leaf's client
    PUB subject [reply] size, HPUB, MSG, HMSG         between a client and a server
    INFO {...}, CONNECT {...}, PING, PONG, +OK, ...   a line alone, as RS+, RS-, LS+, LS-, A+, A-, SUB, UNSUB

Source:  parser.go, route.go and client.go (msgHeaderForRouteOrLeaf) of nats-server 2.12.1 and 2.15.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from harness.target.wire import NotFramedError

# No line that servers of a test exchange is longer; their own limit is 4 KiB for clients, 64 KiB for routes.
LINE_BYTES_MAX: Final = 4096
# Servers take no message over 64 MiB; those among themselves have a head and subjects beside it.
PAYLOAD_BYTES_MAX: Final = 64 * 1024 * 1024 + 64 * 1024
_SIZE_DIGITS_MAX: Final = 9
_CRLF: Final = b"\r\n"

# Verb -> the least number of its arguments, the size among them; its payload follows the line.
_WITH_PAYLOAD: Final[Mapping[bytes, int]] = {
    b"RMSG": 3,
    b"LMSG": 5,
    b"HMSG": 4,
    b"MSG": 3,
    b"PUB": 2,
    b"HPUB": 3,
}
_LINES: Final = frozenset(b"INFO CONNECT PING PONG +OK -ERR RS+ RS- LS+ LS- A+ A- SUB UNSUB".split())
_VERBS: Final = (*_WITH_PAYLOAD, *_LINES)
_VERB_BYTES_MAX: Final = max(map(len, _VERBS))
# How a stream of S2 begins: its identifier, the first chunk.
_S2_STREAM: Final = b"\xff\x06\x00\x00S2sTwO"


class Malformed(ValueError):
    """What a frame or its payload says cannot be so."""


@dataclass(frozen=True, slots=True)
class Routed:
    """
    A message from server to server.

    Attributes:
        reply: the subject that is to be answered to, "" for none.
        payload: without the header; only its beginning if the frame is not whole.
        whole: whether all of the payload is here.
    """

    subject: str
    reply: str
    payload: bytes
    whole: bool


def frame_size(buffer: bytes, offset: int) -> int:
    """
    Return the size of the frame at the offset, its payload included; 0 if its line is not all there.

    Raises:
        NotFramedError: no frame begins so.
    """
    end = buffer.find(b"\n", offset, offset + LINE_BYTES_MAX)
    if end < 0:
        head = buffer[offset : offset + _VERB_BYTES_MAX + 1]
        if not _may_begin(head) or len(buffer) - offset >= LINE_BYTES_MAX:
            raise _not_framed(buffer[offset : offset + LINE_BYTES_MAX])
        return 0
    line = buffer[offset:end]
    words = line.split()
    verb = words[0].upper() if words else b""
    size = end + 1 - offset
    if verb in _WITH_PAYLOAD:
        return size + _payload_size(words, verb) + len(_CRLF)
    if verb not in _LINES or not _may_begin(line[: _VERB_BYTES_MAX + 1]):
        raise _not_framed(line)
    return size


def routed(frame: bytes) -> Routed | None:
    """
    Return the message from server to server that a frame is; None for a line alone, and for a leaf's client.

    Args:
        frame: all of it, or its beginning with all of the line.

    Raises:
        Malformed: its line is none of a message, its header is larger than it, or it does not end as it should.
    """
    end = frame.find(b"\n") + 1
    verb, *arguments = frame[:end].split()
    match verb.upper():
        case b"RMSG":
            sizes, header = 1, 0
        case b"HMSG":
            sizes, header = 2, _number(arguments[-2])
        case _:
            return None
    size = _number(arguments[-1])
    if header > size:
        raise Malformed(f"header of {header} bytes in a message of {size}; expected it within")
    whole = len(frame) >= end + size + len(_CRLF)
    if whole and frame[end + size :] != _CRLF:
        raise Malformed(f"{frame[end + size :]!r} behind a message of {size} bytes; expected CR LF")
    subject, reply = _subjects(arguments[1:-sizes])
    return Routed(subject=subject, reply=reply, payload=frame[end + header : end + size], whole=whole)


def text(data: bytes) -> str:
    """Return a name as text; NATS takes any bytes but blanks."""
    return data.decode(errors="backslashreplace")


def _subjects(words: list[bytes]) -> tuple[str, str]:
    """Return subject and reply from the words behind the account."""
    match words:
        case [subject]:
            return text(subject), ""
        case [subject, reply] | [subject, b"+", reply, *_]:
            return text(subject), text(reply)
        case [subject, b"|", *_]:
            return text(subject), ""
    raise Malformed(f"{words!r} behind an account; expected a subject, then `+` or `|` before queues")


def _payload_size(words: list[bytes], verb: bytes) -> int:
    size = _number_or(words[-1], -1)
    if len(words) <= _WITH_PAYLOAD[verb] or not 0 <= size <= PAYLOAD_BYTES_MAX:
        raise NotFramedError(
            f"line {_short(b' '.join(words))}; expected {_WITH_PAYLOAD[verb]} words or more, "
            f"and a size up to {PAYLOAD_BYTES_MAX} last: the connection passes unread"
        )
    return size


def _number(word: bytes) -> int:
    found = _number_or(word, -1)
    if found < 0:
        raise Malformed(f"size {_short(word)}; expected a number of bytes")
    return found


def _number_or(word: bytes, other: int) -> int:
    return int(word) if word.isdigit() and len(word) <= _SIZE_DIGITS_MAX else other


def _may_begin(head: bytes) -> bool:
    """Return True if a line may begin so: with a verb, or with a part of one if no more has come."""
    verb = head.split(maxsplit=1)[0].upper() if head.strip() else b""
    if not verb or not head.startswith(head.lstrip()):
        return not head
    if len(verb) < len(head):
        return verb in _VERBS
    return any(each.startswith(verb) for each in _VERBS)


def _not_framed(data: bytes) -> NotFramedError:
    if data.startswith(_S2_STREAM[: len(data)]):
        return NotFramedError("a stream compressed by S2; expected routes with `compression: off`")
    return NotFramedError(f"line {_short(data)}; expected one that begins with a verb of NATS")


def _short(data: bytes) -> str:
    return repr(data[:40]) + ("…" if len(data) > 40 else "")
