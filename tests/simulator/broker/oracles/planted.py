"""Watched worlds in which tests plant a bug: in a node's state, in its log, or in a function of the core."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from harness.model import Op, OpType, Source
from targets.broker.core.events import Caller, Received
from targets.broker.core.messages import FetchPartition, FetchRequest, ProducePartition, ProduceRequest, Request
from targets.broker.core.state import Replica
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.storage.log import SimLog
from targets.simulator.broker.storage.records import make_batch
from targets.simulator.broker.world import World
from tests.events.filled import filled
from tests.simulator.worlds import TOPIC, TP, WAIT_S, cluster, settled

# A connection that the network does not know: its answers go nowhere, but the oracles see them.
CONNECTION = 10**9
_NUMBERS = count(1)


def watched(protocol: str = "kip380", **settings: Any) -> tuple[World, Oracles]:
    """Return a world of three replicas with two committed batches, and oracles that watched both commits."""
    world = cluster(protocol, replicas=("A", "B", "C"), **settings)
    oracles = Oracles(world, [TP])
    client = SimClient(world)
    client.produce(TOPIC, 0, "m1", ["m1.0", "m1.1"], acks=-1)
    client.produce(TOPIC, 0, "m2", ["m2.0"], acks=-1)
    assert world.until(lambda: settled(world), WAIT_S)
    world.run(0.2)
    assert {} == oracles.violations
    return world, oracles


def sentence_of(oracles: Oracles, rule: Rule) -> str:
    """Return what the oracles said of a rule, "" if it was not broken."""
    found = oracles.violations.get((rule, TP))
    return "" if found is None else found.sentence


def post(world: World, name: str, request: Request) -> None:
    """Have a node's core process a request, as if it had come over the network."""
    process = world.nodes[name].process
    assert process is not None
    process.post(Received(caller=Caller(connection=CONNECTION, number=next(_NUMBERS)), request=request))


def fetch(offset: int, *, replica: int = -1) -> FetchRequest:
    """Return a fetch of the partition that does not wait."""
    part = FetchPartition(tp=TP, fetch_offset=offset, max_bytes=10**6)
    return FetchRequest(replica_id=replica, max_wait_ms=0, min_bytes=1, max_bytes=10**6, partitions=(part,))


def produce(*values: str, acks: int = -1) -> ProduceRequest:
    """Return a produce of one batch."""
    part = ProducePartition(tp=TP, batches=(make_batch(values, timestamp_ms=1),))
    return ProduceRequest(acks=acks, timeout_ms=30_000, partitions=(part,))


def patch(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, broken: Any) -> None:
    """Replace a function of the core by one that is given the original as its first argument."""
    original = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args, **named: broken(original, *args, **named))


def log_of(world: World, name: str) -> SimLog:
    return world.nodes[name].disk.logs[TP]


def replica_of(world: World, name: str) -> Replica:
    process = world.nodes[name].process
    assert process is not None
    return process.broker.state.replicas[TP]


def tamper(world: World, name: str, value: str) -> None:
    """Replace the records of a replica's first batch, which no broker does."""
    log = log_of(world, name)
    first = log.segments[0].batches[0]
    other = make_batch([value] * (first.last_offset + 1), timestamp_ms=1)
    log.segments[0].batches[0] = replace(first, payload=other.payload)
    log.changes += 1


def acknowledged(offset: int, value: str, acks: int = -1, topic: str = TOPIC) -> Op:
    """Return a client's acknowledgement as the history has it."""
    told = {"topic": topic, "partition": 0, "acks": acks, "offset": offset, "value": value}
    return Op(
        index=0,
        time_ns=0,
        source=Source.CLIENT,
        process="c",
        type=OpType.OK,
        f="produce",
        value=filled(Source.CLIENT, "produce", told),
    )
