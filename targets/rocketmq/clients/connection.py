"""
One blocking connection to a broker, controller or name server: a question, then its answer, each within a time.

After anything but an answer it must be closed: the answer may still come.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from harness.model import FencepostError
from harness.target.blocking import Blocking
from targets.rocketmq.wire.frames import HEAD, Code, Frame, Unreadable, length_of, read, written

ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
_SHOWN: Final = 200


class AnswerError(FencepostError):
    """The other side answered with a code that is no success."""

    def __init__(self, code: int, remark: str) -> None:
        super().__init__(f"code {code}: {' '.join(remark.split())[:_SHOWN]}")
        self.code = code
        self.remark = remark


class Connection(Blocking):
    """A connection to "host:port"; see Blocking for how it is made and closed."""

    # Of the last request.
    _number = 0

    def ask(self, code: Code, fields: Mapping[str, object], body: bytes, within_s: float) -> Frame:
        """
        Send a request, and return its answer, whatever its code.

        Raises:
            OSError: no answer in time; what was asked may be done.
        """
        self._number += 1
        self.send(written(code, self._number, fields, body), within_s)
        while True:
            answer = self._frame()
            # A broker asks its clients things too, such as to look for new routes.
            if answer.answers and answer.number == self._number:
                return answer

    def _frame(self) -> Frame:
        head = self.exactly(HEAD.size)
        length = length_of(head)
        if not HEAD.size - 4 <= length <= ANSWER_BYTES_MAX:
            raise OSError(f"answer of {length} bytes; expected at most {ANSWER_BYTES_MAX}")
        try:
            return read(head + self.exactly(length - (HEAD.size - 4)))
        except Unreadable as error:
            raise OSError(f"answer of {length} bytes: {error}") from error


def ask_once(
    address: str, code: Code, fields: Mapping[str, object], body: bytes = b"", *, within_s: float
) -> Frame:
    """
    Ask on a connection of its own.

    Raises:
        Refused, OSError: there is no answer.
        AnswerError: the answer is no success.
    """
    with closing(Connection(address, within_s)) as connection:
        answer = connection.ask(code, fields, body, within_s)
    if answer.code:
        raise AnswerError(answer.code, answer.remark)
    return answer


def object_in(body: bytes) -> dict[str, Any]:
    """Return the object that a body has; raise OSError for anything else, as for no answer."""
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise OSError(f"body {body[:_SHOWN]!r}: {error!r:.100}; expected JSON") from error
    if not isinstance(found, dict):
        raise OSError(f"body {body[:_SHOWN]!r}; expected an object")
    return found
