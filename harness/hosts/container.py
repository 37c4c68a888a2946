"""One node's container: made at its first start, started again after a kill, removed through the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from docker.errors import APIError, DockerException, NotFound
from docker.types import Mount

from harness import limits
from harness.cleanup.ledger import Ledger
from harness.cleanup.process import until
from harness.hosts.node import FIRST_LOOK_S, LOG_TAIL_CHARACTERS
from harness.launch import Launch, Runtime
from harness.model import PreconditionError, UsageError

PROCESSES_MAX: Final = 512
# Where a node finds its launch's library.
LIBRARY: Final = "/library"
# What Java unpacks of its jars there (Snappy, Zstandard) is mapped to be run.
_TMP: Final = {Runtime.PYTHON: "size=16m,mode=1777", Runtime.JAVA: "size=64m,mode=1777,exec"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a node's container is made of, but for its launch: the same at every start."""

    name: str
    images: Mapping[Runtime, str]
    network: str
    ip: str
    user: str
    labels: Mapping[str, str]
    data: Path
    conf: Path


class NodeContainer:
    """
    A node's container over its lives: unprivileged, non-root, its root filesystem read-only.

    Raises:  PreconditionError when a container that should run does not, or does not do what it is told.
    """

    def __init__(self, *, name: str, client: Any, ledger: Ledger, shape: Shape, log: Path) -> None:
        """Name it; nothing is made yet, and its maker has noted it."""
        self.name = name
        self._client = client
        self._ledger = ledger
        self._shape = shape
        self._log = log
        self._container: Any = None
        self._made_for: Launch | None = None

    def start(self, launch: Launch) -> None:
        """Start it, made anew when its launch is another; UsageError when it ends at once."""
        if self.alive():
            raise PreconditionError(f"start {self.name}: it runs already; expected it to be down")
        wanted = replace(launch, files={})  # they are seen through a mount
        try:
            if self._made_for != wanted:
                self._remove()
                with self._ledger.making():
                    self._container = self._create(launch)
                self._made_for = wanted
            self._container.start()
        except APIError as error:
            raise UsageError(
                f"start {self.name}: {error.explanation}; expected a container that starts"
            ) from error
        if until(lambda: not self.alive(), FIRST_LOOK_S):
            code = self._state()["ExitCode"]
            raise UsageError(
                f"start {self.name}: ended at once with exit code {code}; expected it to run; it said:\n"
                f"{self.log_text()[-LOG_TAIL_CHARACTERS:]}"
            )

    def alive(self) -> bool:
        """Whether it runs; a paused one does."""
        return self._container is not None and bool(self._state()["Running"])

    def kill(self) -> str:
        """SIGKILL, paused or not; return when it has ended."""
        self._running("kill")
        return self._end("kill", "SIGKILL")

    def stop(self) -> str:
        """SIGTERM; return when it has ended."""
        self._running("stop")
        return self._end("stop", "SIGTERM")

    def pause(self) -> str:
        """Freeze all its processes; return when the engine says so."""
        if self._running("pause")["Paused"]:
            return "container was frozen already"
        refusals: list[str] = []

        def frozen() -> bool:
            # With cgroup v1 freezing is a race against the container's own processes, which an engine gives up
            # after some tries ("unable to freeze"): whoever asks again mostly gets it.
            try:
                self._container.pause()
            except APIError as error:
                refusals.append(str(error.explanation))
            return bool(self._state()["Paused"])

        if not until(frozen, limits.PROCESS_END_S_MAX):
            why = f": {refusals[-1]}" if refusals else ""
            raise PreconditionError(f"pause {self.name}: the engine says that it is not paused{why}")
        return "container frozen"

    def resume(self) -> str:
        """Let it go on."""
        if not self._running("resume")["Paused"]:
            raise PreconditionError(f"resume {self.name}: it is not paused; expected a pause before")
        with self._told("resume"):
            self._container.unpause()
        if self._state()["Paused"]:
            raise PreconditionError(f"resume {self.name}: the engine says that it is still paused")
        return "container runs"

    def log_text(self) -> str:
        """What it printed so far, over all its lives."""
        before = self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""
        return before + self._printed()

    def save_log(self) -> None:
        """Keep what it printed in the run's folder; the container goes away."""
        printed = self._printed()
        if printed:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(printed)
        self._container = None

    def _create(self, launch: Launch) -> Any:
        shape = self._shape
        library = [] if launch.library is None else [launch.library]
        return self._client.containers.create(
            shape.images[launch.runtime],
            command=list(launch.argv),
            name=shape.name,
            labels=dict(shape.labels),
            environment=dict(launch.env),
            user=shape.user,
            read_only=True,
            tmpfs={"/tmp": _TMP[launch.runtime]},
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            pids_limit=PROCESSES_MAX,
            mounts=[
                Mount(target="/data", source=str(shape.data), type="bind"),
                Mount(target="/conf", source=str(shape.conf), type="bind", read_only=True),
                *(Mount(target=LIBRARY, source=str(each), type="bind", read_only=True) for each in library),
            ],
            network=shape.network,
            networking_config={shape.network: self._client.api.create_endpoint_config(ipv4_address=shape.ip)},
            stop_signal="SIGTERM",
            detach=True,
        )

    def _end(self, what: str, signal: str) -> str:
        """Signal it and wait until the engine says that it has ended."""
        with self._told(what):
            self._container.kill(signal)
        if not until(lambda: not self.alive(), limits.PROCESS_END_S_MAX):
            raise PreconditionError(f"{what} {self.name}: it outlived {signal} by {limits.PROCESS_END_S_MAX} s")
        return f"container ended by {signal} with exit code {self._state()['ExitCode']}"

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Tell in our words what the engine refuses."""
        try:
            yield
        except APIError as error:
            raise PreconditionError(f"{what} {self.name}: the engine refuses: {error.explanation}") from error

    def _state(self) -> Mapping[str, Any]:
        """Ask the engine for the container's state now."""
        try:
            self._container.reload()
        except NotFound:
            return {"Running": False, "Paused": False, "ExitCode": -1}
        state: Mapping[str, Any] = self._container.attrs["State"]
        return state

    def _running(self, what: str) -> Mapping[str, Any]:
        state = self._state() if self._container is not None else {"Running": False}
        if not state["Running"]:
            raise PreconditionError(f"{what} {self.name}: no container of it runs; expected one")
        return state

    def _printed(self) -> str:
        if self._container is None:
            return ""
        try:
            text: str = self._container.logs().decode("utf-8", errors="replace")
        except (DockerException, OSError):
            return ""
        return text

    def _remove(self) -> None:
        if self._container is not None:
            container = self._container
            self.save_log()
            container.remove(force=True, v=True)
