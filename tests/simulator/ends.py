"""Two network endpoints that keep received frames, for tests of the network between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from targets.broker.core.messages import (
    EpochAnswer,
    EpochQuestion,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    Request,
    TopicPartition,
)
from targets.broker.core.rules import PROTOCOLS
from targets.simulator.broker.versions import questions_version
from targets.simulator.broker.wire import WORDS, WirePipe
from targets.simulator.broker.witness import Witness
from targets.simulator.engine.clock import NS_PER_MS, Clock
from targets.simulator.engine.links import SimLinks
from targets.simulator.engine.network import Latency, Network
from targets.simulator.engine.pipe import ANSWERS, REQUESTS, Frame, Pipe
from tests.events.as_recorded import into

TP = TopicPartition("log", 0)
HOP_NS = NS_PER_MS // 10
TAG = 7


class Keeper:
    """An endpoint that keeps the frames it receives."""

    def __init__(self) -> None:
        self.listening = True
        self.got: list[Any] = []
        self.ended: list[int] = []

    def on_frame(self, pipe: Pipe, direction: int, frame: Frame) -> None:
        self.got.append(("copy of ", frame.body) if frame.copy else frame.body)

    def on_end(self, pipe: Pipe) -> None:
        self.ended.append(pipe.number)


class Room:
    """Endpoints A and B on a network, and the events that the fabric records."""

    def __init__(self, protocol: str = "kip101", *, latency: Latency | None = None, seed: int = 0) -> None:
        self.clock = Clock(seed)
        self.protocol = protocol
        witness = Witness(lambda _: questions_version(PROTOCOLS[self.protocol]))
        self.network = Network(self.clock, latency or Latency(), witness)
        self.links = SimLinks(self.network, WORDS)
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.network.record = into(self.told)
        self.a, self.b = Keeper(), Keeper()
        self.network.ends.update({"A": self.a, "B": self.b})

    def install(self, protocol: str) -> None:
        """Have both nodes speak another protocol from now on."""
        self.protocol = protocol

    def dial(self, *, outside: bool = False) -> Pipe:
        """Open a connection from A to B."""
        return self.network.dial("A", "B", "fetcher", WirePipe, outside=outside)

    def ask(self, pipe: Pipe, body: Any, request: Request | None = None) -> None:
        """Send a request from A to B, a fetch by default."""
        self.network.send(pipe, REQUESTS, body, request or fetch(0), tag=TAG)

    def answer(self, pipe: Pipe, body: Any, request: Request | None = None) -> None:
        """Send an answer from B to A."""
        self.network.send(pipe, ANSWERS, body, request or fetch(0), tag=TAG)

    def settle(self, ms: float = 1_000) -> None:
        """Handle every event that is due within the time, and advance the clock."""
        until = self.clock.now_ns + int(ms * NS_PER_MS)
        while (following := self.clock.next_ns) is not None and following <= until:
            event = self.clock.pop()
            assert event is not None
            (self.network.on_due if event[0] == "frame" else self.network.on_ended)(*event[1:])
        self.clock.advance(until)

    def of(self, f: str) -> list[Mapping[str, Any]]:
        """Return the values of the fabric's events of that name."""
        return [value for told, value in self.told if told == f]


def fetch(offset: int, topic: str = "log") -> FetchRequest:
    """Return a follower's fetch."""
    part = FetchPartition(tp=TopicPartition(topic, 0), fetch_offset=offset, max_bytes=1)
    return FetchRequest(replica_id=1, max_wait_ms=0, min_bytes=1, max_bytes=1, partitions=(part,))


def question(epoch: int) -> OffsetForLeaderEpochRequest:
    """Return a follower's request for the end offset of an epoch."""
    return OffsetForLeaderEpochRequest(questions=(EpochQuestion(tp=TP, leader_epoch=epoch),))


def end_of(epoch: int, end: int) -> OffsetForLeaderEpochResponse:
    """Return the leader's answer to that request."""
    answer = EpochAnswer(tp=TP, error=ErrorCode.NONE, leader_epoch=epoch, end_offset=end)
    return OffsetForLeaderEpochResponse(answers=(answer,))
