"""
A client of one bucket at one server, which sends every record once: no retries, no writer's id.

    returns   acknowledged, with its offset
    Refused   the server does not lead, or refused the batch before it appended anything
    NotNow    it leads, and the ISR is too small: nothing was appended
    else      it may be appended: no answer in time, or an error after the append

Source:  ProduceLog and FetchLog of FlussApi.proto; Errors.java; ReplicaManager.appendToLocalLog of Fluss 0.9.1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import IntEnum
from typing import ClassVar, Final

from harness.target.log_client import AtNode, Found, NotNow, Refused
from harness.workload.plan import ACKS_ALL
from targets.fluss.clients.batch import read, written
from targets.fluss.clients.connection import Connection, ServerError
from targets.fluss.tables import number_of
from targets.fluss.wire.frames import Api
from targets.fluss.wire.protobuf import Fields, data_of, message, messages, number

ACKS_LEADER: Final = 1
_CLIENT: Final = -1  # in place of a follower's id
_FETCH_BYTES: Final = 1024 * 1024
# Of its patience it gives so much to the server, whose own time-out is then seen.
_SERVERS_SHARE: Final = 0.8


class Error(IntEnum):
    """The errors that say, in words of their own, that nothing was appended."""

    TABLE_NOT_EXIST = 7
    NOT_LEADER_OR_FOLLOWER = 12
    RECORD_TOO_LARGE = 13
    CORRUPT_RECORD = 14
    INVALID_REQUIRED_ACKS = 18
    UNKNOWN_TABLE_OR_BUCKET = 21
    NOT_ENOUGH_REPLICAS = 29
    LEADER_NOT_AVAILABLE = 44


_NOTHING_DONE: Final = frozenset(Error)
# What a server answers that has appended a batch, and leads no more before all have it: the same errors, with the
# text that each has by itself.
_LATE: Final = frozenset({"Not leader or follower.", "The table or bucket does not exist."})


class FlussClient(AtNode):
    """The client; see harness/target/log_client.py for every call."""

    acks: ClassVar[Collection[int]] = (ACKS_ALL, ACKS_LEADER)
    _open: Connection | None = None

    def produce(self, value: bytes) -> int:
        """Append a value."""
        return self.produce_batch([value], ACKS_ALL)

    def produce_batch(self, values: Sequence[bytes], acks: int) -> int:
        """Append values in one batch."""
        bucket = message([(2, self.place.partition), (3, written(values))])
        timeout_ms = int(self.patience_s * _SERVERS_SHARE * 1000)
        body = message([(1, acks), (2, number_of(self.place.topic)), (3, timeout_ms), (4, bucket)])
        found = self._asked(Api.ProduceLog, body)
        (answer,) = messages(found, 1)
        _check(answer)
        return number(answer, 5, -1)

    def read(self, first: int) -> Sequence[Found]:
        """Read what a consumer may see from an offset on."""
        answer = self._fetched(first)
        found = read(data_of(answer, 8))
        return [Found(offset, value.encode()) for offset, value in found if offset >= first]

    def serves(self) -> bool:
        """Ask for the requests that it knows."""
        body = message([(1, b"fencepost"), (2, b"1")])
        try:
            self._asked(Api.ApiVersions, body)
        except (ServerError, TimeoutError):
            return False
        finally:
            self.close()
        return True

    def leads(self) -> bool:
        """Fetch as a client, which a leader alone answers."""
        try:
            self._fetched(0)
        except (ServerError, TimeoutError):
            return False
        finally:
            self.close()
        return True

    def close(self) -> None:
        """Close the connection."""
        opened, self._open = self._open, None
        if opened is not None:
            opened.close()

    def _fetched(self, first: int) -> Fields:
        bucket = message([(2, self.place.partition), (3, first), (4, _FETCH_BYTES)])
        table = message([(1, number_of(self.place.topic)), (2, 0), (4, bucket)])
        found = self._asked(Api.FetchLog, message([(1, _CLIENT), (2, _FETCH_BYTES), (3, table)]))
        (of_table,) = messages(found, 1)
        (answer,) = messages(of_table, 2)
        _check(answer)
        return answer

    def _asked(self, key: Api, body: bytes) -> Fields:
        if self._open is None:
            self._open = Connection(self.address, self.patience_s)
        try:
            return self._open.ask(key, body, self.patience_s)
        except ServerError as error:
            raise _meant(error) from error
        except Exception:
            self.close()
            raise


def _check(answer: Fields) -> None:
    """Raise what the answer for a bucket says, if it is an error."""
    if code := number(answer, 3):
        raise _meant(ServerError(code, data_of(answer, 4).decode(errors="replace")))


def _meant(error: ServerError) -> Exception:
    if error.code == Error.NOT_ENOUGH_REPLICAS:
        return NotNow(str(error))
    refused = error.code in _NOTHING_DONE and error.text not in _LATE
    return Refused(str(error)) if refused else error
