"""
One client of a simulated world that has a process of its own: killed while it works, and another goes on for it.

It is killed as on real nodes (harness/workload/lives.py): because of what the history has, or because a fault asks
for it. The end of its process closes its connections: what it had sent arrives, what it was answered does not.
What runs at a moment of virtual time is never cut in two, so that a kill comes after all that is planned for now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, Protocol

from harness.events import ClientKilled, ClientStarted, Poll, Produce
from harness.model import Op, OpType
from harness.workload.lives import CRASHES_WITHIN_S, OPS_LATER_MAX, LifeOps, asked_nothing
from harness.workload.plan import ConsumerPlan, ProducerPlan
from harness.workload.script import Life
from targets.simulator.broker.clients.caller import Caller
from targets.simulator.broker.node import PID_FIRST
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS

# How long a process takes from its start until it first does something, in proportion to a real one.
START_NS: Final = 100 * NS_PER_MS


class Working(Protocol):
    """A client at work."""

    @property
    def stopping(self) -> bool:
        """Whether it is to end after what it waits for."""

    @stopping.setter
    def stopping(self, is_to: bool) -> None: ...

    @property
    def done(self) -> bool:
        """Whether it has ended."""


class Begin(Protocol):
    """Begins a life of one client."""

    def __call__(self, caller: Caller, life: Life, *, after_ns: int) -> Working:
        """Return the client, at work from so much later on."""


@dataclass(slots=True, kw_only=True)
class _Process:
    """
    One life, as a process of the world.

    Attributes:
        enough: after how many records that were acknowledged, or polls that brought some, it is to be killed.
        later: how many ops of the history later, counted from its next request on.
        due: the index of that op, once it is known.
        planned: whether the kill is planned.
    """

    life: Life
    pid: int
    caller: Caller
    client: Working
    enough: int
    later: int
    due: int | None = None
    planned: bool = False
    ops: LifeOps = field(default_factory=LifeOps)


class SimLives:
    """
    One client; its first process starts at once.

    Args:
        process: returns the name of the next process.
        begin: begins one life.
    """

    def __init__(
        self,
        world: World,
        plan: ProducerPlan | ConsumerPlan,
        seed: int,
        *,
        process: Callable[[], str],
        begin: Begin,
    ) -> None:
        self.kills = 0
        self._world = world
        self._plan = plan
        self._next_process = process
        self._begin = begin
        self._chance = Random(f"kills {plan.name} {seed}")
        self._calls = f"kill of {plan.name}"
        self._last = ""
        world.on_call(self._calls, self._on_due)
        self._living = self._start(Life(), after="")

    @property
    def name(self) -> str:
        """The client's name in the workload."""
        return self._plan.name

    @property
    def stopping(self) -> bool:
        """Whether it is to end after what it waits for; from then on it is not killed."""
        return self._living.client.stopping

    @stopping.setter
    def stopping(self, is_to: bool) -> None:
        self._living.client.stopping = is_to

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._living.client.done

    def listen(self, op: Op) -> None:
        """Take note of an op of the history; plan the kill once so many have come since the client asked."""
        it = self._living
        if op.process == it.caller.name:
            it.ops.note(op.type, op.event)
            asks = op.type is OpType.INVOKE and isinstance(op.event, Produce | Poll)
            if asks and it.due is None and it.ops.acknowledged >= it.enough:
                it.due = op.index + it.later
        if it.due is not None and op.index >= it.due and not it.planned:
            it.planned = True
            self._world.clock.after(0, ("call", self._calls, it.life.number))

    def crash(self) -> str:
        """
        Kill its process once a request of it is under way; return what was seen.

        Raises:
            PreconditionError: it made no request in time.
        """
        before = self.kills
        self._world.until(lambda: self.kills > before or self._is_asking, CRASHES_WITHIN_S)
        if self.kills == before:
            if not self._is_asking:
                raise asked_nothing(self.name)
            self._kill()
        return self._last

    @property
    def _is_asking(self) -> bool:
        return self._living.ops.is_asking and not self.stopping

    def _on_due(self, number: int) -> None:
        """Kill the life that the kill was planned for, unless it was killed meanwhile, or is to end by itself."""
        if number == self._living.life.number and not self.stopping:
            self._kill()

    def _start(self, life: Life, *, after: str) -> _Process:
        """Start a process; the first one is at work at once, since it finds a cluster that waits for it."""
        assert self._plan.kill_after is not None, "only a client that is to be killed has lives"
        caller, pid = Caller(self._world, self._next_process()), PID_FIRST + self._world.next_life()
        positions = {str(place): at for place, at in life.positions.items()}
        begun = ClientStarted(name=self.name, pid=pid, after=after or None, positions=positions or None)
        self._world.observe(caller.name, OpType.INFO, begun)
        return _Process(
            life=life,
            pid=pid,
            caller=caller,
            client=self._begin(caller, life, after_ns=START_NS if after else 0),
            enough=self._chance.randint(*self._plan.kill_after),
            later=self._chance.randint(0, OPS_LATER_MAX),
        )

    def _kill(self) -> None:
        """End the process, end what it has left open, and start another one."""
        world, killed = self._world, self._living
        process, asked = killed.caller.name, ClientKilled(name=self.name, pid=killed.pid)
        world.observe(process, OpType.INVOKE, asked)
        killed.caller.close()
        left_open = killed.ops.open
        for type_, event in killed.ops.cut_off():
            world.observe(process, type_, event)
        probe = f"pid {killed.pid} killed at {world.clock.now_ns / NS_PER_MS:.1f} ms of virtual time"
        world.observe(process, OpType.OK, replace(asked, probe=probe))
        self.kills += 1
        self._last = f"{self.name} as {process}: {probe}, {left_open} of its ops open"
        positions = {**killed.life.positions, **killed.ops.positions}
        self._living = self._start(Life(number=killed.life.number + 1, positions=positions), after=process)
