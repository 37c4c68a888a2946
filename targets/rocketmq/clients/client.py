"""
A client of one queue at one broker, which sends every record once.

    returns   SEND_OK: acknowledged, with its offset in the queue
    Refused   the broker does not lead, or refused the record before it was written
    NotNow    it leads, and the SyncStateSet is too small: nothing was written
    else      it is written, and not acknowledged (FLUSH_SLAVE_TIMEOUT and its like), or may be

Source:  SendMessageProcessor.handlePutMessageResult, CommitLog.asyncPutMessage, PullMessageProcessor.java.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

from harness.target.log_client import AtNode, Found, NotNow, Refused
from targets.rocketmq.asking import ASKED_S, epochs_at
from targets.rocketmq.clients.connection import AnswerError, Connection
from targets.rocketmq.logs.commit_log import Damage, entries
from targets.rocketmq.wire.frames import Code, Frame

_GROUP: Final = "fencepost"
_SYSTEM_ERROR: Final = 1
_TOO_FEW: Final = "in-sync replicas not enough"
# Codes of answers to a request that was not begun, or refused before the record was written.
_NOTHING_DONE: Final = frozenset({2, 3, 13, 14, 16, 17, 26})
_NOT_FOUND: Final = 19
_AGAIN: Final = 20
_MOVED: Final = 21
# The consumer says what it wants; it neither waits nor commits.
_SUBSCRIBED: Final = 4
_RECORDS_MAX: Final = 512
_ROUNDS_MAX: Final = 64


class RocketClient(AtNode):
    """The client; see harness/target/log_client.py for every call."""

    _open: Connection | None = None

    def produce(self, value: bytes) -> int:
        """Append a value."""
        fields = {
            "producerGroup": _GROUP,
            "topic": self.place.topic,
            "defaultTopic": "TBW102",
            "defaultTopicQueueNums": 1,
            "queueId": self.place.partition,
            "sysFlag": 0,
            "bornTimestamp": time.time_ns() // 1_000_000,
            "flag": 0,
            "properties": "",
            "reconsumeTimes": 0,
            "unitMode": "false",
            "batch": "false",
            "maxReconsumeTimes": 0,
        }
        answer = self._asked(Code.SendMessage, fields, value)
        if answer.code:
            raise _meant(answer)
        return int(answer.fields["queueOffset"])

    def read(self, first: int) -> Sequence[Found]:
        """Read what a consumer may see from an offset on, from a broker that says that it leads."""
        if not self.leads():
            raise Refused(f"{self.address}: it says that it does not lead; expected one that does")
        found: list[Found] = []
        until = time.monotonic() + self.patience_s
        for _ in range(_ROUNDS_MAX):
            answer = self._asked(Code.PullMessage, self._pull(first), b"")
            if answer.code and answer.code not in (_NOT_FOUND, _AGAIN, _MOVED):
                raise _meant(answer)
            found += [] if answer.code else _records(answer.body, found[-1].offset + 1 if found else first)
            after = int(answer.fields.get("nextBeginOffset", first))
            over = len(found) >= _RECORDS_MAX or time.monotonic() >= until
            if answer.code == _NOT_FOUND or after <= first or over:
                break
            first = after
        return found

    def serves(self) -> bool:
        """Ask for its epochs."""
        return epochs_at(self.address, within_s=min(self.patience_s, ASKED_S)) is not None

    def leads(self) -> bool:
        """Ask whether it acts as master."""
        told = epochs_at(self.address, within_s=min(self.patience_s, ASKED_S))
        return told is not None and told.leads

    def close(self) -> None:
        """Close the connection."""
        opened, self._open = self._open, None
        if opened is not None:
            opened.close()

    def _pull(self, first: int) -> dict[str, object]:
        return {
            "consumerGroup": _GROUP,
            "topic": self.place.topic,
            "queueId": self.place.partition,
            "queueOffset": first,
            "maxMsgNums": 32,
            "sysFlag": _SUBSCRIBED,
            "commitOffset": 0,
            "suspendTimeoutMillis": 0,
            "subscription": "*",
            "subVersion": 0,
            "expressionType": "TAG",
        }

    def _asked(self, code: Code, fields: dict[str, object], body: bytes) -> Frame:
        if self._open is None:
            self._open = Connection(self.address, self.patience_s)
        try:
            return self._open.ask(code, fields, body, self.patience_s)
        except Exception:
            self.close()
            raise


def _records(body: bytes, first: int) -> Iterator[Found]:
    """Yield records at offsets that rise: an index that lacks an entry shows others twice (ConsumeQueue.java)."""
    for each in entries(body):
        if isinstance(each, Damage):
            raise OSError(f"answer of {len(body)} bytes, byte {each.at}: {each.why}; expected records")
        if each.queue_offset >= first:
            yield Found(each.queue_offset, each.value)
            first = each.queue_offset + 1


def _meant(answer: Frame) -> Exception:
    error = AnswerError(answer.code, answer.remark)
    if lacks_slaves(answer.code, answer.remark):
        return NotNow(str(error))
    return Refused(str(error)) if refuses(answer.code) else error


def refuses(code: int) -> bool:
    """Return True for the code of an answer to a request that was not begun, or refused before it wrote."""
    return code in _NOTHING_DONE


def lacks_slaves(code: int, remark: str) -> bool:
    """Return True for the answer of a master whose SyncStateSet is too small, so that it wrote nothing."""
    return code == _SYSTEM_ERROR and _TOO_FEW in remark
