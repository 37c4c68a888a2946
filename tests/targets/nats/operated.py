"""A cluster of NATS that does what an operator asks of its servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.launch import Address
from harness.target.metadata import PartitionTruth, TargetRun
from targets.nats.operating import NatsOperator
from tests.targets.nats.server import Asked, Serve, Talk, servers

CREATE, UPDATE, INFO = "$JS.API.STREAM.CREATE", "$JS.API.STREAM.UPDATE", "$JS.API.STREAM.INFO"
DELETE, PEER_REMOVE = "$JS.API.STREAM.DELETE", "$JS.API.STREAM.PEER.REMOVE"
NO_MEMBER = {"error": {"code": 400, "description": "peer not a member"}}
STEPDOWN, META_STEPDOWN = "$JS.API.STREAM.LEADER.STEPDOWN", "$JS.API.META.LEADER.STEPDOWN"
NO_QUORUM = {"error": {"code": 503, "err_code": 10008, "description": "JetStream system temporarily unavailable"}}
NO_SPACE = {"error": {"code": 400, "err_code": 10005, "description": "no suitable peers for placement"}}


@dataclass
class Cluster:
    """
    Servers that do what they are asked, and metadata that show it.

    Attributes:
        refuses: what is answered instead, one answer after the other.
        members: those of each stream, as the metadata show.
        not_a_member: who cannot be removed.
    """

    leaders: dict[tuple[str, int], str | None] = field(default_factory=dict)
    controller: str | None = "A"
    asked: list[tuple[str, str, Any, str]] = field(default_factory=list)
    refuses: list[object] = field(default_factory=list)
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    elects: Callable[[str | None], str | None] = lambda preferred: preferred
    members: tuple[str, ...] = ("A", "B", "C")
    not_a_member: str = ""

    def served(self, name: str) -> Serve:
        def serve(talk: Talk, asked: Asked) -> None:
            self.asked.append((name, asked.subject, asked.body, talk.hello.get("user", "")))
            talk.tell(asked, self.refuses.pop(0) if self.refuses else self.answer(asked))

        return serve

    def answer(self, asked: Asked) -> object:
        subject, _, stream = asked.subject.rpartition(".")
        preferred = (asked.body or {}).get("placement", {}).get("preferred")
        if asked.subject == META_STEPDOWN:
            self.controller = self.elects(preferred)
            return {"success": True}
        topic, _, partition = stream.rpartition("-")
        place = topic, int(partition)
        if subject == CREATE:
            self.leaders[place] = "C"
            self.configs[stream] = asked.body
        if subject == PEER_REMOVE and asked.body["peer"] == self.not_a_member:
            return NO_MEMBER
        if subject == DELETE:
            del self.leaders[place]
        if subject == STEPDOWN:
            self.leaders[place] = self.elects(preferred)
        if subject == INFO:
            return {"config": self.configs[stream]}
        return {"success": True, "config": {}}

    def of(self, *words: str) -> list[Any]:
        """Return the bodies of what was asked with one of these subjects."""
        return [body for _, subject, body, _ in self.asked if subject.startswith(words)]

    @property
    def metadata(self) -> Any:
        def truth(topic: str, partition: int) -> PartitionTruth | None:
            if (topic, partition) not in self.leaders:
                return None
            return PartitionTruth(leader=self.leaders[topic, partition], epoch=1, in_sync=("A", "B", "C"))

        def assignment(topic: str) -> Mapping[int, tuple[str, ...]]:
            return {number: self.members for name, number in self.leaders if name == topic}

        return SimpleNamespace(
            truth=truth,
            controller=lambda: self.controller,
            office=lambda: (self.controller, sum(subject == META_STEPDOWN for _, subject, *_ in self.asked)),
            assignment=assignment,
        )


def run_of(nodes: Mapping[str, Address], ids: Mapping[str, int] | None = None) -> TargetRun:
    return TargetRun(
        target="nats", ids=ids or {}, folder=Path(), record=lambda _: None, give_up=lambda _: None, nodes=nodes
    )


class Room(ExitStack):
    """A cluster, and an operator of it."""

    def __init__(self, cluster: Cluster, **others: Serve) -> None:
        super().__init__()
        self.cluster, self.others = cluster, others
        self.ids: Mapping[str, int] = {}

    def __enter__(self) -> Room:
        super().__enter__()
        serves = {**self.others, **{name: self.cluster.served(name) for name in "AB"}}
        self.operator = NatsOperator(run_of(self.enter_context(servers(serves)), self.ids), self.cluster.metadata)
        return self
