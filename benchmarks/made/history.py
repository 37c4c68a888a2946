"""
Make the tables of a large run: three replicas whose brokers emit no events, as Apache Kafka's, and one producer.

A partition is made stretch by stretch. Each stretch is sound: what was sent is acknowledged, every replica holds
it, and the last read shows it. Plants (benchmarks/made/plants.py) change a stretch afterwards, each in one place,
and are the only anomalies. Leadership changes between stretches.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.made.columns import NODES, Held, Sent, mixed
from benchmarks.made.plants import Plant
from benchmarks.made.rows import NS, TOPIC, LogRows, produce_rows, read_rows
from harness.events import (
    ControllerNamed,
    Done,
    Event,
    Fetch,
    Healed,
    Members,
    MetadataState,
    OpType,
    Read,
    Setup,
    Snapshot,
)
from harness.model import Op, Source
from harness.tables.manifest import Manifest
from harness.tables.places import SHIFT
from harness.tables.writer import TableWriter

_IDS: Final = {"A": 1, "B": 2, "C": 3, "D": 4}
# One in so many produces of those without an answer is in the log.
_LANDED: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """
    What is made.

    Attributes:
        sends: produces of each partition.
        cold: produces of each partition but the first, if these are others; 0 if not.
        batch: records of a batch.
        unanswered: the share of produces without an answer.
        stretch: sends that are made at once.
        elections: how many stretches lie between two changes of leadership.
        reads: whether a client reads each partition at the end.
    """

    sends: int
    cold: int = 0
    partitions: int = 1
    batch: int = 3
    unanswered: float = 0.01
    stretch: int = 300_000
    elections: int = 10
    reads: bool = True
    plants: tuple[Plant, ...] = ()

    def sends_of(self, partition: int) -> int:
        """Return the produces of a partition."""
        return self.cold if self.cold and partition else self.sends


@dataclass(slots=True)
class _Part:
    number: int
    held: list[tuple[str, Held]] = field(default_factory=list)
    acked: int = -1
    end: int = 0
    epoch: int = -1
    version: int = -1
    last: int = 0


class Maker:
    """
    Makes one run; `make` writes its tables.

    Attributes:
        truth: what was planted so far, each with the offset of its record, None if it found no record to change.
    """

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        self.shape = shape
        self.seed = seed
        self.truth: list[tuple[Plant, int | None]] = []
        self._index = 0
        self._events: list[tuple[Any, ...]] = []
        self._logs: list[tuple[int, str, int]] = []

    def make(self, folder: Path) -> Manifest:
        """Write the tables to a new folder with their manifest, and return it."""
        shape = self.shape
        with TableWriter(folder) as writer:
            self._begin()
            parts = [_Part(number) for number in range(shape.partitions)]
            for part in parts:
                self._sends(writer, part)
            self._event("runner", OpType.OK, Healed())
            for part in parts:
                self._snapshots(writer, part)
            if shape.reads:
                for part in parts:
                    self._read(writer, part)
            self._event("runner", OpType.INFO, Done())
            writer.write("events", self._events)
        manifest = Manifest(
            size=0,
            ops=self._index,
            rows=writer.written,
            parts=tuple((TOPIC, number) for number in range(shape.partitions)),
            logs=tuple(self._logs),
            reach=1 + (shape.batch >> SHIFT),
            sizes=writer.sizes(),
        )
        manifest.write(folder)
        return manifest

    def _sends(self, writer: TableWriter, part: _Part) -> None:
        shape = self.shape
        sends = shape.sends_of(part.number)
        # The leader of the last epoch is A, whatever is made, so that a plant on C is one on a follower.
        part.last = (max(0, sends - 1) // shape.stretch) // shape.elections
        self._elect(part)
        for place, first in enumerate(range(0, sends, shape.stretch)):
            if place and place % shape.elections == 0:
                self._elect(part)
            self._stretch(writer, part, first, min(sends, first + shape.stretch))

    # --- events ------------------------------------------------------------------------------------------------
    def _event(self, process: str, type_: OpType, event: Event, floor: int | None = None) -> int:
        index = self._take(1)
        op = Op.of(event, index=index, time_ns=index * NS, process=process, type=type_)
        row = (index, op.time_ns, op.source.value, process, type_.value, op.f, *(op.place or (None, None)))
        part = op.place[1] if op.place and op.source is not Source.RUNNER else None
        self._events.append((*row, part, floor, json.dumps(dict(op.value))))
        return index

    def _take(self, count: int) -> int:
        self._index += count
        return self._index - count

    def _begin(self) -> None:
        setup = Setup(
            topic=TOPIC,
            partition=0,
            partitions=self.shape.partitions,
            scenario="made",
            protocol="3.9.1",
            rules={"models": "kip380"},
            host="local",
            target="kafka",
            seed=self.seed,
            power_tier="none",
            nodes=_IDS,
            replicas=NODES,
            records={},
            min_isr=1,
            unclean=False,
            sends_once=True,
        )
        self._event("runner", OpType.INFO, setup)
        self._event("metadata", OpType.INFO, ControllerNamed(node="D"))
        self._event("metadata", OpType.INFO, Members(nodes=tuple(_IDS)))

    def _leader(self, part: _Part) -> str:
        return NODES[(part.epoch - part.last) % len(NODES)]

    def _elect(self, part: _Part) -> None:
        part.epoch += 1
        part.version += 1
        self._event("metadata", OpType.INFO, self._state(part))

    def _state(self, part: _Part) -> MetadataState:
        return MetadataState(
            topic=TOPIC,
            partition=part.number,
            leader=self._leader(part),
            epoch=part.epoch,
            isr=NODES,
            version=part.version,
        )

    # --- a stretch ---------------------------------------------------------------------------------------------
    def _stretch(self, writer: TableWriter, part: _Part, first: int, end: int) -> None:
        shape = self.shape
        number = np.arange(first, end, dtype=np.int64)
        chance = mixed(number + part.number * 2**40, salt=self.seed).view(np.uint64)
        open_ = chance < np.uint64(min(shape.unanswered, 0.999) * 2**64)
        landed = ~open_ | (chance % np.uint64(_LANDED) == 0)
        offset = part.end + np.cumsum(landed) - 1
        group = (number - first) // shape.batch
        size = np.minimum(shape.batch, end - first - group * shape.batch)
        start = self._take(2 * (end - first))
        invoked = start + 2 * group * shape.batch + (number - first - group * shape.batch)
        digest = mixed(number, salt=7 + part.number)
        sent = Sent(
            number=number,
            digest=digest,
            offset=np.where(open_, -1, offset),
            outcome=open_.astype(np.int64),
            invoked=invoked,
            done=invoked + size,
        )
        held = {node: _held(number[landed], offset[landed], digest[landed], group[landed], part) for node in NODES}
        last = int(offset[-1]) if landed.any() else part.end - 1
        for plant in shape.plants:
            if plant.partition == part.number and first <= plant.number < end:
                self.truth.append((plant, plant.change(sent, held)))
        writer.write_table("produces", produce_rows(part.number, sent, part.acked))
        part.acked = max(part.acked, int(sent.offset[sent.outcome == 0].max(initial=-1)))
        for node in NODES:
            part.held.append((node, held[node]))
        part.end = max(part.end, last + 1)
        leader = self._leader(part)
        for node in NODES:
            if node != leader:
                self._event("fabric", OpType.INFO, self._fetch(part, node), part.acked)
        for plant in shape.plants:
            if plant.partition == part.number and first <= plant.number < end:
                for process, event in plant.events(self._state(part), part.end):
                    part.version += isinstance(event, MetadataState)
                    self._event(process, OpType.INFO, event, part.acked if isinstance(event, Fetch) else None)

    def _fetch(self, part: _Part, node: str) -> Fetch:
        return Fetch(topic=TOPIC, partition=part.number, link=(node, self._leader(part)), offset=part.end)

    # --- what stands at the end --------------------------------------------------------------------------------
    def _snapshots(self, writer: TableWriter, part: _Part) -> None:
        for node in NODES:
            stretches = [held for whose, held in part.held if whose == node]
            ends = [int(held.lasts.max()) + 1 for held in stretches if len(held.lasts)]
            firsts: dict[int, int] = {}
            for held in stretches:
                for epoch, base in zip(*_firsts(held), strict=True):
                    firsts.setdefault(int(epoch), int(base))
            snapshot = self._event(
                node,
                OpType.OK,
                Snapshot(
                    topic=TOPIC,
                    partition=part.number,
                    log_start_offset=0,
                    log_end_offset=max(ends, default=0),
                    high_watermark=max(ends, default=0),
                    epochs=tuple(sorted(firsts.items())),
                    problems=(),
                    batches=sum(len(held.bases) for held in stretches),
                ),
            )
            log = LogRows(partition=part.number, node=node, place=len(self._logs))
            self._logs.append((part.number, node, snapshot))
            for held in stretches:
                index = self._take(len(held.bases)) + np.arange(len(held.bases))
                batches, records = log.rows(held, index)
                writer.write_table("batches", batches)
                writer.write_table("records", records)

    def _read(self, writer: TableWriter, part: _Part) -> None:
        leader = self._leader(part)
        about: Mapping[str, Any] = {"topic": TOPIC, "partition": part.number}
        self._event("client-2", OpType.INVOKE, Read(**about), part.acked)
        stretches = [held for whose, held in part.held if whose == leader]
        end = max((int(held.lasts.max()) + 1 for held in stretches if len(held.lasts)), default=0)
        read = self._event("client-2", OpType.OK, Read(**about, records=(), high_watermark=end), part.acked)
        rank = 0
        for held in stretches:
            offset, number = held.offset, held.number
            for plant in self.shape.plants:
                if plant.partition == part.number:
                    offset, number = plant.read(offset, number)
            writer.write_table("reads", read_rows(part.number, read, rank, (offset, number)))
            rank += len(offset)


def _held(number: Any, offset: Any, digest: Any, group: Any, part: _Part) -> Held:
    _, first, counts = np.unique(group, return_index=True, return_counts=True)
    bases = offset[first]
    lasts = bases + counts - 1
    return Held(
        offset=offset.copy(),
        number=number.copy(),
        digest=digest.copy(),
        bases=bases,
        lasts=lasts,
        counts=counts.astype(np.int64),
        epochs=np.full(len(bases), part.epoch),
        crcs=np.abs(mixed(bases, salt=3)) % 2**32,
    )


def _firsts(held: Held) -> tuple[Any, Any]:
    epochs, first = np.unique(held.epochs, return_index=True)
    return epochs, held.bases[first]
