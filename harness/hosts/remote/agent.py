"""
The agent: the host `local` on a machine, driven by calls that come over SSH; it uses the standard library alone.

    FOLDER/code/HASH       sources, this file among them      FOLDER/lib/HASH   libraries of our broker
    FOLDER/state           ledgers and claimed ports          FOLDER/runs/ID    the run's files, removed at its end

All that it makes stands in a ledger in its folder before it is made (harness/cleanup/ledger.py), so that it is
undone by the agent at the end of a run, by its guard when agent or harness is gone
(harness/hosts/remote/guard.py), or by the next agent of the folder if both were killed.

A new call needs a line in the agent's table, and a method of harness/hosts/ssh.py.

`python -m harness.hosts.remote.agent FOLDER ID SILENCE_S SSH_PORT`; harness/hosts/remote/wire.py has the messages.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, BinaryIO, Final, NoReturn

from harness.ability import Ability
from harness.beneath import Folder
from harness.cleanup.ledger import reap
from harness.cleanup.state import state_dir
from harness.cleanup.undo import UNDO
from harness.clocks import Moment, Reading, Setting, Which
from harness.cluster.disk_error import DiskError
from harness.hosts import moments
from harness.hosts.local import LocalHost
from harness.hosts.node import open_log
from harness.hosts.remote import wire
from harness.hosts.remote.changes import Changes, Part
from harness.hosts.remote.guard import Guard
from harness.java import Java, find_java
from harness.launch import Launch, Place, Runtime
from harness.model import FencepostError, PreconditionError, UsageError
from harness.packets import Packets

# How often the guard tries to undo what is left.
HEAL_TRIES_MAX: Final = 3
_MINE: Final = 0o077


class Agent:
    """Serves the calls of one harness, each in a thread, until the harness says `close` or is gone."""

    def __init__(self, run_dir: Path, guard: Guard, output: BinaryIO, ssh_ports: frozenset[int]) -> None:
        self._run_dir = run_dir
        self._guard = guard
        self._output = output
        self._ssh_ports = ssh_ports
        self._host: LocalHost | None = None
        self._places: dict[str, Place] = {}
        self._changes: dict[str, Changes] = {}
        self._logs: dict[str, int] = {}
        self._writing = threading.Lock()
        self._asked: dict[int, tuple[threading.Event, list[str]]] = {}
        self._do: Final[dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any] | Iterator[Part]]]] = {
            "open": self._open,
            "lacks": lambda call: {"reason": self._local.missing(Ability(call["ability"]))},
            "add": self._add,
            "start": self._start,
            "alive": lambda call: {"alive": self._local.alive(call["name"])},
            "paused": lambda call: {"paused": self._local.paused(call["name"])},
            "kill": lambda call: {"seen": self._local.kill(call["name"])},
            "stop": lambda call: {"seen": self._local.stop(call["name"])},
            "pause": lambda call: {"seen": self._local.pause(call["name"])},
            "resume": lambda call: {"seen": self._local.resume(call["name"])},
            "flush": lambda call: {"seen": self._local.flush(call["name"])},
            "unflushed": lambda call: {"files": self._local.unflushed(call["name"])},
            "power_loss": self._power_loss,
            "lose_disk": lambda call: {"seen": self._local.lose_disk(call["name"])},
            "break_disk": self._break_disk,
            "disk_state": lambda call: {"seen": self._local.disk_state(call["name"])},
            "mend_disk": self._mend_disk,
            "now": lambda _: asdict(moments.now()),
            "set_clocks": self._set_clocks,
            "ask_clocks": self._ask_clocks,
            "overwrite": self._overwrite,
            "note_flushed": self._note_flushed,
            "unlink": self._unlink,
            "data": lambda call: self._changes[call["name"]].parts(),
            "log": self._log,
            "impair_packets": self._impair_packets,
            "packets_impaired": lambda call: {"stands": self._local.packets_impaired(*_packets(call))},
            "packets_met": lambda call: {"packets": self._local.packets_met(*_packets(call))},
            "pass_packets": self._pass_packets,
            "close": self._close,
        }

    def serve(self, source: wire.Source) -> bool:
        """Answer calls until the harness ends this or is gone; return False if the guard is gone."""
        self._say(None)
        while (message := wire.receive(source)) is not None:
            call, _ = message
            if call.get("do") == "beat":
                try:
                    self._guard.beat()
                except BrokenPipeError:
                    return False
                self._say({"id": call["id"], "done": {}})
            elif "answer" in call:
                event, errors = self._asked.pop(call["answer"])
                errors.append(call["error"])
                event.set()
            elif call.get("do") == "end":
                self._guard.release()
                break
            else:
                threading.Thread(target=self._answer, args=(call,), daemon=True).start()
        return True

    def close(self) -> None:
        """Undo everything; safe to call twice."""
        if self._host is not None:
            self._host.close()

    # --- calls ------------------------------------------------------------------------------------------------
    def _open(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        require_own(call["address"])
        span: list[int] | None = call["ports"]
        self._host = LocalHost(
            self._run_dir,
            power_tier=call["tier"],
            drain=self._drain,
            ports=None if span is None else range(span[0], span[1] + 1),
            address=call["address"],
            ssh_ports=self._ssh_ports,
        )
        self._host.open()
        self._host.ledger.note("directory", path=str(self._run_dir))
        return {
            "tier": self._host.power_tier,
            "reason": self._host.power_reason,
            "undone": self._host.reaped.undone,
            "left": self._host.reaped.left,
        }

    def _add(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        name = call["name"]
        place = self._places[name] = self._local.add_node(name, disk=call["disk"], fails=call["fails"])
        self._changes[name] = Changes(self._local.disk(name))
        return {
            "data_dir": place.data_dir,
            "conf_dir": place.conf_dir,
            "python": place.python,
            "client": place.client.port,
            "internal": place.internal.port,
        }

    def _start(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        clocks = None if call["clocks"] is None else Which(call["clocks"])
        argv = tuple(call["argv"])
        if call["runtime"] == Runtime.JAVA:
            argv = (str(java().executable), *argv[1:])
        if call["library"] is not None:
            with suppress(FileExistsError):  # since its first start
                self._log_of(call["name"]).with_name("library").symlink_to(call["library"])
        launch = Launch(argv=argv, files=call["files"], env=call["env"], clocks=clocks)
        self._local.start(call["name"], launch)
        return {}

    def _power_loss(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        torn = None if call["torn"] is None else Random(call["torn"])
        try:
            return {"seen": self._local.power_loss(call["name"], torn)}
        finally:
            self._changes[call["name"]].doubt()

    def _break_disk(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return {"seen": self._local.break_disk(call["name"], DiskError(call["error"]))}
        finally:
            self._changes[call["name"]].doubt()

    def _mend_disk(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return {"seen": self._local.mend_disk(call["name"])}
        finally:
            self._changes[call["name"]].doubt()

    def _note_flushed(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        self._local.note_flushed(call["name"], call["path"], call["length"])
        return {}

    def _unlink(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        self._local.unlink(call["name"], call["path"])
        return {}

    def _overwrite(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        was, now = bytes.fromhex(call["was"]), bytes.fromhex(call["now"])
        self._local.overwrite(call["name"], call["path"], call["position"], was, now)
        return {}

    def _set_clocks(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        setting, seen = dict(call["setting"]), dict(call["seen"])
        asked, answered = Moment(**seen.pop("asked")), Moment(**seen.pop("answered"))
        self._local.set_clocks(
            call["name"],
            Setting(which=Which(setting.pop("which")), **setting),
            Reading(asked=asked, answered=answered, **seen),
        )
        return {}

    def _ask_clocks(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        """Have a node print its clocks, and say at which byte of its log."""
        at = self._log_of(call["name"]).stat().st_size
        self._local.ask_clocks(call["name"])
        return {"at": at}

    def _log_of(self, name: str) -> Path:
        return Path(self._places[name].conf_dir).with_name("log.txt")

    def _log(self, call: Mapping[str, Any]) -> Iterator[Part]:
        """Yield what a node has printed since the last call."""
        name = call["name"]
        try:
            handle = open_log(name, self._log_of(name), os.O_RDONLY)
        except FileNotFoundError:
            return
        with os.fdopen(handle, "rb") as file:
            file.seek(self._logs.get(name, 0))
            while piece := file.read(wire.PAYLOAD_BYTES_MAX):
                self._logs[name] = self._logs.get(name, 0) + len(piece)
                yield {}, piece

    def _impair_packets(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        self._local.impair_packets(*_packets(call))
        return {}

    def _pass_packets(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        self._local.pass_packets(*_packets(call))
        return {}

    def _close(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        del call
        self.close()
        return {}

    # --- around them --------------------------------------------------------------------------------------------
    @property
    def _local(self) -> LocalHost:
        if self._host is None:
            raise UsageError("the agent: not open; expected open before any other call")
        return self._host

    def _drain(self, name: str) -> None:
        """Ask the harness to wait until it has all that a dead node sent; return when it has."""
        number, event, errors = secrets.randbits(48), threading.Event(), list[str]()
        self._asked[number] = (event, errors)
        self._say({"ask": number, "drain": name})
        # The harness bounds its wait; if it is gone, the guard ends this process.
        event.wait()
        if errors[0]:
            raise PreconditionError(errors[0])

    def _answer(self, call: Mapping[str, Any]) -> None:
        number = call["id"]
        try:
            result = self._do[call["do"]](call)
            if isinstance(result, Mapping):
                self._say({"id": number, "done": result})
                return
            for part, payload in result:
                self._say({"id": number, "part": part}, payload)
            self._say({"id": number, "done": {}})
        except FencepostError as error:
            self._say({"id": number, "error": str(error), "kind": type(error).__name__})
        except BrokenPipeError:
            return  # the harness is gone: the main thread sees that too
        except Exception:
            self._say({"id": number, "error": traceback.format_exc(), "kind": ""})

    def _say(self, message: Mapping[str, Any] | None, payload: bytes = b"") -> None:
        """Write a message, or the mark that comes before the first one."""
        with self._writing:
            self._output.write(wire.MARK if message is None else wire.pack(message, payload))
            self._output.flush()


def _packets(call: Mapping[str, Any]) -> tuple[str, Packets]:
    """Return the node that a call names, and what becomes of its packets."""
    return str(call["name"]), Packets(call["how"])


@cache
def java() -> Java:
    """Return the machine's Java; raise UsageError if it has none."""
    return find_java()


