"""Producers and consumers of a workload on a target's plain client; harness/clients/library.py records them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final

from harness.clients.beside import Beside
from harness.clients.library import POLL_RECORDS_MAX, Came, Record, Refusal, Report
from harness.clients.outcome import Outcome
from harness.clients.plain_nodes import PlainNodes
from harness.model import OpType, TargetError
from harness.target.log_client import Batches, Found, LogClient, Refused
from harness.workload.plan import ACKS_ALL, Clients, ConsumerPlan, Library, Place, ProducerPlan, Via
from harness.workload.script import Send

OFFSET_MAX: Final = 2**63 - 1


def produced(
    nodes: PlainNodes, place: Place, values: Sequence[str], within_s: float, acks: int = ACKS_ALL
) -> Outcome:
    """Append a batch once, at whichever node takes it; return what is known of it then."""
    spelled = [value.encode() for value in values]

    def append(client: LogClient) -> int:
        if len(spelled) == 1 and acks == ACKS_ALL:
            return client.produce(spelled[0])
        assert isinstance(client, Batches), "it was asked before whether it can"
        return client.produce_batch(spelled, acks)

    try:
        offset: Any = nodes.ask(place, within_s, append)
    except Refused as error:
        return Outcome(type=OpType.FAIL, error=str(error))
    except Exception as error:
        return Outcome(type=OpType.INFO, error=f"{type(error).__name__}: {error}")
    if type(offset) is not int or not 0 <= offset <= OFFSET_MAX:
        return Outcome(
            type=OpType.INFO,
            error=f"{nodes.whose}: produce returned {offset!r:.200}; expected an offset from 0 on",
        )
    return Outcome(type=OpType.OK, base=offset)


def read_from(first: int, at_most: int, whose: str, client: LogClient) -> Sequence[Found]:
    """
    Return what a read of a target's client brings, no more than so many records.

    Raises:
        TargetError: it brings what no log can: not records, or offsets that do not rise.
    """
    found: list[Found] = []
    for record in islice(client.read(first), at_most):
        offset, value = getattr(record, "offset", None), getattr(record, "value", None)
        least = found[-1].offset + 1 if found else first
        if type(offset) is not int or not least <= offset <= OFFSET_MAX or not isinstance(value, bytes):
            raise TargetError(
                f"{whose}: a read from {first} brings {record!r:.200} after {len(found)} records; expected "
                "records with a value of bytes at offsets that rise"
            )
        found.append(Found(offset, value))
    return found


def batches_of(records: Sequence[Record], *, together: bool) -> Iterator[tuple[Place, list[str]]]:
    """Yield what is sent at once: all values of a partition, or each alone."""
    if not together:
        yield from ((record.place, [record.value]) for record in records)
        return
    found: dict[Place, list[str]] = {}
    for record in records:
        found.setdefault(record.place, []).append(record.value)
    yield from found.items()


class PlainSender:
    """
    A producer, which sends the records of a batch at once if its client can, else one after the other.

    None is sent after one that was not acknowledged: a batch takes no longer than its time and one wait.
    """

    def __init__(self, plan: ProducerPlan, nodes: PlainNodes) -> None:
        self._within_s = plan.within_ms / 1000
        self._nodes = nodes

    def send(self, records: Sequence[Record], send: Send, report: Report) -> None:
        """Send these records; each outcome is known when its call returns."""
        missed: dict[Place, str] = {}
        for place, values in batches_of(records, together=self._nodes.batches):
            if place in missed:
                outcome = Outcome(type=OpType.FAIL, error=f"not sent: {missed[place]} was not acknowledged")
            else:
                outcome = produced(self._nodes, place, values, self._within_s, send.acks)
                if outcome.type is not OpType.OK:
                    missed[place] = values[-1]
            for at, value in enumerate(values):
                report(value, replace(outcome, base=outcome.offset(at)))

    def close(self) -> None:
        """Close its connections."""
        self._nodes.close()


class PlainReader:
    """
    A consumer, which asks for each partition in turn.

    Args:
        addresses: of the nodes, if it asks each of them in turn and not one that answers.
    """

    def __init__(self, plan: ConsumerPlan, nodes: PlainNodes, addresses: Sequence[str]) -> None:
        self._within_s = max(plan.wait_ms, 1) / 1000
        self._nodes = nodes
        self._every = list(addresses) if plan.via is Via.EVERY else []
        self._turn = 0
        self._positions: dict[Place, int] = {}

    def assign(self, positions: Mapping[Place, int]) -> None:
        """Read these partitions from these offsets on."""
        self._positions = dict(positions)

    def poll(self) -> Came:
        """Return what comes of each partition; one that fails says why."""
        came = Came()
        for place, position in self._positions.items():
            try:
                records = self._read(place, position)
            except Exception as error:
                came.refused[place] = Refusal(why=f"{type(error).__name__}: {error}")
                continue
            for record in records:
                came.add(place, record.offset, record.value)
                self._positions[place] = record.offset + 1
        self._turn += 1
        return came

    def _read(self, place: Place, position: int) -> Sequence[Found]:
        question = partial(read_from, position, POLL_RECORDS_MAX, self._nodes.whose)
        if self._every:
            at = self._every[self._turn % len(self._every)]
            return self._nodes.ask_at(at, place, question)
        return self._nodes.ask(place, self._within_s, question)

    def high_watermark(self, place: Place) -> int | None:
        """Return None: a plain client is told of none."""
        del place
        return None

    def close(self) -> None:
        """Close its connections."""
        self._nodes.close()


def impossible_of(plans: Clients, able: Collection[int], beside: Beside | None = None) -> Iterator[str]:
    """Yield, for each planned client, what the target's client, which can wait for these acks, has no call for."""
    for churner in plans.churners:
        yield f"churner {churner.name}: the target's client creates and deletes no topics"
    both: tuple[ProducerPlan | ConsumerPlan, ...] = (*plans.producers, *plans.consumers)
    for plan in both:
        if plan.client is not None:
            yield f"client {plan.client}: {plan.name}; expected the target's own"
        if plan.kill_after is not None:
            yield f"{plan.name} kill_after=…: the target's client has no process of its own"
    for producer in plans.producers:
        if beside is not None and beside.sends(producer, plans):
            continue
        found = {unsendable(acks, codec, able) for acks in producer.acks for codec in producer.codecs} - {""}
        if producer.keys or producer.tombstones:
            found.add("keys")
        if producer.idempotent or producer.retries:
            found.add("retries")
        for why in sorted(found):
            yield f"producer {producer.name} with {why}; expected acks=all and values alone of the target's client"


