"""
pyfluss, the Python client of Fluss's users: producers as its defaults are, or that send again, and scanners.

A producer of a plan that is idempotent has the library's own settings: a writer's id, and retries without end.
One of a plan with retries alone has no id. Each record is sent side by side with others, and the library makes the
batches. It tells nobody at which offset a record was acknowledged, and chooses the bucket by itself: so it is used
where a topic has one.

Source:  pyfluss 1.0.0; Fluss's documentation, "Python Client"; options `client.writer.*`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

from harness.clients.beside import Around, Beside
from harness.clients.library import POLL_RECORDS_MAX, REPORT_S_MAX, Came, Record, Report, refused_all
from harness.clients.loop import Loop
from harness.clients.outcome import Outcome
from harness.extras import lacks
from harness.model import OpType
from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan
from harness.workload.script import Send
from targets.fluss.tables import COLUMN, DATABASE

_CONNECT_S_MAX: Final = 20.0


class Pyfluss(Beside):
    """The library beside the plain client; see harness/clients/beside.py for every call."""

    tells_offsets = False
    knows_again = True

    def why_not(self) -> str:
        """Return what brings it, if it is not installed."""
        return lacks("fluss")

    def sends(self, plan: ProducerPlan, plans: Clients) -> bool:
        """Return True for a producer that sends again, to topics of one bucket."""
        again = plan.idempotent or bool(plan.retries)
        return again and _one_bucket(plan.places, plans) and not self.why_not()

    def sender(self, plan: ProducerPlan, around: Around) -> Sender:
        """Return a producer."""
        return Sender(plan, around.addresses)

    def reader(self, plan: ConsumerPlan, around: Around) -> Reader:
        """Return a consumer."""
        return Reader(plan, around.addresses)


def _one_bucket(places: Sequence[Place], plans: Clients) -> bool:
    topics = {place.topic for place in places}
    used = chain(*(each.places for each in plans.producers), *(each.places for each in plans.consumers))
    return not any(place.partition for place in used if place.topic in topics)


class _Connected:
    """A connection, made when it is first used; each library object is made once."""

    def __init__(self, addresses: Sequence[str], **settings: Any) -> None:
        self._addresses = ",".join(addresses)
        self._settings = settings
        self._connection: Any = None
        self._tables: dict[str, Any] = {}

    async def table(self, topic: str) -> Any:
        import fluss

        if self._connection is None:
            config = fluss.Config()
            config.bootstrap_servers = self._addresses
            for name, value in self._settings.items():
                setattr(config, name, value)
            self._connection = await asyncio.wait_for(fluss.FlussConnection.create(config), _CONNECT_S_MAX)
        if topic not in self._tables:
            self._tables[topic] = await self._connection.get_table(fluss.TablePath(DATABASE, topic))
        return self._tables[topic]

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


class Sender:
    """A producer; its records of one call are sent side by side."""

    def __init__(self, plan: ProducerPlan, addresses: Sequence[str]) -> None:
        self._within_s = plan.within_ms / 1000
        settings: dict[str, Any] = {"writer_acks": "all", "writer_enable_idempotence": plan.idempotent}
        if not plan.idempotent:
            settings["writer_retries"] = plan.retries
        self._connected = _Connected(addresses, **settings)
        self._writers: dict[str, Any] = {}
        self._loop = Loop(f"pyfluss {plan.name}")

    def send(self, records: Sequence[Record], send: Send, report: Report) -> None:
        """Send these records together; return when each outcome was reported, or when no more come in time."""
        del send
        for value, outcome in self._loop.run(self._outcomes(records)).items():
            report(value, outcome)

    async def _outcomes(self, records: Sequence[Record]) -> dict[str, Outcome]:
        under_way: dict[str, asyncio.Task[None]] = {}
        found: dict[str, Outcome] = {}
        for record in records:
            try:
                writer = await self._writer(record.place.topic)
                handle = writer.append({COLUMN: record.value})
            except Exception as error:  # nothing was handed to a batch
                found[record.value] = Outcome(type=OpType.FAIL, error=f"{type(error).__name__}: {error}")
                continue
            under_way[record.value] = asyncio.ensure_future(handle.wait())
        if under_way:
            await asyncio.wait(under_way.values(), timeout=self._within_s + REPORT_S_MAX)
        for value, task in under_way.items():
            if not task.done():
                task.add_done_callback(lambda late: late.cancelled() or late.exception())
            elif (why := task.exception()) is not None:
                found[value] = Outcome(type=OpType.INFO, error=f"{type(why).__name__}: {why}")
            else:
                found[value] = Outcome(type=OpType.OK)
        return found

    async def _writer(self, topic: str) -> Any:
        if topic not in self._writers:
            table = await self._connected.table(topic)
            self._writers[topic] = table.new_append().create_writer()
        return self._writers[topic]

    def close(self) -> None:
        """Close the connection, and its loop."""
        self._loop.end(self._connected.close(), REPORT_S_MAX)


class Reader:
    """A consumer: the library's log scanner, made anew for other positions."""

    def __init__(self, plan: ConsumerPlan, addresses: Sequence[str]) -> None:
        self._wait_ms = max(plan.wait_ms, 1)
        self._connected = _Connected(addresses, scanner_log_max_poll_records=POLL_RECORDS_MAX)
        self._scanners: dict[Place, Any] = {}
        self._positions: dict[Place, int] = {}
        self._loop = Loop(f"pyfluss {plan.name}")

    def assign(self, positions: Mapping[Place, int]) -> None:
        """Read these buckets, and no others, from these offsets on."""
        self._positions = dict(positions)
        self._scanners.clear()

    def poll(self) -> Came:
        """Return what has come, or what comes within the plan's time."""
        try:
            return self._loop.run(self._poll())
        except Exception as error:
            self._scanners.clear()
            return refused_all(f"{type(error).__name__}: {error}", self._positions)

    async def _poll(self) -> Came:
        came = Came()
        for place, position in self._positions.items():
            scanner = self._scanners.get(place)
            if scanner is None:
                table = await self._connected.table(place.topic)
                scanner = self._scanners[place] = await table.new_scan().create_log_scanner()
                scanner.subscribe(place.partition, position)
            records = await asyncio.wait_for(scanner.poll(self._wait_ms), self._wait_ms / 1000 + REPORT_S_MAX)
            for record in records:
                came.add(place, record.offset, record.row[COLUMN].encode())
        return came

    def high_watermark(self, place: Place) -> int | None:
        """Return None: the library tells of none."""
        del place
        return None

    def close(self) -> None:
        """Close the connection, and its loop."""
        self._loop.end(self._connected.close(), REPORT_S_MAX)
