"""
The services of one run on its host: started again, frozen and killed like nodes; seen by what a process answers.

Nothing here touches the services that the runs of a suite share.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, Protocol, runtime_checkable

from harness.cleanup.process import until
from harness.cluster.last_words import explained
from harness.environment.services import Started, addresses, prepare
from harness.hosts.base import Host
from harness.model import PreconditionError
from harness.target.services import LEADER, Others, Process

# Within which a client that lost its connection is connected to another process: its retries grow to half a
# second. One that dials a container that is gone first waits for the kernel to say so.
MOVED_WITHIN_S: Final = 30.0


@runtime_checkable
class View(Protocol):
    """A view of the metadata which a service that is out answers no more, and which has to know."""

    @property
    def session(self) -> int:
        """The session of the harness itself, 0 for none."""

    def expect_silence(self, why: str) -> None:
        """Know that nobody is answered from now on, because of a fault."""

    def await_answer(self) -> None:
        """Return once there is an answer again; raise PreconditionError if there is none in time."""


class Unconcerned:
    """A view of the metadata that asks no service, so that it has nothing to know of one."""

    session: Final = 0

    def expect_silence(self, why: str) -> None:
        """Do nothing."""

    def await_answer(self) -> None:
        """Do nothing."""


class OwnServices:
    """The services of one run; see harness.cluster.interfaces.Services for every call."""

    def __init__(self, host: Host, started: Sequence[Started], view: object) -> None:
        self._host = host
        self._kinds = {each.service.name: each for each in started}
        self._of = {process.name: each for each in started for process in each.processes}
        self._view: View = view if isinstance(view, View) else Unconcerned()
        # What a fault of all processes of a kind froze, or of the one that led killed.
        self._frozen: list[str] = []
        self._killed: list[str] = []
        # What faults of single processes have taken away.
        self._lost: set[str] = set()
        # What was started, and did not serve in time: it may, on a machine that is slow.
        self._under_way: set[str] = set()
        self._mutex = threading.Lock()

    def __contains__(self, name: str) -> bool:
        """Return True for the name of one of the processes."""
        return name in self._of

    @property
    def names(self) -> Mapping[str, tuple[str, ...]]:
        """The processes of each kind."""
        return {kind: tuple(each.name for each in found.processes) for kind, found in self._kinds.items()}

    @property
    def addresses(self) -> Others:
        """Where the harness and clients reach each process, by kind."""
        return {kind: addresses(found) for kind, found in self._kinds.items()}

    @property
    def linked(self) -> tuple[str, ...]:
        """The processes that nodes reach by links of their own."""
        return tuple(name for name, found in self._of.items() if found.service.linked)

    @property
    def out(self) -> bool:
        """Whether nobody is answered about metadata."""
        return any(each.service.holds_metadata and self._lacks_some(each) for each in self._kinds.values())

    # --- faults of all processes of a kind ----------------------------------------------------------------------
    def halt(self, kind: str) -> str:
        """Freeze all processes that run; return when none of them answers."""
        found = self._kind(kind)
        if self._frozen:
            raise PreconditionError(f"{kind} is out already; expected it to serve")
        if found.service.holds_metadata:
            self._view.expect_silence("its servers are frozen")
        seen: list[str] = []
        for name in (each for each in self._running(found) if not self._host.paused(each)):
            seen.append(f"{name} {self._host.pause(name)}")
            self._frozen.append(name)
        answered = [name for name in self._frozen if found.service.mode(self._process(name).address)]
        if answered:
            raise PreconditionError(f"{', '.join(answered)} answers; expected it frozen")
        return f"{'; '.join(seen)}; nobody is answered"

    def lose_leader(self, kind: str) -> str:
        """Kill the process that leads; return when another leads, with what became of the sessions."""
        found = self._kind(kind)
        modes = self._modes(found)
        led = next((name for name, mode in modes.items() if mode == LEADER), None)
        if led is None or len(modes) <= 1 or self._lacking(found):
            raise PreconditionError(f"{_shown(modes)}; expected an ensemble of which every server serves")
        before = self._sessions(found)
        if found.service.holds_metadata:
            self._view.expect_silence(f"{led} led it and was killed")
        self._killed.append(led)
        seen = self._host.kill(led)
        if not until(lambda: LEADER in self._modes(found).values(), found.service.start_s_max):
            raise PreconditionError(f"{led} was killed, and no other leads: {_shown(self._modes(found))}")
        self._await_answer(found)
        return f"{led} led, {seen}; now {_shown(self._modes(found))}; {self._became(found, before)}"

    def lacking(self) -> str:
        """Return which processes do not serve, but for those that a fault of their own has taken away."""
        return "; ".join(filter(None, map(self._lacking, self._kinds.values())))

    def _lacking(self, found: Started) -> str:
        gone = [name for name, mode in self._modes(found).items() if name not in self._lost and not mode]
        return f"{', '.join(gone)} does not serve" if gone else ""

    def mend(self) -> str:
        """Thaw what `halt` froze and start what `lose_leader` killed; return when all serve."""
        seen = [f"{name} {self._host.resume(name)}" for name in self._frozen if self._host.paused(name)]
        self._frozen.clear()
        for name in (each for each in self._killed if not self._host.alive(each)):
            self._boot(name)
            seen.append(f"{name} started")
        self._killed.clear()
        kinds = list(self._kinds.values())
        for each in kinds:
            if not until(partial(self._is_mended, each), each.service.start_s_max):
                raise PreconditionError(f"{'; '.join(seen)}; but {self._lacking(each)}")
            self._await_answer(each)
        modes = {name: mode for each in kinds for name, mode in self._modes(each).items()}
        return f"{'; '.join(seen)}; now {_shown(modes)}"

    def _is_mended(self, found: Started) -> bool:
        return self._lacks_some(found) or not self._lacking(found)

    # --- faults of single processes -----------------------------------------------------------------------------
    @contextmanager
    def losing(self, name: str) -> Iterator[None]:
        """Know that a fault takes a process away in this block; then wait until the others serve, if they can."""
        found, known = self._of[name], name in self._lost
        with self._mutex:
            self._lost.add(name)
        if found.service.holds_metadata:
            self._view.expect_silence(f"a fault hits {name}")
        try:
            yield
        except BaseException:
            with self._mutex:
                self._lost -= set() if known else {name}
            self._await_answer(found)
            raise
        if not self._lacks_some(found):
            self._await_others(found, name)

    @contextmanager
    def regaining(self, name: str) -> Iterator[None]:
        """Know that a process is back after this block, and wait until it serves, if enough others are there."""
        found = self._of[name]
        yield
        with self._mutex:
            self._lost.discard(name)
        if not self._lacks_some(found) or not self._host.alive(name):
            self._await_back(found, name)

    def ask(self, name: str) -> None:
        """Ask a process what it is, so that it is sent a packet at least: nodes may ask it seldom."""
        self._mode(name)

    def start(self, name: str) -> str:
        """
        Start a process again; return what it is when it serves, or that too few others are there.

        One that did not serve in time after its start is not started again, but awaited.
        """
        under_way = name in self._under_way
        if self._host.alive(name) and not under_way:
            raise PreconditionError(f"start {name}: it runs already; expected it to be down")
        self._under_way.add(name)
        with self.regaining(name):
            if not self._host.alive(name):
                self._boot(name)
        self._under_way.discard(name)
        mode = self._mode(name)
        return f"{name} is {mode}" if mode else f"{name} started; too few of its peers run for it to serve"

    def _boot(self, name: str) -> None:
        found = self._of[name]
        prepare(self._host, found.service, self._process(name))
        found.service.before_restart(self._process(name))
        self._host.start(name, found.launches[name])

    def _await_others(self, found: Started, gone: str) -> None:
        """Wait until a process of the kind serves without one; go on if faults leave too few meanwhile."""
        if not until(
            lambda: self._lacks_some(found) or any(self._modes(found).values()), found.service.start_s_max
        ):
            raise PreconditionError(f"{gone} is gone, and no other serves: {_shown(self._modes(found))}")
        self._await_answer(found)

    def _await_back(self, found: Started, name: str) -> None:
        """Wait until a process serves; go on if faults leave too few meanwhile, and raise if it ends by itself."""

        def ended() -> bool:
            return name not in self._lost and not self._host.alive(name)

        def back() -> bool:
            return self._lacks_some(found) or bool(self._mode(name))

        in_time = until(lambda: ended() or back(), found.service.start_s_max)
        if ended() or not in_time:
            what = "ended" if ended() else "serves not"
            said = explained(self._host.log_text(name))
            raise PreconditionError(f"{name} is back, and {what}: {_shown(self._modes(found))}; it said: {said}")
        self._await_answer(found)

    def _await_answer(self, found: Started) -> None:
        if found.service.holds_metadata and not self._lacks_some(found):
            self._view.await_answer()

    # --- what is seen -------------------------------------------------------------------------------------------
    def _kind(self, kind: str) -> Started:
        if kind not in self._kinds:
            raise PreconditionError(f"{kind}: the run shares it with others, or has none; expected one of its own")
        return self._kinds[kind]

    def _running(self, found: Started) -> list[str]:
        return [each.name for each in found.processes if self._host.alive(each.name)]

    def _able(self, found: Started) -> list[str]:
        """Return the processes that run and that no fault has taken away."""
        away = {*self._lost, *self._frozen}
        return [name for name in self._running(found) if name not in away]

    def _lacks_some(self, found: Started) -> bool:
        """Return True if so few processes of a kind run that they serve nobody."""
        return len(self._able(found)) < found.service.enough(len(found.processes))

    def _process(self, name: str) -> Process:
        return next(each for each in self._of[name].processes if each.name == name)

    def _mode(self, name: str) -> str:
        if not self._host.alive(name) or self._host.paused(name):
            return ""
        return self._of[name].service.mode(self._process(name).address)

    def _modes(self, found: Started) -> Mapping[str, str]:
        return {each.name: self._mode(each.name) for each in found.processes}

    def _sessions(self, found: Started) -> Mapping[int, str]:
        """Return the process to which each session of a node is connected now."""
        return {
            session: name
            for name in self._running(found)
            for session in found.service.sessions(self._process(name).address) - {self._view.session}
        }

    def _became(self, found: Started, before: Mapping[int, str]) -> str:
        """Wait until each session is connected again, if it is in time; return how many were kept, and moved."""
        until(lambda: before.keys() <= self._sessions(found).keys(), MOVED_WITHIN_S)
        now = self._sessions(found)
        kept = before.keys() & now.keys()
        moved = sum(before[session] != now[session] for session in kept)
        return f"{len(kept)} of {len(before)} sessions kept, {moved} on another server"


def _shown(modes: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {mode or 'gone'}" for name, mode in modes.items())
