"""A builder of histories: every method adds ops, in order, ten milliseconds apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Self

from harness.model import Op, OpType, Source
from tests.events.filled import filled

IDS = {"A": 11, "B": 12, "C": 13}
TOPIC = {"topic": "t", "partition": 0}
STEP_NS = 10_000_000

# A log for `Story.log`: batches of (epoch, values), one after another from offset 0 unless a base is given as a
# third member.
Batches = Sequence[tuple[Any, ...]]


class Story:
    """
    Builds the ops of one run of one partition; `ops` is the history so far.

    What goes without saying is added: registrations, a follower's fetches, and a truncation that removes nothing.
    """

    def __init__(
        self,
        records: Mapping[str, Sequence[str]],
        protocol: str = "hw",
        replicas: Sequence[str] = ("A", "B"),
        **setup: Any,
    ) -> None:
        self.ops: list[Op] = []
        self.records = records
        self.protocol = protocol
        self._high: dict[str, int] = {}  # each node's high watermark
        self._version = -1  # of the state in ZooKeeper
        self._leader = ""  # the last one
        self._leaders: dict[str, str] = {}  # whom each node follows
        self._owing: dict[str, int] = {}  # the epoch in which a node follows, until it has cut its log
        rules = {"epochs": "no" if protocol == "hw" else "yes"}
        self.add(
            Source.RUNNER,
            "runner",
            OpType.INFO,
            "setup",
            **TOPIC,
            scenario="golden",
            protocol=protocol,
            target="broker",
            seed=1,
            power_tier="loop",
            nodes=IDS,
            replicas=list(replicas),
            records={name: list(values) for name, values in records.items()},
            **({"rules": rules, "host": "local", "min_isr": 1, "unclean": False} | setup),
        )

    def add(self, source: Source, process: str, type_: OpType, f: str, **value: Any) -> Self:
        index = len(self.ops)
        self.ops.append(
            Op(
                index=index,
                time_ns=index * STEP_NS,
                source=source,
                process=process,
                type=type_,
                f=f,
                value=filled(source, f, value, type_),
            )
        )
        return self

    def broker(self, node: str, f: str, **value: Any) -> Self:
        return self.add(Source.BROKER, node, OpType.INFO, f, **value)

    def started(self, *nodes: str) -> Self:
        for node in nodes:
            self.broker(node, "started", id=IDS[node], pid=1, protocol=self.protocol)
        return self

    def elected(self, leader: str | None, epoch: int, isr: str = "AB", version: int | None = None) -> Self:
        if self._version < 0:
            self.add(Source.METADATA, "metadata", OpType.INFO, "controller", node="C")
            self.add(Source.METADATA, "metadata", OpType.INFO, "members", nodes=sorted(IDS))
        self._version = self._version + 1 if version is None else version
        return self.add(
            Source.METADATA,
            "metadata",
            OpType.INFO,
            "state",
            **TOPIC,
            leader=leader,
            epoch=epoch,
            isr=list(isr),
            version=self._version,
        )

    def leads(self, node: str, epoch: int, end: int, isr: str = "AB", **more: Any) -> Self:
        told = {"high_watermark": self._high.get(node, 0), "resumed": False} | more
        ids = [IDS[name] for name in isr]
        self._leader = node
        self._owing.pop(node, None)
        return self.broker(node, "leader", **TOPIC, epoch=epoch, log_end_offset=end, isr=ids, **told)

    def follows(self, node: str, leader: str, epoch: int, end: int) -> Self:
        self._leaders[node], self._owing[node] = leader, epoch
        return self.broker(
            node,
            "follower",
            **TOPIC,
            epoch=epoch,
            leader=IDS[leader],
            log_end_offset=end,
            high_watermark=self._high.get(node, 0),
        )

    def append(self, node: str, base: int, end: int, epoch: int, role: str) -> Self:
        stamp = -1 if self.protocol == "hw" else epoch
        if role == "follower" and node in self._owing:
            self.cut(node, base, base, "high-watermark", self._owing[node])
        self._fetches(node, base, role)
        self.broker(node, "append", **TOPIC, base=base, end=end, epoch=stamp, role=role)
        return self._fetches(node, end, role)

    def _fetches(self, node: str, offset: int, role: str) -> Self:
        if role == "leader" or node not in self._leaders:
            return self
        link = [node, self._leaders[node]]
        return self.add(Source.FABRIC, "fabric", OpType.INFO, "fetch", **TOPIC, link=link, offset=offset)

    def cut(self, node: str, start: int, to: int, reason: str, epoch: int = 0) -> Self:
        cut = {"from": start, "to": to, "end": to}
        self._high[node] = min(self._high.get(node, 0), to)
        self._owing.pop(node, None)
        return self.broker(node, "truncate", **TOPIC, **cut, reason=reason, epoch=epoch)

    def recovered(self, node: str, end: int, epochs: Sequence[tuple[int, int]] = ()) -> Self:
        self._high[node] = min(self._high.get(node, 0), end)
        return self.broker(
            node,
            "recovered",
            **TOPIC,
            log_end_offset=end,
            clean=False,
            cut_bytes=0,
            reason="clean",
            epochs=[list(entry) for entry in epochs],
            high_watermark=self._high[node],
        )

    def passes(self, node: str, to: int) -> Self:
        self._high[node] = to
        return self.broker(node, "high-watermark", **TOPIC, to=to)

    def shrinks(self, node: str, isr: str, epoch: int) -> Self:
        ids = [IDS[name] for name in isr]
        self._version += 1
        return self.broker(node, "isr", **TOPIC, isr=ids, version=self._version, epoch=epoch)

    def sends(self, name: str, acks: int = -1) -> Self:
        for value in self.records[name]:
            record = self._record(name, value) | {"acks": acks}
            self.add(Source.CLIENT, "client-1", OpType.INVOKE, "produce", **record)
        return self

    def acked(self, name: str, offset: int, acks: int = -1) -> Self:
        for place, value in enumerate(self.records[name]):
            record = self._record(name, value) | {"acks": acks, "offset": offset + place}
            self.add(Source.CLIENT, "client-1", OpType.OK, "produce", **record)
        return self

    def fault(self, f: str, *nodes: str) -> Self:
        self.add(Source.NEMESIS, "nemesis", OpType.INVOKE, f, nodes=list(nodes))
        return self.add(Source.NEMESIS, "nemesis", OpType.OK, f, nodes=list(nodes), probe="seen")

    def healed(self) -> Self:
        return self.add(Source.RUNNER, "runner", OpType.OK, "healed")

    def log(
        self, node: str, batches: Batches, epochs: Sequence[tuple[int, int]] | None = None, start: int = 0
    ) -> Self:
        placed = list(_placed(batches, start))
        end = max((last + 1 for _, last, _, _ in placed), default=start)
        self.add(
            Source.LOG,
            node,
            OpType.OK,
            "snapshot",
            **TOPIC,
            log_start_offset=start,
            log_end_offset=end,
            high_watermark=None,
            epochs=None if epochs is None else [list(entry) for entry in epochs],
            problems=[],
            batches=len(placed),
        )
        for base, last, epoch, values in placed:
            records = [[base + n, digest(value), value] for n, value in enumerate(values)]
            stored = {"magic": 2, "crc": 1, "codec": "none", "position": 0, "segment": "0.log"}
            where = {"base": base, "last": last, "epoch": epoch}
            self.add(Source.LOG, node, OpType.OK, "batch", **TOPIC, **where, **stored, records=records)
        return self

    def read(self, *values: str) -> Self:
        if max(self._high.values(), default=0) and self._leader and self._high.get(self._leader, 0) < len(values):
            self.passes(self._leader, len(values))
        records = [[offset, value] for offset, value in enumerate(values)]
        self.add(Source.CLIENT, "client-1", OpType.INVOKE, "read", **TOPIC)
        return self.add(
            Source.CLIENT,
            "client-1",
            OpType.OK,
            "read",
            **TOPIC,
            records=records,
            high_watermark=len(values),
        )

    def done(self) -> Self:
        return self.add(Source.RUNNER, "runner", OpType.INFO, "done")

    def _record(self, name: str, value: str) -> dict[str, Any]:
        return {**TOPIC, "name": name, "value": value, "acks": -1, "codec": "none"}


def digest(value: str) -> str:
    return sha256(value.encode()).hexdigest()[:16]


def _placed(batches: Batches, start: int) -> Any:
    offset = start
    for epoch, values, *base in batches:
        offset = base[0] if base else offset
        yield offset, offset + len(values) - 1, epoch, values
        offset += len(values)
