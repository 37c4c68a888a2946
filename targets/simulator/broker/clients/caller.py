"""
One client's process in a simulated world: its connections, one a node, and the requests that wait for answers.

Answers, lost connections and deadlines come as calls of `then`; a late answer is dropped, as its connection is
closed at the deadline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from harness.events import Produce
from harness.model import OpType
from harness.workload.plan import Place
from targets.broker.core.messages import Request, Response
from targets.simulator.broker.clients.operations import LOST, NO_ANSWER, REFUSED_TO_CONNECT
from targets.simulator.broker.wire import WirePipe
from targets.simulator.broker.world import World
from targets.simulator.engine.pipe import REQUESTS, Frame, Pipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    What became of a request.

    Attributes:
        response: None if there is no answer.
        error: why there is none.
        sent: whether the request was sent, so that it may have been obeyed.
    """

    response: Response | None = None
    error: str = ""
    sent: bool = True


Then: TypeAlias = Callable[[Outcome], None]
_LATE: Final = "late"
_LATER: Final = "later"


class Caller:
    """The connections of one client, by the node at their other end."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.world = world
        self._pipes: dict[str, Pipe] = {}
        self._waiting: dict[int, tuple[Pipe, Then]] = {}
        self._planned: dict[int, Callable[[], None]] = {}
        self._numbers = 0
        world.add_end(name, self)
        world.on_call(name, self._on_call)

    @property
    def listening(self) -> bool:
        """Return False: clients accept no connections."""
        return False

    def record_produce(
        self,
        type_: OpType,
        place: Place,
        value: str,
        *,
        name: str,
        acks: int,
        codec: str,
        offset: int | None = None,
        error: str = "",
        digest: str = "",
    ) -> None:
        """Record the beginning or the outcome of one record of a produce."""
        event = Produce(
            topic=place.topic,
            partition=place.partition,
            name=name,
            acks=acks,
            codec=codec,
            value=value,
            offset=offset,
            error=error,
            digest=digest,
        )
        self.world.observe(self.name, type_, event)

    def ask(self, node: str, request: Request, within_ns: int, then: Then) -> None:
        """Send a request; call `then` once, with its answer or with why there is none."""
        pipe = self._pipe_to(node)
        if pipe is None:
            then(Outcome(error=f"{node}: {REFUSED_TO_CONNECT}", sent=False))
            return
        number = self._number()
        self._waiting[number] = (pipe, then)
        self.world.network.send(pipe, REQUESTS, (number, request), request)
        self.world.clock.after(within_ns, ("call", self.name, _LATE, number))

    def tell(self, node: str, request: Request) -> str:
        """Send a request that has no answer; return why it was not sent, "" if it was."""
        pipe = self._pipe_to(node)
        if pipe is None:
            return f"{node}: {REFUSED_TO_CONNECT}"
        self.world.network.send(pipe, REQUESTS, (self._number(), request), request)
        return ""

    def later(self, delay_ns: int, act: Callable[[], None]) -> None:
        """Do something after a delay."""
        number = self._number()
        self._planned[number] = act
        self.world.clock.after(delay_ns, ("call", self.name, _LATER, number))

    def close(self) -> None:
        """Close every connection; nothing is called any more."""
        self._waiting.clear()
        self._planned.clear()
        for pipe in self._pipes.values():
            if not pipe.over:
                self.world.network.hang_up(pipe, REQUESTS)
        self._pipes.clear()
        self.world.network.ends.pop(self.name, None)

    # --- events ----------------------------------------------------------------------------------------------
    def on_frame(self, pipe: Pipe, _direction: int, frame: Frame) -> None:
        """Pass an answer on, if its request still waits."""
        number, response = frame.body
        waiting = self._waiting.pop(number, None)
        if waiting is not None and waiting[0] is pipe:
            waiting[1](Outcome(response=response))

    def on_end(self, pipe: Pipe) -> None:
        """Pass the end of a connection on to the requests that wait on it."""
        if self._pipes.get(pipe.dst) is pipe:
            del self._pipes[pipe.dst]
        self._give_up(pipe, LOST)

    def _on_call(self, what: str, number: int) -> None:
        if what == _LATER:
            if (act := self._planned.pop(number, None)) is not None:
                act()
        elif number in self._waiting:
            pipe, _ = self._waiting[number]
            self._pipes.pop(pipe.dst, None)
            if not pipe.over:
                self.world.network.hang_up(pipe, REQUESTS)
            self._give_up(pipe, NO_ANSWER)

    def _give_up(self, pipe: Pipe, error: str) -> None:
        for number in [number for number, (its, _) in self._waiting.items() if its is pipe]:
            _, then = self._waiting.pop(number)
            then(Outcome(error=f"{pipe.dst}: {error}"))

    def _pipe_to(self, node: str) -> Pipe | None:
        """Return an open connection to the node, None if it refuses one."""
        pipe = self._pipes.get(node)
        if pipe is not None and not pipe.over:
            return pipe
        if not self.world.nodes[node].listening:
            return None
        pipe = self._pipes[node] = self.world.network.dial(self.name, node, "client", WirePipe, outside=True)
        return pipe

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers
