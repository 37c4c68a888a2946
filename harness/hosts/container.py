"""One node's container: created at its first start, started again after a kill, removed through the ledger."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from docker.errors import APIError, NotFound
from docker.types import Mount

from harness import limits
from harness.cleanup.engine import ENGINE_ERRORS, said_by
from harness.cleanup.ledger import Ledger
from harness.cleanup.process import until
from harness.clocks import NS_PER_S
from harness.cluster.last_words import end_of
from harness.hosts import faketime
from harness.hosts.engine_watch import EngineWatch
from harness.hosts.node import FIRST_LOOK_S, LOG_TAIL_CHARACTERS, open_log, read_log
from harness.launch import Launch, Runtime
from harness.model import PreconditionError, UsageError

PROCESSES_MAX: Final = 512
# The mount point of the launch's library.
LIBRARY: Final = "/library"
# Where the launch's files are mounted, and the library that sets a process's clocks.
CONF: Final = "/conf"
FAKETIME: Final = f"/faketime/{faketime.NAME}"
# The name that a container knows for the harness's address.
HARNESS: Final = "harness"
# Java unpacks native libraries (Snappy, Zstandard) there and maps them as executable.
_TMP: Final = {Runtime.PYTHON: "size=16m,mode=1777", Runtime.JAVA: "size=64m,mode=1777,exec"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The properties of a node's container that are the same at every start."""

    name: str
    images: Mapping[Runtime, str]
    network: str
    gateway: str
    ip: str
    user: str
    labels: Mapping[str, str]
    data: Path
    conf: Path


