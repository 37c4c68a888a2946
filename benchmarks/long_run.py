"""The ops of a run as long as one wants, one by one: records with acks=all, copies, and a read now and then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.events import Append, Event, Follower, HighWatermark, Leader, MetadataState, Produce, Read, Setup
from harness.model import Op, OpType

# Records between two reads. Each read shows those since the last one, as a consumer that goes on where it was.
READ_EVERY: Final = 250
_TOPIC: Final = "t"
_NODES: Final = {"A": 1, "B": 2, "C": 3}
_FOLLOWERS: Final = ("B", "C")

Said = tuple[str, OpType, Event]


def long_run(records: int) -> Iterator[Op]:
    """Yield the ops of a run of this many records, in which nothing is wrong; time is the number of the op."""
    for index, (process, type_, event) in enumerate(events(records)):
        yield Op.of(event, index=index, time_ns=index, process=process, type=type_)


def events(records: int) -> Iterator[Said]:
    """Yield what is recorded in such a run: process, type and event."""
    yield "runner", OpType.INFO, _setup()
    yield (
        "metadata",
        OpType.INFO,
        MetadataState(topic=_TOPIC, partition=0, leader="A", epoch=0, isr=tuple(_NODES), version=0),
    )
    yield (
        "A",
        OpType.INFO,
        Leader(topic=_TOPIC, partition=0, epoch=0, log_end_offset=0, high_watermark=0, isr=tuple(_NODES.values())),
    )
    for node in _FOLLOWERS:
        follows = Follower(topic=_TOPIC, partition=0, epoch=0, leader=1, log_end_offset=0, high_watermark=0)
        yield node, OpType.INFO, follows
    for offset in range(records):
        yield from _record(offset)
        if (end := offset + 1) % READ_EVERY == 0:
            asked = Read(topic=_TOPIC, partition=0)
            yield f"client-{end}", OpType.INVOKE, asked
            shown = tuple((each, value(each)) for each in range(end - READ_EVERY, end))
            read = Read(topic=_TOPIC, partition=0, records=shown, high_watermark=end)
            yield f"client-{end}", OpType.OK, read


def value(offset: int) -> str:
    """Return the text of the record at an offset."""
    return f"m.{offset}"


def _record(offset: int) -> Iterator[Said]:
    """Yield one record: sent, appended, copied, committed and acknowledged."""
    sent = Produce(topic=_TOPIC, partition=0, name="m", acks=-1, codec="none", value=value(offset))
    yield "client-1", OpType.INVOKE, sent
    for node in _NODES:
        role = "follower" if node in _FOLLOWERS else "leader"
        append = Append(topic=_TOPIC, partition=0, base=offset, end=offset + 1, epoch=0, role=role)
        yield node, OpType.INFO, append
    yield "A", OpType.INFO, HighWatermark(topic=_TOPIC, partition=0, to=offset + 1)
    acked = Produce(topic=_TOPIC, partition=0, name="m", acks=-1, codec="none", value=value(offset), offset=offset)
    yield "client-1", OpType.OK, acked


def _setup() -> Setup:
    return Setup(
        scenario="long",
        protocol="kip380",
        rules={},
        host="sim",
        target="broker",
        seed=0,
        power_tier="none",
        nodes=_NODES,
        replicas=tuple(_NODES),
        topic=_TOPIC,
        partition=0,
        records={},
        min_isr=1,
        unclean=False,
    )
