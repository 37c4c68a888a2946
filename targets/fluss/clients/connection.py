"""
One blocking connection to a server's listener for clients: a question, then its answer, each within a time.

After anything but an answer it must be closed: the answer may still come.
"""

from __future__ import annotations

from typing import Final

from harness.model import FencepostError
from harness.target.blocking import Blocking
from harness.target.length_prefix import LENGTH
from targets.fluss.wire.frames import Api, Type, answer_body, answer_head, request
from targets.fluss.wire.protobuf import Fields, data_of, fields, number

ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
_SHOWN: Final = 200


class ServerError(FencepostError):
    """The server answered with an error, which has a code of Errors.java."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"error {code}: {text[:_SHOWN]}")
        self.code = code
        self.text = text


class Connection(Blocking):
    """A connection to "host:port"; see Blocking for how it is made and closed."""

    # Of the last request.
    _number = 0

    def ask(self, key: Api, body: bytes, within_s: float) -> Fields:
        """
        Send a request, and return the message of its answer.

        Raises:
            OSError: no answer in time; what was asked may be done.
            ServerError: the server says that it did not do it.
        """
        self._number += 1
        self.send(request(key, self._number, body), within_s)
        (length,) = LENGTH.unpack(self.exactly(LENGTH.size))
        if not 0 <= length <= ANSWER_BYTES_MAX:
            raise OSError(f"answer of {length} bytes; expected at most {ANSWER_BYTES_MAX}")
        frame = LENGTH.pack(length) + self.exactly(length)
        try:
            kind, _ = answer_head(frame)
            found = fields(answer_body(frame))
        except ValueError as error:  # Unreadable or Malformed: it may have done what it was asked
            raise OSError(f"answer of {length} bytes: {error}; expected a message") from error
        if kind != Type.SUCCESS:
            raise ServerError(number(found, 1), data_of(found, 2).decode(errors="replace"))
        return found
