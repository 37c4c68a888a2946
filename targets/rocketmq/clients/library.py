"""
RocketMQ's own Java client: producers that send again, and consumers that read on by themselves.

A record goes to a queue that was chosen (DefaultMQProducer.send with a MessageQueue). So the library sends it
once: its retries, two by default, are for who leaves the queue to it, and then it takes another one. Who chooses,
sends again by hand what was not acknowledged, and so does a producer here, as often as its plan says. A try has
half of the time that is left, so that one without an answer is followed by another.

RocketMQ knows no record again: one that was sent again may be in the log twice, and no producer is idempotent.

A consumer is a DefaultLitePullConsumer that was assigned its queues, and was sought to its positions. It fetches
in the background, from the master, or from a slave while there is none. From an offset that a broker has not, it
goes on by itself elsewhere: what comes then is before what was read, and the client says so and begins again.

What an answer proves of a record that was sent once:

    SEND_OK                                acknowledged
    another status (FLUSH_SLAVE_TIMEOUT)   unknown: it is written, and not acknowledged
    a broker's error                       what the plain client says of its code
    MQClientException                      nothing was sent: no broker is known
    IllegalStateException                  nor was then: the name server was not reached
    RemotingConnectException               nor then: there is no connection
    RemotingTooMuchRequestException        nor then: the time was over before
    all else                               unknown

Source:  DefaultMQProducerImpl (send, sendKernelImpl, sendDefaultImpl), NettyRemotingClient.invokeSync,
         DefaultLitePullConsumerImpl, 5.5.0; RocketMQ's documentation, "Message Sending Retry".
"""

from __future__ import annotations

import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from harness.clients.beside import Around, Beside
from harness.clients.library import REPORT_S_MAX, Came, Record, Report, refused_all
from harness.clients.outcome import Outcome
from harness.java import find_java
from harness.limits import CLIENT_OPERATION_S_MAX
from harness.model import OpType, UsageError
from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan
from harness.workload.script import Send
from targets.rocketmq.building import why_not
from targets.rocketmq.clients.client import lacks_slaves, refuses
from targets.rocketmq.clients.process import RELEASE, Process, remark_in
from targets.rocketmq.versions import NAME

_OK: Final = "SEND_OK"
_AGAIN_S: Final = 0.1
_FAILED: Final = "failed"
# Words of the library's error for an offset that the broker has not.
_OUT_OF_RANGE: Final = "Seek offset illegal"


class JavaClient(Beside):
    """The library beside the plain client; see harness/clients/beside.py for every call."""

    tells_offsets = True
    knows_again = False

    def why_not(self) -> str:
        """Return what brings it, if its jars or a Java are not here."""
        return _lacks()

    def sends(self, plan: ProducerPlan, plans: Clients) -> bool:
        """Return True for a producer that sends again, and need not be known again."""
        del plans
        return bool(plan.retries) and not plan.idempotent and not self.why_not()

    def sender(self, plan: ProducerPlan, around: Around) -> Sender:
        """Return a producer."""
        return Sender(plan, Process(plan.name, "producer", around))

    def reader(self, plan: ConsumerPlan, around: Around) -> Reader:
        """Return a consumer."""
        return Reader(plan, Process(plan.name, "consumer", around))


@cache
def _lacks() -> str:
    """Look once: a run must not change its mind, and each look starts a Java."""
    try:
        find_java()
    except UsageError as error:
        return str(error)
    why = why_not(RELEASE)
    return f"{why}; `fencepost fetch {NAME}:{RELEASE.name}` brings it" if why else ""


class _Try(NamedTuple):
    """What one try came to: an offset, or why there is none, and whether nothing was written for certain."""

    offset: int | None = None
    why: str = ""
    is_sure: bool = False


