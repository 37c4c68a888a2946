"""
One client in a process of its own, life after life: started, killed while it works, and started again.

It is killed because of what was seen, never because of a time: its plan says after how many acknowledged records,
or polls with records, and then, once it has asked anew, so many ops of the whole history later as the seed draws.
So a kill hits a request before it is sent, under way, or answered and not yet reported. A fault may ask for one
more, which comes while a request is under way.

Each life is another process of the history: what the one before has begun may still happen. A consumer begins
where the last life had recorded its reading to end, by assignment.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from random import Random
from types import TracebackType
from typing import Final, Self

from harness import limits
from harness.cleanup.ledger import Ledger
from harness.clients.children import Children
from harness.clients.life_log import LifeLog
from harness.clients.wire import LEAVE, RECORDED, Role
from harness.events import ClientKilled, ClientStarted
from harness.history.file import History
from harness.hosts.node import NodeProcess
from harness.model import HistoryError, Op, OpType, PreconditionError, UsageError
from harness.workload.lives import CRASHES_WITHIN_S, OPS_LATER_MAX, asked_nothing
from harness.workload.plan import ConsumerPlan, Library, Place, ProducerPlan
from harness.workload.script import Life

_CHUNK: Final = 65_536
_SIGKILLED: Final = f"signal {signal.SIGKILL:d}"


class Lives:
    """
    One client.

    Args:
        program: the module that is the client's process, which harness/clients/wire.py tells what to be.
        own: the library of a plan that names none.
        first: the process of the first life.
        process: returns the name of the next process.
        nodes: a node's name -> "host:port".
        ledger: the run's, which has every process before it is forked.
    """

    def __init__(
        self,
        plan: ProducerPlan | ConsumerPlan,
        seed: int,
        *,
        program: str,
        own: Library,
        first: str,
        process: Callable[[], str],
        history: History,
        nodes: Mapping[str, str],
        ledger: Ledger,
    ) -> None:
        self._plan = plan
        self._program = program
        self._seed = seed
        self._library = plan.client or own
        self._process = first
        self._next_process = process
        self._history = history
        self._nodes = nodes
        self._ledger = ledger
        self._chance = Random(f"kills {plan.name} {seed}")
        self._works = threading.Event()
        self._asked_to_crash = threading.Event()
        self._changed = threading.Condition()
        self._last = ""
        self.kills = 0

    @property
    def name(self) -> str:
        """The client's name in the workload."""
        return self._plan.name

    def crash(self) -> str:
        """
        Have its process killed once a request of it is under way; return what was seen.

        Raises:
            PreconditionError: it made no request in time.
        """
        with self._changed:
            before = self.kills
            self._asked_to_crash.set()
            killed = self._changed.wait_for(lambda: self.kills > before, CRASHES_WITHIN_S)
            self._asked_to_crash.clear()
            if not killed:
                raise asked_nothing(self.name)
            return self._last

    def run(self, leave: threading.Event) -> None:
        """
        Let the client live until it is to leave, again after each kill.

        Raises:
            PreconditionError: a process ended by itself: what it would have seen is lost.
            HistoryError: the history takes no more.
        """
        number, after, positions = 1, "", dict[Place, int]()
        try:
            with Alarm(self._history) as alarm:
                while True:
                    life = Life(number=number, positions=positions)
                    log = LifeLog(self._process)
                    if not self._live(life, log, after, alarm, leave):
                        return
                    positions = {**positions, **log.positions}
                    number, after, self._process = number + 1, self._process, self._next_process()
        finally:
            self._works.set()

    def await_work(self) -> None:
        """Return once its first process has asked for something, or cannot any more, or is late."""
        self._works.wait(limits.PROCESS_START_S_MAX)

    def _live(self, life: Life, log: LifeLog, after: str, alarm: Alarm, leave: threading.Event) -> bool:
        """Start a process, and attend to it until it has ended; return False if there is to be no other."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                if leave.is_set() or (child := self._start(theirs)) is None:
                    return False
            positions = {str(place): at for place, at in life.positions.items()}
            begun = ClientStarted(
                name=self._plan.name, pid=child.pid, after=after or None, positions=positions or None
            )
            self._history.record(self._process, OpType.INFO, begun)
            role = Role(
                plan=self._plan,
                library=self._library,
                seed=self._seed,
                process=self._process,
                life=life,
                nodes=self._nodes,
            )
            _say(ours, role.to_line())
            if self._attend(ours, log, alarm, leave):
                self._kill(child, ours, log)
                return True
            self._ended(child, log, leave)
            return False

    def _start(self, theirs: socket.socket) -> NodeProcess | None:
        """Start a process that has this end of a pair of sockets; None if the run is being taken down."""
        children = Children.of(self._ledger, self._history.path)
        argv = [sys.executable, "-m", self._program, str(theirs.fileno())]
        try:
            return children.start(self._plan.name, argv, (theirs.fileno(),))
        except UsageError:
            if self._ledger.is_closed:
                return None
            raise

    # --- one life ----------------------------------------------------------------------------------------------
    def _attend(self, ours: socket.socket, log: LifeLog, alarm: Alarm, leave: threading.Event) -> bool:
        """Record what the process says until it has closed its side, False, or it is time to kill it, True."""
        assert self._plan.kill_after is not None, "only a client that is to be killed has lives"
        enough = self._chance.randint(*self._plan.kill_after)
        later = self._chance.randint(0, OPS_LATER_MAX)
        poll = select.poll()
        poll.register(ours, select.POLLIN)
        poll.register(alarm, select.POLLIN)
        told = False
        while True:
            if leave.is_set() and not told:
                told = True
                alarm.clear()
                _say(ours, LEAVE)
            ready = {handle for handle, _ in poll.poll(limits.CLIENT_LOOK_S * 1000)}
            if alarm.fileno() in ready and alarm.clear() and not told:
                return True
            if self._asked_to_crash.is_set() and log.is_asking and not told:
                self._asked_to_crash.clear()
                alarm.clear()
                return True
            if ours.fileno() not in ready:
                continue
            if not (data := _heard(ours)):
                return False
            for index, op in self._record(log.take(data)):
                if op.type is OpType.INVOKE:
                    self._works.set()
                    _say(ours, RECORDED)
                    if log.acknowledged >= enough and not told and not alarm.is_set:
                        alarm.set(index + later)

    def _record(self, ops: Iterable[Op]) -> Iterator[tuple[int, Op]]:
        """Write ops of the process to the history; yield each with its index there."""
        for op in ops:
            yield self._history.record(self._process, op.type, op.event).index, op

    def _kill(self, child: NodeProcess, ours: socket.socket, log: LifeLog) -> None:
        """Kill the process, record all that it has said, and end what it has left open."""
        asked = ClientKilled(name=self._plan.name, pid=child.pid)
        self._history.record(self._process, OpType.INVOKE, asked)
        why = ""
        try:
            probe = child.kill()
        except PreconditionError as error:
            why = str(error)
        how = child.wait()
        if not why and how != _SIGKILLED:
            why = f"pid {asked.pid} ended with {how}; expected {_SIGKILLED}"
        while data := _heard(ours):
            for _ in self._record(log.take(data)):
                pass
        left_open = 0
        for type_, event in log.end(killed=True):
            self._history.record(self._process, type_, event)
            left_open += 1
        if why:
            killed = ClientKilled(name=asked.name, pid=asked.pid, error=why)
            self._history.record(self._process, OpType.FAIL, killed)
            raise PreconditionError(f"client {self._plan.name}, {self._process}: {why}")
        killed = ClientKilled(name=asked.name, pid=asked.pid, probe=f"{probe}, waited for: {how}")
        self._history.record(self._process, OpType.OK, killed)
        with self._changed:
            self.kills += 1
            self._last = f"{self.name} as {self._process}: {killed.probe}, {left_open} of its ops open"
            self._changed.notify_all()

    def _ended(self, child: NodeProcess, log: LifeLog, leave: threading.Event) -> None:
        """Take the end of a process that was not killed by us; raise if it was not to end, or not like that."""
        how = child.wait()
        if how == "exit code 0" and leave.is_set():
            for _ in log.end(killed=False):
                pass
        elif how == _SIGKILLED and (leave.is_set() or self._ledger.is_closed):
            raise HistoryError(f"{self._process}: taken down with its run")
        else:
            raise PreconditionError(
                f"client {self._plan.name}, {self._process}: its process ended with {how}; expected it to live; "
                f"it said:\n{child.log_tail()}"
            )


class Alarm:
    """
    Wakes a thread once the history has an op of some index; a file for poll().

    Attributes:
        is_set: whether an index is set, or was reached.
    """

    def __init__(self, history: History) -> None:
        self._handle = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._lock = threading.Lock()
        self._index: int | None = None
        self.is_set = False
        history.listeners.append(self._listen)

    def fileno(self) -> int:
        """Return the handle, which can be read once the alarm rings."""
        return self._handle

    def set(self, index: int) -> None:
        """Ring with the next op whose index is not below this one."""
        with self._lock:
            self.is_set, self._index = True, index

    def clear(self) -> bool:
        """Ring no more, until it is set again; return True if it rang."""
        with self._lock:
            self.is_set, self._index = False, None
            try:
                return os.eventfd_read(self._handle) > 0
            except BlockingIOError:
                return False

    def _listen(self, op: Op) -> None:
        with self._lock:
            if self._index is not None and op.index >= self._index:
                self._index = None
                os.eventfd_write(self._handle, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._index = None
            os.close(self._handle)


def _say(ours: socket.socket, data: bytes) -> None:
    """Write to the process; if it has ended, reading says so."""
    with suppress(OSError):
        ours.sendall(data)


def _heard(ours: socket.socket) -> bytes:
    """Return what the process wrote, b"" once it has ended and all is read."""
    try:
        return ours.recv(_CHUNK)
    except ConnectionResetError:  # it ended, and had not read all that was said
        return b""
