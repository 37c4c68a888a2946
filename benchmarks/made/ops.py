"""
The ops of a long run of our brokers, one after another: what clients, brokers and the links' witness record, in
the shares of a real run, and at its end every replica's log and a read of all.

Of each step are some records that a client sends together, their acknowledgements, the appends and high watermarks
of three replicas, the followers' fetches and the leader's flush. At the end each step is one batch of each log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from harness.events import Append, Batch, Event, Fetch, Flushed, HighWatermark, Produce, Read, Snapshot
from harness.model import OpType

TOPIC: Final = "log"
NODES: Final = ("A", "B", "C")
CLIENTS: Final = 8
RECORDS: Final = 5
_SEGMENT: Final = "00000000000000000000.log"
# Ops of a step while the run goes, and at its end.
_GOING: Final = 2 * RECORDS + 3 + 3 + 2 + 1
_FINAL: Final = len(NODES)

Recorded: TypeAlias = tuple[str, OpType, Event]


def run_of(ops: int, partitions: int) -> Iterator[Recorded]:
    """Yield the process, type and event of about so many ops, the final reads last."""
    steps = max(partitions, ops // (_GOING + _FINAL))
    for step in range(steps):
        yield from _step(step // partitions, {"topic": TOPIC, "partition": step % partitions})
    for partition in range(partitions):
        here = len(range(partition, steps, partitions))
        about = {"topic": TOPIC, "partition": partition}
        yield from _read(here, about)
        for node in NODES:
            yield from _log(node, here, about)


def _step(number: int, about: dict[str, Any]) -> Iterator[Recorded]:
    first, end = number * RECORDS, (number + 1) * RECORDS
    client = f"client-{number % CLIENTS}"
    sent = [
        Produce(**about, name="m", acks=-1, codec="none", value=_value(offset), digest=_digest(offset))
        for offset in range(first, end)
    ]
    for each in sent:
        yield client, OpType.INVOKE, each
    for node in NODES:
        role = "leader" if node == NODES[0] else "follower"
        yield node, OpType.INFO, Append(**about, base=first, end=end, epoch=0, role=role)
    for follower in NODES[1:]:
        yield "fabric", OpType.INFO, Fetch(link=(follower, NODES[0]), **about, offset=end)
    for node in NODES:
        yield node, OpType.INFO, HighWatermark(**about, to=end)
    yield NODES[0], OpType.INFO, Flushed(**about, upto=end)
    for offset, each in enumerate(sent, first):
        yield (
            client,
            OpType.OK,
            Produce(**about, name="m", acks=-1, codec="none", value=each.value, offset=offset),
        )


def _read(steps: int, about: dict[str, Any]) -> Iterator[Recorded]:
    yield "client-admin", OpType.INVOKE, Read(**about)
    end = steps * RECORDS
    records = tuple((offset, _value(offset)) for offset in range(end))
    yield "client-admin", OpType.OK, Read(**about, records=records, high_watermark=end)


def _log(node: str, steps: int, about: dict[str, Any]) -> Iterator[Recorded]:
    end = steps * RECORDS
    yield (
        node,
        OpType.OK,
        Snapshot(
            **about,
            log_start_offset=0,
            log_end_offset=end,
            high_watermark=end,
            epochs=((0, 0),),
            problems=(),
            batches=steps,
        ),
    )
    for number in range(steps):
        first = number * RECORDS
        yield (
            node,
            OpType.OK,
            Batch(
                **about,
                base=first,
                last=first + RECORDS - 1,
                epoch=0,
                magic=2,
                crc=(first * 2654435761) & 0xFFFFFFFF,
                codec="none",
                position=number * 400,
                segment=_SEGMENT,
                records=tuple(
                    (offset, _digest(offset), _value(offset)) for offset in range(first, first + RECORDS)
                ),
            ),
        )


def _value(offset: int) -> str:
    return f"m-{offset}"


def _digest(offset: int) -> str:
    return f"{(offset + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF:016x}"