class Sender:
    """A producer, which sends record after record; none follows one that was not acknowledged, in its queue."""

    def __init__(self, plan: ProducerPlan, process: Process) -> None:
        self._within_s = plan.within_ms / 1000
        self._tries = 1 + plan.retries
        self._process = process

    def send(self, records: Sequence[Record], send: Send, report: Report) -> None:
        """Send these records; each outcome is known when its last try has ended."""
        del send
        missed: dict[Place, str] = {}
        for record in records:
            if record.place in missed:
                why = f"not sent: {missed[record.place]} was not acknowledged"
                report(record.value, Outcome(type=OpType.FAIL, error=why))
                continue
            outcome = self._sent(record)
            if outcome.type is not OpType.OK:
                missed[record.place] = record.value
            report(record.value, outcome)

    def _sent(self, record: Record) -> Outcome:
        """Send a record until it is acknowledged; it failed only if each try certainly wrote nothing."""
        self._process.ready()
        until, is_sure, why = time.monotonic() + self._within_s, True, ""
        for _ in range(self._tries):
            left_s = until - time.monotonic()
            if left_s <= 0:
                break
            tried = self._try(record, left_s / 2)
            if tried.offset is not None:
                return Outcome(type=OpType.OK, base=tried.offset)
            is_sure, why = is_sure and tried.is_sure, tried.why
            threading.Event().wait(min(_AGAIN_S, left_s / 2))
        return Outcome(type=OpType.FAIL if is_sure else OpType.INFO, error=why or "no time to send it")

    def _try(self, record: Record, within_s: float) -> _Try:
        value, within_ms = b64encode(record.value.encode()).decode(), max(round(within_s * 1000), 1)
        told = self._process.ask(
            *("send", *record.place, within_ms, value),
            within_s=within_s + REPORT_S_MAX,
            expects=("sent", "refused", "unsent", _FAILED),
        )
        if told is None:
            return _Try(why="no answer of the library in time")
        try:
            match told:
                case ["sent", status, offset]:
                    return _Try(offset=int(offset)) if status == _OK else _Try(why=status)
                case ["refused", code, remark]:
                    why = remark_in(remark)
                    is_sure = refuses(int(code)) or lacks_slaves(int(code), why)
                    return _Try(why=f"code {code}: {why}", is_sure=is_sure)
                case ["unsent" | "failed" as how, error, remark]:
                    return _Try(why=f"{error}: {remark_in(remark)}", is_sure=how == "unsent")
        except ValueError:
            pass
        raise self._process.nonsense(told)

    def close(self) -> None:
        """End its process."""
        self._process.close()


class Reader:
    """A consumer, which is assigned anew for other positions."""

    def __init__(self, plan: ConsumerPlan, process: Process) -> None:
        self._wait_ms = max(plan.wait_ms, 1)
        self._max_bytes = plan.max_bytes
        self._process = process
        self._positions: dict[Place, int] = {}
        self._is_assigned = False

    def assign(self, positions: Mapping[Place, int]) -> None:
        """Read these queues, and no others, from these offsets on."""
        self._positions, self._is_assigned = dict(positions), False

    def poll(self) -> Came:
        """Return what has come, or what comes within the plan's time."""
        if not self._is_assigned:
            words = [word for place, position in self._positions.items() for word in (*place, position)]
            answer = self._process.ask(
                "assign", *words, within_s=CLIENT_OPERATION_S_MAX, expects=("assigned", _FAILED)
            )
            if answer != ["assigned"]:
                # Whoever asks again at once would ask for ever.
                threading.Event().wait(_AGAIN_S)
                return self._refused(answer)
            self._is_assigned = True
        within_s = self._wait_ms / 1000 + CLIENT_OPERATION_S_MAX
        answer = self._process.ask(
            *("poll", self._wait_ms, self._max_bytes), within_s=within_s, expects=("polled", _FAILED)
        )
        if answer is None or answer[0] != "polled":
            return self._refused(answer)
        return self._came(answer)

    def _refused(self, told: list[str] | None) -> Came:
        self._is_assigned = False
        if told is None:
            return refused_all("no answer of the library in time", self._positions)
        try:
            _, error, remark = told
            why = f"{error}: {remark_in(remark)}"
        except ValueError:
            raise self._process.nonsense(told) from None
        # It does not say of which queue.
        return refused_all(why, self._positions, self._positions if _OUT_OF_RANGE in why else ())

    def _came(self, told: list[str]) -> Came:
        """Return the records of an answer; if the library went back in a queue, nothing, and why."""
        came = Came()
        at = dict(self._positions)
        try:
            for topic, queue, offset, value in zip(*[iter(told[1:])] * 4, strict=True):
                place, number = Place(topic, int(queue)), int(offset)
                if number < at[place]:
                    self._is_assigned = False
                    why = f"the library went back to {number}, from {at[place]}"
                    return refused_all(why, self._positions, (place,))
                came.add(place, number, b64decode(value, validate=True))
                at[place] = number + 1
        except (ValueError, KeyError):
            raise self._process.nonsense(told) from None
        self._positions = at
        return came

    def high_watermark(self, place: Place) -> int | None:
        """Return None: the library tells of none."""
        del place
        return None

    def close(self) -> None:
        """End its process."""
        self._process.close()
