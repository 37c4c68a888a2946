"""
A cluster of benches over one ZooKeeper, with a router that delivers their messages in one fixed order.

Nothing happens on its own: `settle` delivers watches and messages until only long polls are outstanding, and
`pass_ms` advances every broker's clock. A stopped broker keeps its logs and, until it is expired, its session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from targets.broker.core.events import (
    Answer,
    Answered,
    Caller,
    Effect,
    HangUp,
    Hungup,
    Received,
    Send,
    WriteHighWatermarks,
)
from targets.broker.core.log_port import LeoAfterCut
from targets.broker.core.made import made_path
from targets.broker.core.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewTopic,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
    Request,
    Response,
    TopicPartition,
)
from targets.broker.core.rules import Rules
from targets.broker.core.state import Replica, Role
from targets.broker.core.zookeeper import CONTROLLER, PartitionState, broker_path
from tests.broker.core.bench import TP, Bench, MemoryLog, MemoryZk, batch, recovery

# Far more than any test needs: a loop that never settles must not hang the suite.
DELIVERIES_MAX: Final = 20_000
ROUTED: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A message held on a link: an undelivered request or, with `response`, an undelivered answer."""

    asker: Bench
    send: Send
    response: Response | None = None


class Cluster:
    """Brokers by id, one ZooKeeper, and messages between them."""

    def __init__(
        self,
        rules: Rules | str = "kip101",
        brokers: tuple[int, ...] = (1, 2, 3),
        *,
        bench: type[Bench] = Bench,
        **settings: Any,
    ) -> None:
        self._bench = bench
        self.zk = MemoryZk()
        self.rules, self.settings = rules, settings
        self.benches: dict[int, Bench] = {}
        self.drop: Callable[[Bench, Send], bool] = _deliver_all
        self.held: list[Held] = []
        # Broker id -> the broker that is reached at the address in its registration, where that is another one.
        self.leads_to: dict[int, int] = {}
        self._holds: list[tuple[int, int, type[Request], bool]] = []
        self._logs: dict[int, dict[TopicPartition, MemoryLog]] = {}
        self._checkpoints: dict[int, dict[TopicPartition, int]] = {}
        self._seen: dict[Bench, int] = {}
        self._asked: dict[tuple[Bench, Caller], tuple[Bench, Send]] = {}
        self._sends: list[tuple[Bench, Send]] = []
        self._numbers = 0
        for broker in brokers:
            self.start(broker)

    # --- start and stop ---------------------------------------------------------------------------------------
    def start(self, broker: int, *, settle: bool = True) -> Bench:
        """Start a broker process of that id in a new session, with the logs that its last process left."""
        bench = self._bench(self.rules, broker, self.zk, **self.settings)
        bench.now_ns = max((other.now_ns for other in self.benches.values()), default=0)
        self.benches[broker] = bench
        marks = self._checkpoints.get(broker, {})
        logs = [
            (log, recovery(log, high_watermark=marks.get(tp, 0), clean=False))
            for tp, log in self._logs.get(broker, {}).items()
        ]
        bench.start(*logs, session=self.new_session())
        if settle:
            self.settle()
        return bench

    def new_session(self) -> int:
        """Return a session id that was never used before."""
        self._numbers += 1
        return self._numbers

    def stop(self, broker: int) -> int:
        """Kill the process: its connections break, its session stays. Return the session."""
        self._collect()
        bench = self.benches.pop(broker)
        logs = [replica.log for replica in bench.broker.state.replicas.values()]
        self._logs[broker] = {log.tp: log for log in logs if isinstance(log, MemoryLog)}
        written = [effect for effect in bench.effects if isinstance(effect, WriteHighWatermarks)]
        self._checkpoints[broker] = dict(written[-1].high_watermarks) if written else {}
        self.zk.forget_session(bench.session)
        for (server, caller), (asker, send) in list(self._asked.items()):
            if bench in (server, asker):
                del self._asked[server, caller]
            if asker is bench:
                server.step(Hungup(connection=caller.connection))
            elif server is bench:
                asker.step(Answered(tag=send.tag, response=None))
        broken = [item for item in self.held if item.send.to == broker and item.asker in self.benches.values()]
        self.held = [item for item in self.held if item.send.to != broker and item.asker is not bench]
        for item in broken:
            item.asker.step(Answered(tag=item.send.tag, response=None))
        return bench.session

    def expire(self, session: int) -> None:
        """Expire a session in ZooKeeper; its broker is not notified."""
        self.zk.close_session(session)
        self.settle()

    def crash(self, broker: int) -> None:
        """Kill the process and end its session."""
        self.expire(self.stop(broker))

    def lose_power(self, broker: int, kept: int) -> None:
        """Truncate a stopped broker's log to `kept` records: the others were not durable."""
        log = self._logs[broker][TP]
        log.truncate_to(kept, LeoAfterCut.PHYSICAL)

    # --- messages ---------------------------------------------------------------------------------------------
    def settle(self) -> None:
        """Deliver watches and messages until only long polls are outstanding."""
        for _ in range(DELIVERIES_MAX):
            self._collect()
            if self.zk.due:
                session, path = self.zk.due.pop(0)
                for bench in [b for b in self.benches.values() if b.session == session]:
                    bench.fire(path)
            elif self._sends:
                self._deliver(*self._sends.pop(0))
            else:
                return
        raise AssertionError(f"{DELIVERIES_MAX} deliveries and still not settled: {self._sends[:3]!r}")

    def _collect(self) -> None:
        """Collect new requests and answers; an answer may make its asker send at once."""
        news = True
        while news:
            news = False
            for bench in list(self.benches.values()):
                while self._seen.get(bench, 0) < len(bench.effects):
                    effect = bench.effects[self._seen.get(bench, 0)]
                    self._seen[bench] = self._seen.get(bench, 0) + 1
                    news = True
                    self._take_up(bench, effect)

    def _take_up(self, bench: Bench, effect: Effect) -> None:
        if isinstance(effect, Send):
            self._sends.append((bench, effect))
        elif isinstance(effect, Answer) and (bench, effect.to) in self._asked:
            asker, send = self._asked.pop((bench, effect.to))
            if self._is_held(asker, send, answer=True):
                self.held.append(Held(asker=asker, send=send, response=effect.response))
            else:
                asker.step(Answered(tag=send.tag, response=effect.response))
        elif isinstance(effect, HangUp):
            for (server, caller), (asker, send) in list(self._asked.items()):
                if server is bench and caller.connection == effect.connection:
                    del self._asked[server, caller]
                    asker.step(Answered(tag=send.tag, response=None))

    def _deliver(self, asker: Bench, send: Send) -> None:
        if asker not in self.benches.values() or self.drop(asker, send):
            return
        if self._is_held(asker, send, answer=False):
            self.held.append(Held(asker=asker, send=send))
            return
        server = self.benches.get(self.leads_to.get(send.to, send.to))
        if server is None:
            asker.step(Answered(tag=send.tag, response=None))
            return
        self._numbers += 1
        caller = Caller(connection=ROUTED + self._numbers, number=send.tag)
        self._asked[server, caller] = (asker, send)
        server.step(Received(caller=caller, request=send.request, meant_for=send.to))

    def hold(self, asker: int, server: int, kind: type[Request], *, answers: bool = False) -> None:
        """Hold requests of one kind from one broker to another from now on, or (`answers`) the answers to them."""
        self._holds.append((asker, server, kind, answers))

    def release(self, asker: int | None = None, kind: type[Request] | None = None, *, settle: bool = True) -> None:
        """Stop holding this broker's requests of this kind (None: any), and deliver the held messages in order."""

        def is_meant(broker: int, asked: type[Request]) -> bool:
            return asker in (None, broker) and kind in (None, asked)

        self._holds = [hold for hold in self._holds if not is_meant(hold[0], hold[2])]
        kept, self.held = self.held, []
        for item in kept:
            if not is_meant(item.asker.broker_id, type(item.send.request)):
                self.held.append(item)
            elif item.asker not in self.benches.values():
                continue
            elif item.response is None:
                self._sends.append((item.asker, item.send))
            else:
                item.asker.step(Answered(tag=item.send.tag, response=item.response))
        if settle:
            self.settle()

    def _is_held(self, asker: Bench, send: Send, *, answer: bool) -> bool:
        return any(
            (asker.broker_id, send.to, answer) == (frm, to, answers) and isinstance(send.request, kind)
            for frm, to, kind, answers in self._holds
        )

    def pass_ms(self, ms: int, *, step_ms: int = 100) -> None:
        """Advance every broker's clock in small steps, and settle after each."""
        for _ in range(0, ms, step_ms):
            for bench in list(self.benches.values()):
                bench.pass_ms(step_ms)
            self.settle()

    # --- clients ------------------------------------------------------------------------------------------
    def ask(self, broker: int, request: Request) -> list[Response]:
        """Send a client's request to one broker; return its answers after settling ([]: it still waits)."""
        bench = self.benches[broker]
        self._numbers += 1
        caller = Caller(connection=self._numbers, number=1)
        before = len(bench.effects)
        bench.step(Received(caller=caller, request=request))
        self.settle()
        return [e.response for e in bench.effects[before:] if isinstance(e, Answer) and e.to == caller]

    def create(self, topic: str = "t", replicas: tuple[int, ...] = (1, 2), via: int | None = None) -> None:
        """Create a topic of one partition on these brokers, as a client."""
        new = NewTopic(topic=topic, partitions=-1, replication_factor=-1, assignments=((0, replicas),))
        self.ask(via or next(iter(self.benches)), CreateTopicsRequest(topics=(new,), timeout_ms=1_000))

    def delete(self, topic: str, via: int | None = None) -> None:
        """Delete a topic, as a client."""
        self.ask(via or next(iter(self.benches)), DeleteTopicsRequest(topics=(topic,), timeout_ms=1_000))

    def produce(self, broker: int, count: int = 1, *, acks: int = -1, crc: int = 7) -> list[ProduceResult]:
        """Produce one batch to the only partition, as a client; return [] while the request waits."""
        part = ProducePartition(tp=TP, batches=(batch(count, crc=crc),))
        responses = self.ask(broker, ProduceRequest(acks=acks, timeout_ms=30_000, partitions=(part,)))
        produced = [response for response in responses if isinstance(response, ProduceResponse)]
        return [result for response in produced for result in response.results]

    # --- inspection -------------------------------------------------------------------------------------------
    def state(self, tp: TopicPartition = TP) -> PartitionState:
        """Return a partition's state in ZooKeeper."""
        return self.zk.state(tp)

    def replica(self, broker: int, tp: TopicPartition = TP) -> Replica:
        """Return a broker's replica of a partition."""
        return self.benches[broker].broker.state.replicas[tp]

    def roles(self, tp: TopicPartition = TP) -> Mapping[int, tuple[Role, int]]:
        """Return role and leader epoch of every running broker that has the partition."""
        found = {broker: bench.broker.state.replicas.get(tp) for broker, bench in self.benches.items()}
        return {broker: (r.role, r.leader_epoch) for broker, r in found.items() if r is not None}

    @property
    def controller(self) -> int:
        """The broker in /controller, -1 if there is none."""
        node = self.zk.nodes.get(CONTROLLER)
        return int(node.data) if node is not None else -1

    @property
    def in_office(self) -> list[int]:
        """The brokers that act as controller."""
        return [broker for broker, bench in self.benches.items() if bench.broker.state.controller.active]

    def mark(self, topic: str = "t") -> str:
        """Return the mark of a topic that the names below its path have, "" if none has one."""
        first = made_path(topic, "")
        return "".join(path.removeprefix(first) for path in self.zk.nodes if path.startswith(first))

    def registered(self, broker: int) -> bool:
        """Return whether a broker is registered in ZooKeeper."""
        return broker_path(broker) in self.zk.nodes


def _deliver_all(_asker: Bench, _send: Send) -> bool:
    return False


def cluster_of(rules: str = "hw", replicas: tuple[int, ...] = (1, 2), **settings: Any) -> Cluster:
    """Return a cluster where broker 3 is controller, 1 and 2 start after it, and the first replica leads."""
    cluster = Cluster(rules, brokers=(3, 1, 2), **settings)
    cluster.create(replicas=replicas)
    return cluster
