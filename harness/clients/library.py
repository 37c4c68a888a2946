"""
Producers and consumers of a workload on a client library, which decides much by itself.

    producer   it makes batches of what is sent together, and asks who leads; one send is under way at a time
    consumer   it fetches from the leaders in the background: a poll says what came, and not from which node

A record that a poll brings was fetched before the poll ended, perhaps before it began. A poll that brings nothing
fails: the library does not say whether a node answered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeAlias

from harness.clients.clock import wall_ms
from harness.clients.events import Recorder, poll_event, produce_events
from harness.clients.outcome import Outcome
from harness.events import Poll, Produce
from harness.keys import text_in
from harness.model import OpType
from harness.workload.plan import ConsumerPlan, Place, ProducerPlan
from harness.workload.script import FIRST, Ask, ConsumerScript, Life, ProducerScript, Send

# Long enough that what is sent together is one batch, as a rule.
LINGER_MS: Final = 5
# How long a report is waited for, beyond the time of its record: librdkafka looks once a second.
REPORT_S_MAX: Final = 3.0
# So many records at most come with one poll.
POLL_RECORDS_MAX: Final = 500
NOTHING: Final = "nothing came"
NO_REPORT: Final = "no report"
# After a batch of which certainly nothing was written; Kafka's producers wait as long (retry.backoff.ms).
# Without it a cluster that has no leader is asked hundreds of times a second, and the history has little else.
_REFUSED_S: Final = 0.1


# --- what a library must do -------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record to send, and its time, which a library would set by itself, and the history could not say which."""

    place: Place
    value: str
    time_ms: int


# Called with a record's value and its outcome, by the thread that sends.
Report: TypeAlias = Callable[[str, Outcome], None]


class Sender(Protocol):
    """A library's producer."""

    def send(self, records: Sequence[Record], send: Send, report: Report) -> None:
        """Send these records together; return when each outcome was reported, or when no more come in time."""

    def close(self) -> None:
        """Leave nothing behind; what is still under way may be lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why nothing more comes of a partition; its position may be out of the log's range."""

    why: str
    out_of_range: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What one poll brought of each partition: (offset, value) of each record, and then a refusal."""

    records: dict[Place, list[tuple[int, str]]] = field(default_factory=dict)
    refused: dict[Place, Refusal] = field(default_factory=dict)

    def add(
        self,
        place: Place,
        offset: int,
        value: bytes | None,
        headers: Iterable[tuple[str, bytes | None]] | None = None,
    ) -> None:
        """Add a record; a tombstone's text is in its headers."""
        self.records.setdefault(place, []).append((offset, text_of(value, headers)))


def text_of(value: bytes | None, headers: Iterable[tuple[str, bytes | None]] | None) -> str:
    """Return a record's text, as the history has it; "" for a tombstone without one."""
    text = text_in(headers or ()) if value is None else value
    return (text or b"").decode(errors="replace")


def refused_all(why: str, places: Iterable[Place], out_of_range: Collection[Place] = ()) -> Came:
    """Return a poll that brought nothing, and after which all partitions are assigned again."""
    refused = {place: Refusal(why=why, out_of_range=place in out_of_range) for place in places}
    return Came(refused=refused)


class Reader(Protocol):
    """A library's consumer, which commits nothing and resets no position by itself."""

    def assign(self, positions: Mapping[Place, int]) -> None:
        """Read these partitions, and no others, from these offsets on; take no answer to an earlier question."""

    def poll(self) -> Came:
        """Return what has come, or what comes within the plan's time."""

    def high_watermark(self, place: Place) -> int | None:
        """Return that of the last answer that the library has, None if it has none."""

    def close(self) -> None:
        """Leave nothing behind."""