def plainly(plans: Clients, able: Collection[int], beside: Beside | None = None) -> Clients:
    """
    Return a workload's clients as one with these acks can be them; what stands on another library is left out.

    A producer that sends again stands on the target's library, if it can.
    """
    if beside is not None and not beside.knows_again:
        plans = plans.unnumbered()
    return replace(
        plans,
        producers=tuple(
            _simple(each) if beside is not None and beside.sends(each, plans) else _plain(each, able)
            for each in plans.producers
            if each.client is None or (each.client is Library.RAW and beside is not None)
        ),
        consumers=tuple(replace(each, kill_after=None) for each in plans.consumers if each.client is None),
        churners=(),
    )


def _simple(plan: ProducerPlan) -> ProducerPlan:
    return replace(plan, codecs=("none",), keys=0, tombstones=0.0, together=0.0, client=None, kill_after=None)


def _plain(plan: ProducerPlan, able: Collection[int]) -> ProducerPlan:
    acks = tuple(acks for acks in plan.acks if acks in able) or (ACKS_ALL,)
    return replace(_simple(plan), acks=acks, retries=0, idempotent=False)


def unsendable(acks: int, codec: str, able: Collection[int] = (ACKS_ALL,)) -> str:
    """Return what the call of a plain client with these acks does not say, "" if it says all."""
    if acks not in able:
        return f"acks={acks}"
    return "" if codec == "none" else f"codec {codec}"
