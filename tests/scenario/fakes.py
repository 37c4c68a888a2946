"""A fake cluster, fake links and a fake client, which record the calls they receive."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from harness.ability import OF_TARGETS
from harness.cluster.announced import Announced
from harness.cluster.churned import ChurnedTopics
from harness.cluster.cluster import Cluster
from harness.cluster.given_up import GivenUp
from harness.cluster.in_force import InForce
from harness.cluster.partition import Partition
from harness.environment.real_time import RealTime
from harness.history.file import History
from harness.target.metadata import Office, PartitionTruth
from harness.target.operator import Operator
from harness.target.traits import Traits
from harness.workload.plan import Place
from targets.kafka_family.wire.wire import KafkaWire


class FakeLinks:
    """Links that record every call; a rule is the tuple of its call, and a hold has stopped one frame."""

    def __init__(self, calls: list[tuple[Any, ...]]) -> None:
        self.calls = calls
        self.frames: tuple[str, ...] = ("frame",)

    def hold(self, *what: Any) -> Any:
        self.calls.append(("hold", *what))
        return SimpleNamespace(held=self.frames, what=what)

    def release(self, hold: Any) -> None:
        self.calls.append(("release", *hold.what))

    def release_all(self) -> None:
        self.calls.append(("release",))

    def cut(self, *what: Any, **how: Any) -> Any:
        self.calls.append(("cut", *what, how))
        return ("cut", *what)

    def delay(self, *what: Any) -> Any:
        self.calls.append(("delay", *what))
        return ("delay", *what)

    def double(self, *what: Any) -> Any:
        self.calls.append(("double", *what))
        return ("double", *what)

    def heal(self, rule: Any) -> None:
        self.calls.append(("heal", *rule))

    def heal_all(self) -> None:
        self.calls.append(("heal",))


class FakePartition(Partition):
    """The partition of a fake cluster: every log ends where the test says."""

    def __init__(self, cluster: FakeCluster) -> None:
        super().__init__(
            place=Place("log", 0),
            replicas=cluster.replicas,
            host=cluster.host,
            target=cluster.target,
            emits_events=cluster.traits.emits_events,
            metadata=cluster.metadata,
            operator=cluster.operator,
            addresses=cluster.addresses,
            exited=cluster.given_up.exited,
        )
        self._leads_in["B"] = 0
        self._ends = cluster.ends

    def log_end(self, name: str) -> int:
        return self._ends[name]

    def checkpoint(self, name: str) -> int:
        return self._ends[name]

    def log(self, name: str) -> Any:
        return None


class FakeCluster(Cluster):
    """A cluster whose state is set by the test."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.ids = {"C": 3, "B": 2, "A": 1}
        self.replicas = ("B", "A")
        self.topic, self.partition = "log", 0
        self.rules = {"truncate_to": "one_answer"}
        self.traits = Traits(emits_events=True)
        self.in_force = InForce()
        self.services, self.workload = None, None
        self.before_down = {"A": (7, 0)}
        self.cancelled = False
        self.addresses = {"A": "127.0.0.1:1", "B": "127.0.0.1:2", "C": "127.0.0.1:3"}
        self.given_up, self._named, self._announced = GivenUp(), None, Announced()
        self.ends = {"A": 2, "B": 2}
        self.state = PartitionTruth(leader="B", epoch=0, in_sync=("B", "A"), version=0)
        self.sessions = {"A": 8, "B": 9, "C": 10}
        self.said: dict[str, str] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.operator = Operator()
        self.metadata = SimpleNamespace(  # type: ignore[assignment]
            truth=lambda *_: self.state,
            controller=lambda: "C",
            office=lambda: Office(node="C", member=self.sessions.get("C", 0), incarnation=1),
            incarnation=lambda name: self.sessions.get(name, 0),
            watch=lambda *_: None,
            said=lambda *_: self.said,
        )
        self.time = RealTime()
        self.target = SimpleNamespace(  # type: ignore[assignment]
            name="fake",
            abilities=OF_TARGETS,
            wire=KafkaWire(lambda _: True, commands=False),
            services=(),
            faults={},
        )
        self.gone: set[str] = set()
        self.host = SimpleNamespace(  # type: ignore[assignment]
            alive=lambda name: name not in self.gone,
            log_text=lambda name: f"{name} says goodbye",
            drain=lambda _: None,
        )
        self.fabric = FakeLinks(self.calls)  # type: ignore[assignment]
        self.partitions = (FakePartition(self),)
        self.churners = ()
        self.churned = ChurnedTopics(partitions=(), nodes=(), metadata=self.metadata)
        self.watched = self.partitions

    def start(self, name: str) -> str:
        self.calls.append(("start", name))
        return "started"


class FakeClient:
    """A client that acknowledges every record, at consecutive offsets."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []
        self.end = 0

    def create_topic(self, topic: str, *assignments: Sequence[int]) -> None:
        self.sent.append(("topic", *map(tuple, assignments)))

    def produce(self, _topic: str, _partition: int, name: str, values: Sequence[str], **options: Any) -> list[int]:
        self.sent.append((name, len(values), options))
        self.end += len(values)
        return list(range(self.end - len(values), self.end))

    def delete_records(self, _topic: str, _partition: int, before: int) -> int:
        self.sent.append(("delete records", before))
        return before

    def alter_topic(self, topic: str, setting: str, to: str) -> None:
        self.sent.append(("alter", topic, setting, to))

    def read_all(self, _topic: str, _partition: int) -> list[tuple[int, str]]:
        self.sent.append(("read",))
        return []