# --- what is done with it ---------------------------------------------------------------------------------------
class LibraryProducer:
    """
    One producer.

    Args:
        digest: returns the digest that a log has of a record with this value and time, "" if it is not known.
    """

    def __init__(
        self,
        plan: ProducerPlan,
        seed: int,
        *,
        process: str,
        history: Recorder,
        sender: Sender,
        digest: Callable[[str, int], str],
        life: Life = FIRST,
    ) -> None:
        self._plan = plan
        self._script = ProducerScript(plan, seed, life)
        self._process = process
        self._history = history
        self._sender = sender
        self._digest = digest

    def run(self, leave: threading.Event) -> None:
        """Send until it is to leave."""
        try:
            while not leave.wait(self._script.pause_ms() / 1000):
                if not self._send(self._script.next()):
                    leave.wait(_REFUSED_S)
        finally:
            self._sender.close()

    def _send(self, send: Send) -> bool:
        """Send a batch to each partition, and record each outcome; return whether any record may be written."""
        open_: dict[str, Produce] = {}
        records: list[Record] = []
        written = False
        for place, values in send.parts:
            for event in produce_events(self._plan.name, place, values, send):
                now_ms = wall_ms()
                digest = self._digest(event.value, now_ms)
                self._history.record(self._process, OpType.INVOKE, replace(event, digest=digest))
                open_[event.value] = event
                records.append(Record(place=place, value=event.value, time_ms=now_ms))

        def report(value: str, outcome: Outcome) -> None:
            nonlocal written
            written |= outcome.type is not OpType.FAIL
            # A report that comes when its record has ended finds nothing to end.
            if (event := open_.pop(value, None)) is not None:
                ended = replace(event, offset=outcome.base, error=outcome.error)
                self._history.record(self._process, outcome.type, ended)

        self._sender.send(records, send, report)
        for value in list(open_):
            report(value, Outcome(type=OpType.INFO, error=NO_REPORT))
        return written


class LibraryConsumer:
    """One consumer, which assigns its partitions and seeks by itself."""

    def __init__(
        self,
        plan: ConsumerPlan,
        seed: int,
        *,
        process: str,
        history: Recorder,
        reader: Reader,
        life: Life = FIRST,
    ) -> None:
        self._script = ConsumerScript(plan, seed, life)
        self._process = process
        self._history = history
        self._reader = reader
        # Where the library reads on.
        self._at: dict[Place, int] = {}

    def run(self, leave: threading.Event) -> None:
        """Poll until it is to leave."""
        try:
            while not leave.wait(self._script.pause_ms() / 1000):
                self._poll(self._script.asks())
        finally:
            self._reader.close()

    def _poll(self, asks: Sequence[Ask]) -> None:
        """Poll once for all partitions, and record for each what came."""
        if any(self._at.get(ask.place) != ask.position for ask in asks):
            self._at = {ask.place: ask.position for ask in asks}
            self._reader.assign(self._at)
        polls = {ask.place: poll_event("", ask) for ask in asks}
        for event in polls.values():
            self._history.record(self._process, OpType.INVOKE, event)
        came = self._reader.poll()
        for ask in asks:
            self._end(ask, polls[ask.place], came.records.get(ask.place, ()), came.refused.get(ask.place))

    def _end(self, ask: Ask, poll: Poll, records: Sequence[tuple[int, str]], refusal: Refusal | None) -> None:
        """Record what came of one partition; records that came before a refusal are those of an answer."""
        if records:
            next_offset = records[-1][0] + 1
            high_watermark = self._reader.high_watermark(ask.place)
            # What the library knows may be of a later answer, from a leader that is behind.
            known = high_watermark if high_watermark is not None and high_watermark >= next_offset else None
            answered = replace(poll, records=tuple(records), high_watermark=known)
            self._history.record(self._process, OpType.OK, answered)
            self._script.took(ask, records, next_offset)
            self._at[ask.place] = next_offset
        else:
            why = NOTHING if refusal is None else refusal.why
            self._history.record(self._process, OpType.FAIL, replace(poll, error=why))
        if refusal is not None:
            self._at.pop(ask.place, None)  # it reads no further by itself
            if refusal.out_of_range:
                self._script.out_of_range(ask)