def heal(run_dir: Path) -> None:
    """Undo every ledger of this folder whose run is over, and remove the run's files; for the guard."""
    for _ in range(HEAL_TRIES_MAX):
        if not reap().left:
            break
    # Made, perhaps, and not yet in a ledger.
    UNDO["directory"]({"path": str(run_dir)})


def require_own(address: str) -> None:
    """Raise UsageError for an address that is not this machine's, on which no node could listen."""
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            raise UsageError(
                f"address {address}: {error.strerror}; expected one of the machine itself, where nodes listen"
            ) from error


def require_below(folder: Path) -> None:
    """Raise UsageError if the state would be kept outside the agent's folder."""
    state = state_dir("runs")
    if folder not in state.parents:
        raise UsageError(f"state folder {state}: not below {folder}; expected to be able to write there")


def main(arguments: list[str]) -> NoReturn:
    """Serve the harness at the other end of the standard input and output."""
    folder, run, silence_s, ssh_port = Path(arguments[0]), arguments[1], float(arguments[2]), int(arguments[3])
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with suppress(PermissionError):  # the server has made a session for us
        os.setsid()
    os.umask(_MINE)
    os.chdir(folder)
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    require_below(folder)
    (folder / "runs").mkdir(exist_ok=True)
    with Folder.no_link(folder / "runs"):
        run_dir = folder / "runs" / run
    guard = Guard(silence_s, lambda: heal(run_dir))
    # What a library prints must not come between our messages.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    here = os.environ.get("SSH_CONNECTION", "").split()
    agent = Agent(run_dir, guard, output, frozenset({ssh_port, *map(int, here[3:4])}))
    if not agent.serve(sys.stdin.buffer):
        agent.close()
    # At once: threads may still be at work. The guard heals what is left, unless it was released.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
