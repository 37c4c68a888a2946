"""
A machine that is ready for a run: sources and libraries copied, the agent running, and the nodes that it has.

A station is opened once and closed once. What it made on the machine is undone by the agent, its guard, or the
next agent in the same folder; here there is nothing to undo.
"""

from __future__ import annotations

import inspect
import json
import os
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import paramiko

from harness.ability import Ability
from harness.beneath import Folder
from harness.clocks import Moment, Reading, Setting
from harness.hosts import moments
from harness.hosts.machine_list import Machine
from harness.hosts.node import open_log, read_log
from harness.hosts.remote import parcel, prepare, wire
from harness.hosts.remote.calls import Calls
from harness.hosts.remote.connection import Connection
from harness.hosts.remote.mirror import Mirror
from harness.hosts.trees import copy_pass
from harness.launch import Address, Launch, Place
from harness.model import FencepostError, UsageError
from harness.packets import Packets

# The oldest Python that runs the agent and our broker.
PYTHON_MIN: Final = (3, 11)
# In a node's command line: the agent knows where the machine has its Java.
JAVA: Final = "java"
# Of the agent's errors, what a message shows.
_WORDS_BYTES: Final = 4096


@dataclass(slots=True, kw_only=True)
class _Node:
    """What is here of a node there: a copy of its data, and of what it has printed."""

    mirror: Mirror
    log: Path
    lost: int = 0
    mutex: threading.Lock = field(default_factory=threading.Lock)


