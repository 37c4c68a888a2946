"""
A bench for one core: logs in memory, a ZooKeeper that answers at once, and the requests that the broker sends.

There is no clock and no network: a test passes events in and reads effects, so each rule of the protocol can be
tested on its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from targets.broker.core.broker import Broker
from targets.broker.core.events import (
    Answer,
    Answered,
    Arm,
    Caller,
    Effect,
    Event,
    Observe,
    Received,
    Send,
    Start,
    Tick,
    ZkAnswered,
    ZkAsk,
    ZkFired,
    ZkSession,
)
from targets.broker.core.log_port import LogPort, Recovery
from targets.broker.core.messages import (
    NO_TOPIC_ID,
    LeaderAndIsr,
    LeaderAndIsrRequest,
    Request,
    Response,
    TopicPartition,
)
from targets.broker.core.rules import PROTOCOLS, Rules
from targets.broker.core.state import NS_PER_MS, Config, LogDir, Replica
from targets.broker.core.zookeeper import Registration, ZkCheck, ZkChildren, ZkError, ZkExists, ZkGet, ZkMulti
from tests.broker.core.memory import TP, MemoryLog, MemoryZk, batch, log_of, recovery


class Bench:
    """One broker, its ZooKeeper, and the effects it produced."""

    def __init__(
        self, rules: Rules | str = "kip101", broker_id: int = 1, zk: MemoryZk | None = None, **settings: Any
    ) -> None:
        config = Config(
            broker_id=broker_id,
            registration=registration(broker_id),
            protocol=rules if isinstance(rules, str) else "mutant",
            rules=PROTOCOLS[rules] if isinstance(rules, str) else rules,
            **settings,
        )
        self.zk = MemoryZk() if zk is None else zk
        self.made: list[MemoryLog] = []
        self.broker = Broker(config, self)
        self.broker.state.controller_known = True  # else a bench without ZooKeeper would obey no command
        self.broker.state.registration = 1  # nor would it begin a fetch session
        self.now_ns = 0
        self.session = 0
        self.effects: list[Effect] = []
        self.held: list[ZkAsk] = []
        self._callers = 0
        self._hold: tuple[str, bool] | None = None
        self._lose: list[tuple[str, bool, bool]] = []

    @property
    def log_dir(self) -> LogDir:
        """Return where the logs are said to be."""
        return LogDir("/data", 1_000_000)

    def create(self, tp: TopicPartition, topic_id: int) -> LogPort:
        """Create an empty log (the broker's disk port)."""
        self.made.append(MemoryLog(tp, topic_id=topic_id))
        return self.made[-1]

    # --- events --------------------------------------------------------------------------------------------------
    def step(self, event: Event) -> list[Effect]:
        """Process one event and ZooKeeper's answers to it; return every effect."""
        effects = self.broker.step(self.now_ns, event)
        self.effects += effects
        for ask in [e for e in effects if isinstance(e, ZkAsk)]:
            if self._hold is not None and _is_about(ask, *self._hold):
                self.held.append(ask)
            else:
                effects += self._answer_ask(ask)
        return effects

    def _answer_ask(self, ask: ZkAsk) -> list[Effect]:
        lost = next((loss for loss in self._lose if _is_about(ask, loss[0], loss[1])), None)
        if lost is not None:
            self._lose.remove(lost)
        if lost is None or lost[2]:
            results = tuple(self.zk.ask(op, self.session) for op in ask.ops)
        if lost is not None:
            results = (ZkError.LOST,) * len(ask.ops)
        return self.step(ZkAnswered(tag=ask.tag, session=self.session, results=results))

    def lose(self, path: str, *, happened: bool, writes: bool = False) -> None:
        """Lose the connection of the next operation (or write) on this path, after applying it if `happened`."""
        self._lose.append((path, writes, happened))

    def hold(self, path: str, *, writes: bool = False) -> None:
        """Hold operations on this path (or only writes to it) until `release`; a path may end in "*", for any."""
        self._hold = (path, writes)

    def release(self, *, then_hold: bool = False) -> list[Effect]:
        """Apply and answer the held operations, and stop holding, or (`then_hold`) hold what follows them."""
        self._hold = self._hold if then_hold else None
        held, self.held = self.held, []
        return [effect for ask in held for effect in self._answer_ask(ask)]

    def start(self, *logs: tuple[MemoryLog, Recovery], session: int = 0) -> list[Effect]:
        """Start the process with these logs, then open a ZooKeeper session (0: none yet)."""
        self.broker.state.controller_known = not session
        effects = self.step(Start(logs=logs))
        return effects + (self.connect(session) if session else [])

    def connect(self, session: int) -> list[Effect]:
        """Open a ZooKeeper session; 0 means that the session is gone."""
        self.session = session
        return self.step(ZkSession(session=session))

    def request(self, request: Request) -> list[Effect]:
        """Deliver a request on a new connection."""
        self._callers += 1
        return self.step(Received(caller=Caller(connection=self._callers, number=1), request=request))

    def answer(self, response: Response | None, to: Send | None = None) -> list[Effect]:
        """Answer the last request sent (or `to`); None means that its connection was lost."""
        return self.step(Answered(tag=(to or self.sent()[-1]).tag, response=response))

    def fire(self, path: str) -> list[Effect]:
        """Fire a watch."""
        return self.step(ZkFired(path=path))

    def pass_ms(self, ms: int) -> list[Effect]:
        """Advance the clock and run what is due."""
        self.now_ns += ms * NS_PER_MS
        return self.step(Tick())

    def command(
        self,
        *,
        leader: int,
        epoch: int,
        isr: Sequence[int] = (1, 2),
        replicas: Sequence[int] = (1, 2),
        controller_epoch: int = 1,
        tp: TopicPartition = TP,
        is_init: bool = False,
        zk_version: int = 0,
        topic_id: int = NO_TOPIC_ID,
    ) -> list[Effect]:
        """Deliver the controller's LeaderAndIsr request for one partition."""
        state = LeaderAndIsr(
            tp=tp,
            leader=leader,
            leader_epoch=epoch,
            isr=tuple(isr),
            zk_version=zk_version,
            replicas=tuple(replicas),
            topic_id=topic_id,
        )
        return self.request(
            LeaderAndIsrRequest(
                controller_id=9,
                controller_epoch=controller_epoch,
                ack_timeout_ms=1,
                is_init=is_init,
                partitions=(state,),
            )
        )

    # --- inspection ----------------------------------------------------------------------------------------------
    @property
    def broker_id(self) -> int:
        """This broker's id."""
        return self.broker.state.config.broker_id

    @property
    def replica(self) -> Replica:
        """The replica of the only partition."""
        return self.broker.state.replicas[TP]

    def sent(self, effects: Sequence[Effect] | None = None) -> list[Send]:
        """Return the requests sent to other brokers."""
        return [e for e in (self.effects if effects is None else effects) if isinstance(e, Send)]

    def observed(self, f: str, effects: Sequence[Effect] | None = None) -> list[Mapping[str, Any]]:
        """Return the values that were recorded in the history under `f`."""
        chosen = self.effects if effects is None else effects
        return [e.value for e in chosen if isinstance(e, Observe) and e.f == f]


def _is_about(ask: ZkAsk, path: str, writes: bool) -> bool:
    parts = [part for op in ask.ops for part in (op.ops if isinstance(op, ZkMulti) else (op,))]
    reads = ZkCheck if not writes else (ZkCheck, ZkGet, ZkExists, ZkChildren)
    return any(fnmatchcase(part.path, path) and not isinstance(part, reads) for part in parts)


def answers(effects: Sequence[Effect]) -> list[Response]:
    """Return the answers to callers."""
    return [effect.response for effect in effects if isinstance(effect, Answer)]


def kinds(effects: Sequence[Effect]) -> list[str]:
    """Return the names of effects, in order, without timers."""
    return [type(effect).__name__ for effect in effects if not isinstance(effect, Arm)]


def registration(broker_id: int, node: str | None = None) -> Registration:
    """Return the registration of a broker."""
    return Registration(
        node=node or f"node-{broker_id}",
        host="127.0.0.1",
        port=9000 + broker_id,
        internal_host="127.0.0.1",
        internal_port=9100 + broker_id,
    )


__all__ = [
    "TP",
    "Bench",
    "MemoryLog",
    "MemoryZk",
    "answers",
    "batch",
    "kinds",
    "log_of",
    "recovery",
    "registration",
]