class NodeContainer:
    """
    A node's container over its lives: unprivileged, non-root, with a read-only root filesystem.

    Raises:
        PreconditionError: A container that should run does not, or the engine does not do what was requested, or
            was gone meanwhile.
    """

    def __init__(
        self, *, name: str, client: Any, watch: EngineWatch, ledger: Ledger, shape: Shape, log: Path
    ) -> None:
        """Create nothing yet; the caller has already noted the container in the ledger."""
        self.name = name
        self._client = client
        self._watch = watch
        self._ledger = ledger
        self._shape = shape
        self._log = log
        self._container: Any = None
        self._made_for: Launch | None = None

    def start(self, launch: Launch) -> None:
        """Start it, created anew if the launch has changed; raise UsageError if it ends at once."""
        self._watch.require(f"start {self.name}")
        if self.alive():
            raise PreconditionError(f"start {self.name}: it runs already; expected it to be down")
        # Changed files need no new container: it sees them through a mount.
        wanted = replace(launch, files={})
        try:
            if self._made_for != wanted:
                self._remove()
                with self._ledger.making():
                    self._container = self._create(launch)
                self._made_for = wanted
            self._container.start()
        except ENGINE_ERRORS as error:
            raise UsageError(f"start {self.name}: {said_by(error)}; expected a container that starts") from error
        if until(lambda: not self.alive(), FIRST_LOOK_S):
            code = self._state()["ExitCode"]
            raise UsageError(
                f"start {self.name}: ended at once with exit code {code}; expected it to run; it said:\n"
                f"{end_of(self.log_text(), LOG_TAIL_CHARACTERS)}"
            )

    def alive(self) -> bool:
        """Return True if it runs; a paused one does."""
        return self._container is not None and bool(self._state()["Running"])

    def kill(self) -> str:
        """SIGKILL it, also if it is paused; return when it has ended."""
        self._running("kill")
        return self._end("kill", "SIGKILL")

    def stop(self) -> str:
        """SIGTERM it; return when it has ended."""
        self._running("stop")
        return self._end("stop", "SIGTERM")

    def pause(self) -> str:
        """Freeze all its processes; return when the engine reports it as paused."""
        if self._running("pause")["Paused"]:
            return "container was frozen already"
        refusals: list[str] = []

        def frozen() -> bool:
            # With cgroup v1, freezing races with the container's own processes. The engine gives up after some
            # tries ("unable to freeze"), and another request mostly succeeds.
            try:
                self._container.pause()
            except APIError as error:
                refusals.append(str(error.explanation))
            except ENGINE_ERRORS as error:
                raise self._failed("pause", error) from error
            return bool(self._state()["Paused"])

        if not until(frozen, limits.PROCESS_END_S_MAX):
            why = f": {refusals[-1]}" if refusals else ""
            raise PreconditionError(f"pause {self.name}: the engine reports that it is not paused{why}")
        return "container frozen"

    def paused(self) -> bool:
        """Return True if the engine reports it as paused."""
        return self._container is not None and bool(self._state().get("Paused"))

    def resume(self) -> str:
        """Resume it."""
        if not self._running("resume")["Paused"]:
            raise PreconditionError(f"resume {self.name}: it is not paused; expected a pause before")
        with self._refused("resume"):
            self._container.unpause()
        if self._state()["Paused"]:
            raise PreconditionError(f"resume {self.name}: the engine reports that it is still paused")
        return "container runs"

    def process(self) -> int:
        """Return the pid of its first process, as this machine sees it."""
        return int(self._running("look for the process of")["Pid"])

    def ask_clocks(self) -> Callable[[], str]:
        """SIGQUIT it, at which it prints its clocks; return what says what it has printed since."""
        self._running("ask for the clocks of")
        since_s = time.time_ns() / NS_PER_S
        with self._refused("ask for the clocks of"):
            self._container.kill("SIGQUIT")
        return lambda: self._printed(since=since_s)

    def log_text(self) -> str:
        """Return everything that it has printed so far, over all its lives."""
        return read_log(self.name, self._log) + self._printed()

    def save_log(self) -> None:
        """Append what it printed to the run's log file, because the container will be removed."""
        printed = self._printed()
        if printed:
            handle = open_log(self.name, self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            with os.fdopen(handle, "a", encoding="utf-8") as file:
                file.write(printed)
        self._container = None

    def _create(self, launch: Launch) -> Any:
        shape = self._shape
        library = [] if launch.library is None else [launch.library]
        env = dict(launch.env)
        preload = []
        if launch.clocks is not None:
            env |= faketime.environment(FAKETIME, f"{CONF}/{faketime.CONTROL}", launch.clocks)
            preload = [faketime_mount()]
        return self._client.containers.create(
            shape.images[launch.runtime],
            command=list(launch.argv),
            name=shape.name,
            labels=dict(shape.labels),
            environment=env,
            user=shape.user,
            read_only=True,
            tmpfs={"/tmp": _TMP[launch.runtime]},
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            pids_limit=PROCESSES_MAX,
            mounts=[
                Mount(target="/data", source=str(shape.data), type="bind"),
                Mount(target=CONF, source=str(shape.conf), type="bind", read_only=True),
                *(Mount(target=LIBRARY, source=str(each), type="bind", read_only=True) for each in library),
                *preload,
            ],
            network=shape.network,
            # Nobody answers what its engine does not know. Some clients ask for the name of an address before they
            # connect to it, and waited 20 s for that at each start.
            extra_hosts={HARNESS: shape.gateway},
            networking_config={shape.network: self._client.api.create_endpoint_config(ipv4_address=shape.ip)},
            stop_signal="SIGTERM",
            detach=True,
        )

    def _end(self, what: str, signal: str) -> str:
        """Signal it and wait until the engine reports that it has ended."""
        with self._refused(what):
            self._container.kill(signal)
        if not until(lambda: not self.alive(), limits.PROCESS_END_S_MAX):
            raise PreconditionError(f"{what} {self.name}: it outlived {signal} by {limits.PROCESS_END_S_MAX} s")
        return f"container ended by {signal} with exit code {self._state()['ExitCode']}"

    @contextmanager
    def _refused(self, what: str) -> Iterator[None]:
        """Raise PreconditionError for a request that the engine refuses, or does not answer any more."""
        try:
            yield
        except ENGINE_ERRORS as error:
            raise self._failed(what, error) from error

    def _failed(self, what: str, error: Exception) -> PreconditionError:
        return PreconditionError(
            f"{what} {self.name}: {said_by(error)}; expected an engine that does so until the end of the run"
        )

    def _state(self) -> Mapping[str, Any]:
        """Return the container's state, as the engine reports it now; one that stops ends the container itself."""
        self._watch.require(f"look at {self.name}")
        with self._refused("look at"):
            try:
                self._container.reload()
            except NotFound:
                return {"Running": False, "Paused": False, "ExitCode": -1}
        state: Mapping[str, Any] = self._container.attrs["State"]
        if not state["Running"]:
            self._watch.require_now(f"look at {self.name}")
        return state

    def _running(self, what: str) -> Mapping[str, Any]:
        state = self._state() if self._container is not None else {"Running": False}
        if not state["Running"]:
            raise PreconditionError(f"{what} {self.name}: no container of it runs; expected one")
        return state

    def _printed(self, **chosen: float) -> str:
        # Of an engine that is gone each request would leak the library's socket.
        if self._container is None or self._watch.lost:
            return ""
        try:
            text: str = self._container.logs(**chosen).decode("utf-8", errors="replace")
        except ENGINE_ERRORS:
            return ""
        return text

    def _remove(self) -> None:
        if self._container is not None:
            container = self._container
            self.save_log()
            container.remove(force=True, v=True)


def faketime_mount() -> Mount:
    """Return the mount of this machine's libfaketime; raise UsageError if it has none."""
    library = faketime.find()
    if library is None:
        raise UsageError(f"no libfaketime on this machine; {faketime.INSTALL}")
    return Mount(target=FAKETIME, source=str(library), type="bind", read_only=True)