class Station:
    """One machine of a run; any thread may call its methods."""

    def __init__(self, machine: Machine, *, silence_s: float, drain: Callable[[str], None]) -> None:
        """
        Connect, copy what is missing, and start the agent.

        Raises:
            UsageError: The machine lacks something, or cannot be reached; the message names it.
        """
        self.machine = machine
        self._nodes: dict[str, _Node] = {}
        self._lacks: dict[Ability, str] = {}
        self._folder = ""
        self._seen: Mapping[str, Any] = {}
        self._libraries: dict[tuple[str, ...], str] = {}
        self._copying = threading.Lock()
        self._address = _resolved(machine)
        self._connection = Connection(machine)
        try:
            self._calls = self._start(silence_s, drain)
        except BaseException:
            self._connection.close()
            raise

    @property
    def lost(self) -> str:
        """Why the machine is lost, "" if it is not."""
        return f"{self.machine}: lost: {self._calls.lost}" if self._calls.lost else ""

    def open(self, *, tier: str | None, ports: range | None) -> Mapping[str, Any]:
        """Reap what dead runs left there, and choose a power tier; return both, as the agent says it."""
        span = None if ports is None else (ports[0], ports[-1])
        return self._calls.call("open", tier=tier, ports=span, address=self._address)

    def undo(self) -> None:
        """Undo what the agent has opened; raise FencepostError for what is left."""
        self._calls.call("close")

    def lacks(self, ability: Ability) -> str:
        """Return what the machine lacks for it, "" for nothing; asked once."""
        if ability not in self._lacks:
            reason = str(self._calls.call("lacks", ability=ability)["reason"])
            if not reason and ability is Ability.WALL_CLOCK:
                reason = self._clocks_ahead().why_wrong()
            self._lacks[ability] = reason
        return self._lacks[ability]

    def add_node(self, name: str, *, disk: bool, fails: bool, copy: Path) -> Place:
        """Make a node's disk there, and the folder of its copy here; return its place."""
        made = self._calls.call("add", name=name, disk=disk, fails=fails)
        copy.mkdir(parents=True, exist_ok=True)
        self._nodes[name] = _Node(mirror=Mirror(copy / "data"), log=copy / "log.txt")
        client = Address(host=self._address, port=int(made["client"]))
        internal = Address(host=self._address, port=int(made["internal"]))
        return Place(
            data_dir=str(made["data_dir"]),
            conf_dir=str(made["conf_dir"]),
            python=str(made["python"]),
            client=client,
            internal=internal,
            client_outside=client,
            internal_outside=internal,
            java=JAVA,
            library=parcel.LIBRARY,
        )

    def start(self, name: str, launch: Launch) -> None:
        """Start a node's process."""
        self._calls.call(
            "start",
            name=name,
            argv=list(launch.argv),
            files=dict(launch.files),
            env=dict(launch.env),
            clocks=launch.clocks,
            runtime=launch.runtime,
            library=None if launch.library is None else self._library_of(launch),
        )

    def alive(self, name: str) -> bool:
        """Return True if the node's process exists there."""
        return bool(self._calls.call("alive", name=name)["alive"])

    def paused(self, name: str) -> bool:
        """Return True if the kernel there has stopped all threads of the node's process."""
        return bool(self._calls.call("paused", name=name)["paused"])

    def act(self, do: str, name: str, **more: Any) -> str:
        """Have the agent do one of its acts to a node; return what its probe saw."""
        return f"{self.machine.name}: {self.see(do, name, **more) or 'done'}"

    def see(self, do: str, name: str, **more: Any) -> str:
        """The same, "" if its probe had nothing to see."""
        return str(self._calls.call(do, name=name, **more).get("seen", ""))

    def lose_disk(self, name: str) -> str:
        """Give a node that is down an empty disk there; what it had is kept here, beside the copy."""
        node = self._nodes[name]
        had = self.data(name)
        seen = self.act("lose_disk", name)
        node.lost += 1
        aside = f"lost-{node.lost}"
        with node.mutex, Folder.at(had) as lost, Folder.at(had.parent) as beside, beside.make(aside) as kept:
            copy_pass(lost, kept)
        return seen

    def set_clocks(self, name: str, setting: Setting, seen: Reading) -> None:
        """Set the clocks of a node's process; the machine is told when the reading was by its own clocks."""
        there = self._clocks_ahead().there(seen)
        self._calls.call("set_clocks", name=name, setting=asdict(setting), seen=asdict(there))

    def ask_clocks(self, name: str) -> Callable[[], str]:
        """Have a node's process print its clocks; return what returns what it has printed since."""
        at = int(self._calls.call("ask_clocks", name=name)["at"])

        def printed() -> str:
            self.log_text(name)
            return read_log(name, self._nodes[name].log, at)

        return printed

    def unflushed(self, name: str) -> tuple[str, ...]:
        """Return the files of the node's disk there that are not durable."""
        return tuple(map(str, self._calls.call("unflushed", name=name)["files"]))

    def packets_impaired(self, name: str, how: Packets) -> bool:
        """Return True if this becomes of the node's packets now, as the kernel there says."""
        return bool(self._calls.call("packets_impaired", name=name, how=how)["stands"])

    def packets_met(self, name: str, how: Packets) -> int:
        """Return how many packets of the node it was done to so far."""
        return int(self._calls.call("packets_met", name=name, how=how)["packets"])

    def data(self, name: str) -> Path:
        """Bring the copy of a node's data up to date; return its folder."""
        node = self._nodes[name]
        with node.mutex:
            self._calls.stream("data", node.mirror.take, name=name)
        return node.mirror.folder

    def log_text(self, name: str) -> str:
        """Return everything that the node's processes have printed so far; after the end, what has come."""
        node = self._nodes[name]

        def take(_: Mapping[str, Any], payload: bytes) -> None:
            with os.fdopen(open_log(name, node.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as file:
                file.write(payload)

        with node.mutex:
            if not self._calls.ended:
                self._calls.stream("log", take, name=name)
            return read_log(name, node.log)

    def close(self) -> str:
        """Undo everything and end the agent; return what is left and why, "" if nothing is. Safe to call twice."""
        problem = ""
        try:
            if not self._calls.ended:
                for name in self._nodes:
                    self.log_text(name)
                self.undo()
        except FencepostError as error:
            problem = str(error)
        problem = self.lost or problem
        # After a failed undo the guard must heal, so it is not released.
        self._calls.end(release=not problem)
        self._connection.close()
        return problem

    def _library_of(self, launch: Launch) -> str:
        """Copy what a launch needs of its library, unless the machine has it; return its folder there."""
        with self._copying:
            if launch.argv not in self._libraries:
                self._libraries[launch.argv] = self._copied(parcel.library(launch), "lib")
            return self._libraries[launch.argv]

    def _clocks_ahead(self) -> moments.Ahead:
        return moments.look(lambda: Moment(**self._calls.call("now")))

    # --- before the first call -----------------------------------------------------------------------------------
    def _start(self, silence_s: float, drain: Callable[[str], None]) -> Calls:
        seen = self._prepare("survey", self.machine.folder, *parcel.LIBRARIES, parcel.FUSE)
        if "error" in seen:
            raise UsageError(f"{self.machine}: folder {seen['error']}; expected one of the user's alone")
        python, like = parcel.of_survey(seen)
        if python < PYTHON_MIN:
            raise UsageError(
                f"{self.machine}: {self.machine.python} is Python {'.'.join(map(str, python))}; expected "
                f"{'.'.join(map(str, PYTHON_MIN))} or later; name one with the key `python`"
            )
        folder = str(seen["folder"])
        self._folder, self._seen = folder, seen
        code = self._copied(parcel.sources(), "code")
        path = [code]
        missing = set(seen["missing"])
        if missing & set(parcel.LIBRARIES):
            path.append(self._copied(parcel.libraries(python, like), "lib"))
        if parcel.FUSE in missing:
            path.append(self._copied(parcel.fuse(), "lib"))
        words = [
            *("env", f"PYTHONPATH={os.pathsep.join(path)}", f"XDG_STATE_HOME={folder}/state"),
            *("PYTHONUNBUFFERED=1", self.machine.python, "-m", "harness.hosts.remote.agent"),
            *(folder, secrets.token_hex(6), f"{silence_s:g}", str(self.machine.port)),
        ]
        try:
            channel = self._connection.start(words)
            source = channel.makefile("rb")
            said = wire.skip_greeting(source)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise UsageError(f"{self.machine}: the agent: {error}; expected it to start") from error
        if said is not None:
            words_of = (said + _errors_of(channel)).decode(errors="replace").strip().splitlines() or ["nothing"]
            raise UsageError(f"{self.machine}: the agent does not start; it said: {words_of[-1]}")
        return Calls(
            str(self.machine),
            channel,
            source,
            drain=drain,
            silence_s=silence_s,
            last_words=lambda: _errors_of(channel).decode(errors="replace"),
        )

    def _copied(self, packed: parcel.Parcel, kind: str) -> str:
        """Copy and unpack a parcel unless the machine had it at first; return its folder."""
        target = f"{self._folder}/{kind}/{packed.name}"
        if packed.name not in self._seen[kind]:
            archive = f"{self._folder}/incoming/{packed.name}-{secrets.token_hex(6)}.zip"
            self._connection.put(packed.archive, archive)
            self._prepare("unpack", archive, target)
        return target

    def _prepare(self, *arguments: str) -> dict[str, Any]:
        """Run harness/hosts/remote/prepare.py there; return what it printed."""
        text = self._connection.run([self.machine.python, "-c", inspect.getsource(prepare), *arguments])
        try:
            said: dict[str, Any] = json.loads(text.splitlines()[-1])
        except (ValueError, IndexError) as error:
            raise UsageError(
                f"{self.machine}: {self.machine.python} said {text[-200:]!r}; expected JSON"
            ) from error
        return said


def _resolved(machine: Machine) -> str:
    """Return the machine's address as numbers: by its own name a machine may find its loopback alone."""
    try:
        return socket.gethostbyname(machine.address)
    except OSError as error:
        raise UsageError(f"{machine}: {error.strerror}; expected a name that this machine can resolve") from error


def _errors_of(channel: Any) -> bytes:
    """Return what a command has printed as errors so far, at most the first bytes of it."""
    return bytes(channel.recv_stderr(_WORDS_BYTES)) if channel.recv_stderr_ready() else b""
