"""
nats-py, the Python client of NATS's users: producers that publish again, and ordered consumers.

The library itself publishes once, and connects again by itself; its users publish again. A producer of a plan that
is idempotent gives each message its id (`Nats-Msg-Id`), by which the leader takes it once within two minutes. One
of a plan with retries alone gives none.

Source:  nats-py 2.16; NATS's documentation, "JetStream Model Deep Dive" (exactly once, ordered consumers).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from harness.clients.beside import Around, Beside
from harness.clients.library import POLL_RECORDS_MAX, REPORT_S_MAX, Came, Record, Report, refused_all
from harness.clients.loop import Loop
from harness.clients.outcome import Outcome
from harness.extras import lacks
from harness.model import OpType
from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan
from harness.workload.script import Send
from targets.nats.streams import stream_of

_CONNECT_S_MAX: Final = 5.0
# How often a message is published again, of a plan that says no number.
_TRIES: Final = 10
_AGAIN_S: Final = 0.2


class NatsPy(Beside):
    """The library beside the plain client; see harness/clients/beside.py for every call."""

    tells_offsets = True
    knows_again = True

    def why_not(self) -> str:
        """Return what brings it, if it is not installed."""
        return lacks("nats")

    def sends(self, plan: ProducerPlan, plans: Clients) -> bool:
        """Return True for a producer that sends again."""
        del plans
        return (plan.idempotent or bool(plan.retries)) and not self.why_not()

    def sender(self, plan: ProducerPlan, around: Around) -> Sender:
        """Return a producer."""
        return Sender(plan, around.addresses)

    def reader(self, plan: ConsumerPlan, around: Around) -> Reader:
        """Return a consumer."""
        return Reader(plan, around.addresses)


class _Connected:
    """A connection, made when it is first used, that the library makes again by itself."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = [f"nats://{address}" for address in addresses]
        self._connection: Any = None

    async def stream(self) -> Any:
        """Return what publishes and subscribes."""
        import nats

        if self._connection is None:
            made = nats.connect(
                self._addresses,
                connect_timeout=1,
                reconnect_time_wait=0.1,
                max_reconnect_attempts=-1,
                error_cb=_ignored,
            )
            self._connection = await asyncio.wait_for(made, _CONNECT_S_MAX)
        return self._connection.jetstream()

    async def close(self) -> None:
        """Close it; what is under way may be lost."""
        if self._connection is not None:
            await self._connection.close()


async def _ignored(error: Exception) -> None:
    del error  # whoever waits for an answer sees it


class Sender:
    """A producer; its records of one call are published side by side."""

    def __init__(self, plan: ProducerPlan, addresses: Sequence[str]) -> None:
        self._within_s = plan.within_ms / 1000
        self._tries = 1 + (plan.retries or _TRIES)
        self._idempotent = plan.idempotent
        self._connected = _Connected(addresses)
        self._loop = Loop(f"nats-py {plan.name}")

    def send(self, records: Sequence[Record], send: Send, report: Report) -> None:
        """Send these records together; return when each outcome was reported."""
        del send
        for value, outcome in self._loop.run(self._outcomes(records)):
            report(value, outcome)

    async def _outcomes(self, records: Sequence[Record]) -> list[tuple[str, Outcome]]:
        try:
            stream = await self._connected.stream()
        except Exception as error:  # nothing was published
            why = f"{type(error).__name__}: {error}"
            return [(record.value, Outcome(type=OpType.FAIL, error=why)) for record in records]
        found = await asyncio.gather(*(self._published(stream, record) for record in records))
        return [(record.value, outcome) for record, outcome in zip(records, found, strict=True)]

    async def _published(self, stream: Any, record: Record) -> Outcome:
        """Publish a record until it is acknowledged; one that nobody was sent has failed for certain."""
        from nats.js.errors import NoStreamResponseError

        subject, headers = stream_of(*record.place), {"Nats-Msg-Id": record.value} if self._idempotent else None
        until, sent, why = asyncio.get_running_loop().time() + self._within_s, False, ""
        for _ in range(self._tries):
            left = until - asyncio.get_running_loop().time()
            if left <= 0:
                break
            try:
                answer = await stream.publish(subject, record.value.encode(), timeout=left / 2, headers=headers)
                return Outcome(type=OpType.OK, base=answer.seq)
            except NoStreamResponseError:
                why = why or "no responders"
            except Exception as error:
                sent, why = True, f"{type(error).__name__}: {error}"
            await asyncio.sleep(min(_AGAIN_S, left))
        return Outcome(type=OpType.INFO if sent else OpType.FAIL, error=why or "no answer in time")

    def close(self) -> None:
        """Close the connection, and its loop."""
        self._loop.end(self._connected.close(), REPORT_S_MAX)


class Reader:
    """A consumer: the library's ordered consumer, made anew for other positions."""

    def __init__(self, plan: ConsumerPlan, addresses: Sequence[str]) -> None:
        self._wait_s = max(plan.wait_ms, 1) / 1000
        self._connected = _Connected(addresses)
        self._subscriptions: dict[Place, Any] = {}
        # Subscriptions to other positions, which the library keeps up by itself until they are ended.
        self._left: list[Any] = []
        self._positions: dict[Place, int] = {}
        self._loop = Loop(f"nats-py {plan.name}")

    def assign(self, positions: Mapping[Place, int]) -> None:
        """Read these streams, and no others, from these sequences on."""
        self._positions = dict(positions)
        self._leave()

    def poll(self) -> Came:
        """Return what has come, or what comes within the plan's time."""
        try:
            return self._loop.run(self._poll())
        except Exception as error:
            self._leave()
            return refused_all(f"{type(error).__name__}: {error}", self._positions)

    def _leave(self) -> None:
        self._left += self._subscriptions.values()
        self._subscriptions.clear()

    async def _poll(self) -> Came:
        while self._left:
            with suppress(Exception):  # its connection is closed: it has ended
                await self._left.pop().unsubscribe()
        came = Came()
        for place, position in self._positions.items():
            subscription = self._subscriptions.get(place)
            if subscription is None:
                made = self._subscribed(place, position)
                subscription = self._subscriptions[place] = await asyncio.wait_for(made, REPORT_S_MAX)
            wait_s = self._wait_s
            for _ in range(POLL_RECORDS_MAX):
                try:
                    message = await subscription.next_msg(timeout=wait_s)
                except TimeoutError:
                    break
                came.add(place, message.metadata.sequence.stream, message.data)
                wait_s = 0.001  # what has come already
        return came

    async def _subscribed(self, place: Place, position: int) -> Any:
        from nats.js.api import ConsumerConfig, DeliverPolicy

        stream = await self._connected.stream()
        config = ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=max(position, 1))
        name = stream_of(*place)
        return await stream.subscribe(name, stream=name, ordered_consumer=True, config=config)

    def high_watermark(self, place: Place) -> int | None:
        """Return None: the library tells of none."""
        del place
        return None

    def close(self) -> None:
        """Close the connection, and its loop."""
        self._loop.end(self._connected.close(), REPORT_S_MAX)
