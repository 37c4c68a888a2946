"""Short histories of brokers that report nothing: what clients, links, faults and ZooKeeper saw."""

from __future__ import annotations

from typing import Any, Self

from harness.model import Op, OpType, Source
from harness.target.traits import Traits
from tests.checkers.story import TOPIC
from tests.events.filled import filled


class Seen:
    """
    Builds the ops of a run in which A leads, and A, B and C are the ISR. Method names say what is seen, `ms` when.

    Args:
        host: `sim`, in which ZooKeeper's watch is never late, or another.
    """

    def __init__(self, host: str = "sim") -> None:
        self.ops: list[Op] = []
        self._version = 0
        nodes = {"A": 1, "B": 2, "C": 3}
        setup = {"nodes": nodes, "replicas": list(nodes), "host": host, "min_isr": 1, "unclean": False}
        traits = Traits(metadata="ZooKeeper", exact_order=host == "sim").as_text()
        self._add(0, Source.RUNNER, "setup", OpType.INFO, "runner", **TOPIC, **setup, traits=dict(traits))
        self.leads("A", 0, ms=1)

    def leads(self, node: str, epoch: int, *, ms: int, isr: str = "ABC") -> Self:
        """Add a state of the partition in ZooKeeper."""
        state = {"leader": node, "epoch": epoch, "isr": list(isr), "version": self._version}
        self._version += 1
        return self._add(ms, Source.METADATA, "state", OpType.INFO, "metadata", **TOPIC, **state)

    def registered(self, nodes: str, *, ms: int) -> Self:
        """Add which nodes have a session in ZooKeeper."""
        return self._add(ms, Source.METADATA, "members", OpType.INFO, "metadata", nodes=list(nodes))

    def acked(self, value: str, offset: int, *, ms: int) -> Self:
        """Add a produce that is acknowledged with acks=all a millisecond later."""
        sent = {**TOPIC, "name": value, "acks": -1, "codec": "none", "value": value}
        self._add(ms, Source.CLIENT, "produce", OpType.INVOKE, "client-1", **sent)
        return self._add(ms + 1, Source.CLIENT, "produce", OpType.OK, "client-1", **sent, offset=offset)

    def fetches(self, link: str, offset: int, *, ms: int) -> Self:
        """Add a follower's fetch."""
        return self._add(
            ms, Source.FABRIC, "fetch", OpType.INFO, "fabric", link=list(link), **TOPIC, offset=offset
        )

    def fetched(self, link: str, offset: int, *, ms: int) -> Self:
        """Add a leader's answer to a follower's fetch."""
        return self._add(
            ms, Source.FABRIC, "fetched", OpType.INFO, "fabric", link=list(link), **TOPIC, offset=offset
        )

    def commanded(self, node: str, leader: str, *, ms: int) -> Self:
        """Add a node's answer to a command to follow a leader."""
        value = {"link": ["A", node], **TOPIC, "leader": leader, "epoch": 0, "isr": [], "error": 0}
        return self._add(ms, Source.FABRIC, "learned", OpType.INFO, "fabric", **value)

    def frame(self, f: str, link: str, *, ms: int) -> Self:
        """Add what befalls requests of fetches: `hold`, `held` or `release`."""
        value = {"link": list(link), "api": "fetch", "direction": "request"}
        own = {"offset": None} if f == "held" else {"from_offset": None}
        return self._add(ms, Source.FABRIC, f, OpType.INFO, "fabric", **value, **own)

    def fault(self, name: str, nodes: str, *, ms: int, **value: Any) -> Self:
        """Add a fault that bit."""
        for type_ in (OpType.INVOKE, OpType.OK):
            self._add(ms, Source.NEMESIS, name, type_, "nemesis", nodes=list(nodes), **value)
        return self

    def log(self, node: str, *values: str, ms: int = 9_000) -> Self:
        """Add a final log, one record a batch."""
        log = {"log_start_offset": 0, "log_end_offset": len(values), "batches": len(values), "problems": []}
        self._add(ms, Source.LOG, "snapshot", OpType.OK, node, **TOPIC, **log)
        for offset, value in enumerate(values):
            batch = {"base": offset, "last": offset, "epoch": -1, "records": [[offset, "0" * 16, value]]}
            self._add(ms, Source.LOG, "batch", OpType.OK, node, **TOPIC, **batch)
        return self

    def _add(self, ms: int, source: Source, f: str, type_: OpType, process: str, **value: Any) -> Self:
        op = Op(
            index=len(self.ops),
            time_ns=ms * 1_000_000,
            source=source,
            process=process,
            type=type_,
            f=f,
            value=filled(source, f, value, type_),
        )
        self.ops.append(op)
        return self
