"""
A client of one stream at one server, which sends every record once: no retries, no message id, no batches.

    returns   acknowledged, with its sequence
    Refused   the server knows nobody who takes messages of this stream, so that nobody was sent it
    else      it may be appended: no answer in time, or an error in place of one

Any server passes a message on to the leader, and any server answers a read by asking the leader.

Source:  NATS's documentation, "JetStream wire API Reference"; jetstream_api.go.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Sequence
from typing import Any, Final

from harness.model import FencepostError
from harness.target.log_client import AtNode, Found, Refused
from targets.nats.clients.connection import SYSTEM, Connection, NoRespondersError, answer_of
from targets.nats.streams import stream_of

_READ_MAX: Final = 256
_NO_MESSAGE: Final = 10037


class ServerError(FencepostError):
    """The server answered with an error; what it was asked may be done."""


class NatsClient(AtNode):
    """The client; see harness/target/log_client.py for every call."""

    _open: Connection | None = None

    def produce(self, value: bytes) -> int:
        """Publish a value, and return its sequence once a quorum has it."""
        answer = _read(self._asked(self._stream, value))
        sequence = answer.get("seq")
        if not isinstance(sequence, int):
            raise ServerError(f"publish to {self._stream}: {answer!r:.300}; expected an acknowledgement")
        return sequence

    def read(self, first: int) -> Sequence[Found]:
        """Read what the leader serves from a sequence on."""
        start, last = self._ends()
        until, found = time.monotonic() + self.patience_s, list[Found]()
        at = max(first, start, 1)
        while at <= last and not found:  # a stretch without a message is no end
            found = self._messages(range(at, min(last, at + _READ_MAX - 1) + 1), until)
            at += _READ_MAX
        return found

    def delete_before(self, offset: int) -> int:
        """Purge the stream up to a sequence (-1: all that it has), and return its first one then."""
        upto = {} if offset < 0 else {"seq": max(offset, 1)}
        answer = _read(self._asked(f"$JS.API.STREAM.PURGE.{self._stream}", json.dumps(upto).encode()))
        if not answer.get("success"):
            raise ServerError(f"purge of {self._stream}: no success; expected one")
        return self._ends()[0]

    def _ends(self) -> tuple[int, int]:
        """Return the first sequence that the stream has, and the last, 0 for none."""
        state = _read(self._asked(f"$JS.API.STREAM.INFO.{self._stream}", b"")).get("state", {})
        return int(state.get("first_seq", 0)), int(state.get("last_seq", 0))

    def _messages(self, wanted: range, until: float) -> list[Found]:
        """Ask for these sequences at once; return the messages of those that have one, in their order."""
        subject, connection = f"$JS.API.STREAM.MSG.GET.{self._stream}", self._connected()
        found: list[Found] = []
        try:
            asked = {connection.publish(subject, b'{"seq":%d}' % number): number for number in wanted}
            while asked:
                came = connection.receive(until)
                number = asked.pop(came.number, None)
                if number is not None and (message := _message(_read(answer_of(subject, came)))) is not None:
                    found.append(Found(number, message))
        except NoRespondersError as error:
            raise Refused(str(error)) from error
        except Exception:
            self.close()
            raise
        return sorted(found)

    def serves(self) -> bool:
        """Connect as a client, which the server answers once it takes messages."""
        try:
            self._connected()
        finally:
            self.close()
        return True

    def leads(self) -> bool:
        """Ask the server whether it takes the stream's messages itself, which its leader alone does."""
        connection = Connection(self.address, self.patience_s, user=SYSTEM)
        subject = f"$SYS.REQ.SERVER.{connection.server}.SUBSZ"
        # Without the list it counts none.
        options = {"account": "$G", "test": self._stream, "subscriptions": True}
        try:
            found = _read(connection.ask(subject, options, within_s=self.patience_s)).get("data")
        except (NoRespondersError, ServerError, TimeoutError):
            return False
        finally:
            connection.close()
        return isinstance(found, dict) and bool(found.get("total"))

    def close(self) -> None:
        """Close the connection."""
        opened, self._open = self._open, None
        if opened is not None:
            opened.close()

    @property
    def _stream(self) -> str:
        return stream_of(self.place.topic, self.place.partition)

    def _connected(self) -> Connection:
        if self._open is None:
            self._open = Connection(self.address, self.patience_s)
        return self._open

    def _asked(self, subject: str, payload: bytes) -> bytes:
        try:
            return self._connected().ask(subject, payload, within_s=self.patience_s)
        except NoRespondersError as error:
            raise Refused(str(error)) from error
        except Exception:
            self.close()
            raise


def _read(text: bytes) -> dict[str, Any]:
    """Return an answer; raise ServerError for an error but for that which says that a sequence has no message."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ServerError(f"answer {text[:200]!r}: {error}; expected JSON") from error
    if not isinstance(found, dict):
        raise ServerError(f"answer {text[:200]!r}; expected an object")
    said = found.get("error")
    if isinstance(said, dict) and said.get("err_code") != _NO_MESSAGE:
        raise ServerError(f"error {said.get('err_code')}: {str(said.get('description'))[:200]}")
    return found


def _message(answer: dict[str, Any]) -> bytes | None:
    """Return what a message has, None if there is none of that sequence."""
    message = answer.get("message")
    return base64.b64decode(message.get("data", "")) if isinstance(message, dict) else None
