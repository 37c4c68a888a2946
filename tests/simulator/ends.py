"""Two ends of a network that keep what comes, for tests of what is between them."""

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
from targets.simulator.clock import NS_PER_MS, Clock
from targets.simulator.links import SimLinks
from targets.simulator.network import Latency, Network
from targets.simulator.pipe import ANSWERS, REQUESTS, Frame, Pipe
from targets.simulator.witness import Witness
from tests.events.as_recorded import into

TP = TopicPartition("log", 0)
HOP_NS = NS_PER_MS // 10
TAG = 7


class Keeper:
    """An end that keeps what it gets."""

    def __init__(self) -> None:
        self.listening = True
        self.got: list[Any] = []
        self.ended: list[int] = []

    def on_frame(self, pipe: Pipe, direction: int, frame: Frame) -> None:
        self.got.append(("copy of ", frame.body) if frame.copy else frame.body)

    def on_end(self, pipe: Pipe) -> None:
        self.ended.append(pipe.number)


class Room:
    """A and B on a network, and what the fabric tells."""

    def __init__(self, protocol: str = "kip101", *, latency: Latency | None = None, seed: int = 0) -> None:
        self.clock = Clock(seed)
        self.network = Network(self.clock, latency or Latency(), Witness(PROTOCOLS[protocol]))
        self.links = SimLinks(self.network)
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.network.record = into(self.told)
        self.a, self.b = Keeper(), Keeper()
        self.network.ends.update({"A": self.a, "B": self.b})

    def dial(self, *, outside: bool = False) -> Pipe:
        """A dials B."""
        return self.network.dial("A", "B", "fetcher", outside=outside)

    def ask(self, pipe: Pipe, body: Any, request: Request | None = None) -> None:
        """A asks B something, a fetch unless told otherwise."""
        self.network.send(pipe, REQUESTS, body, request or fetch(0), tag=TAG)

    def answer(self, pipe: Pipe, body: Any, request: Request | None = None) -> None:
        """B answers A."""
        self.network.send(pipe, ANSWERS, body, request or fetch(0), tag=TAG)

    def settle(self, ms: float = 1_000) -> None:
        """Let everything arrive that may within the time."""
        until = self.clock.now_ns + int(ms * NS_PER_MS)
        while (following := self.clock.next_ns) is not None and following <= until:
            event = self.clock.pop()
            assert event is not None
            (self.network.on_due if event[0] == "frame" else self.network.on_ended)(*event[1:])
        self.clock.advance(until)

    def of(self, f: str) -> list[Mapping[str, Any]]:
        """What the fabric told under that name."""
        return [value for told, value in self.told if told == f]


def fetch(offset: int, topic: str = "log") -> FetchRequest:
    """A follower's fetch."""
    part = FetchPartition(tp=TopicPartition(topic, 0), fetch_offset=offset, max_bytes=1)
    return FetchRequest(replica_id=1, max_wait_ms=0, min_bytes=1, max_bytes=1, partitions=(part,))


def question(epoch: int) -> OffsetForLeaderEpochRequest:
    """A follower's question where an epoch ends."""
    return OffsetForLeaderEpochRequest(questions=(EpochQuestion(tp=TP, leader_epoch=epoch),))


def end_of(epoch: int, end: int) -> OffsetForLeaderEpochResponse:
    """The leader's answer."""
    answer = EpochAnswer(tp=TP, error=ErrorCode.NONE, leader_epoch=epoch, end_offset=end)
    return OffsetForLeaderEpochResponse(answers=(answer,))
