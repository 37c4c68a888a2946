"""
What tc does to the packets that are sent to one container: it has an interface of its own.

The interface is the end of the container's that is here; it goes with the container, so nothing is left of it.
Whether the kernel has a discipline is tried in a network namespace of the trial's own, on the loopback of that.
Source:  tc-tbf(8), tc-netem(8), veth(4).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from harness.model import PreconditionError
from harness.packets import KBIT_PER_S, LATE_MS, LOST_PERCENT, Packets

# In the kernel's root, and in that of a container.
INTERFACES: Final = "sys/class/net"
# How long a packet may wait for its turn, at the most, and how many bytes go at once: one full packet at least.
_WAIT_S: Final = 2
_BURST_BYTES: Final = 4_000
_DISCIPLINES: Final[Mapping[Packets, tuple[str, ...]]] = {
    Packets.THROTTLED: (
        *("tbf", "rate", f"{KBIT_PER_S}kbit"),
        *("burst", f"{_BURST_BYTES}b", "latency", f"{_WAIT_S}s"),
    ),
    Packets.LOSSY: ("netem", "delay", f"{LATE_MS}ms", f"{LATE_MS}ms", "loss", f"{LOST_PERCENT}%"),
}
# What tc counts of a discipline when it takes effect: packets that had to wait, or that went through it.
_COUNTED: Final[Mapping[Packets, str]] = {Packets.THROTTLED: "overlimits", Packets.LOSSY: "packets"}


@cache
def why_not(how: Packets) -> str:
    """Return why this machine cannot do it to an interface, "" if it can; tried once in a process."""
    if os.geteuid() != 0:
        return "not root; expected root, for the interfaces of containers"
    if missing := next((tool for tool in ("tc", "unshare") if shutil.which(tool) is None), ""):
        return f"no {missing} on PATH; expected iproute2 and util-linux"
    words = _DISCIPLINES[how]
    _, problem = _run("unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", *words)
    return f"tc {words[0]}: {problem}; expected a kernel with sch_{words[0]}" if problem else ""


def interface_of(pid: int) -> str:
    """
    Return the name of the interface here whose other end is the `eth0` of a container's process.

    Raises:
        PreconditionError: it has none, or its other end is in another network namespace.
    """
    try:
        wanted = Path("/proc", str(pid), "root", INTERFACES, "eth0", "iflink").read_text(encoding="ascii")
        for entry in sorted(Path("/", INTERFACES).iterdir()):
            if (entry / "ifindex").read_text(encoding="ascii") == wanted:
                return entry.name
    except OSError as error:
        raise PreconditionError(f"interface of process {pid}: {error}; expected a container that runs") from error
    raise PreconditionError(
        f"interface of process {pid}: its other end, {wanted.strip()}, is not here; expected an engine whose "
        "containers are connected to this machine's own network"
    )


def shape(interface: str, how: Packets) -> None:
    """Let it be done to all that goes out by the interface; raise PreconditionError if tc refuses."""
    _tc("qdisc", "replace", "dev", interface, "root", *_DISCIPLINES[how])


def clear(interface: str) -> None:
    """Let the interface be as it was made; raise PreconditionError if tc refuses."""
    _tc("qdisc", "del", "dev", interface, "root")


def state(interface: str) -> Packets | None:
    """Return what is done to what goes out by the interface, as the kernel says, None for nothing of ours."""
    kind = _discipline(interface).get("kind")
    return next((how for how, words in _DISCIPLINES.items() if words[0] == kind), None)


def met(interface: str, how: Packets) -> int:
    """Return how many packets it was done to since `shape`."""
    return int(_discipline(interface).get(_COUNTED[how], 0))


def _discipline(interface: str) -> Mapping[str, Any]:
    """Return the interface's own discipline with its counts."""
    found: list[dict[str, Any]] = json.loads(_tc("-s", "-j", "qdisc", "show", "dev", interface, "root"))
    return found[0] if found else {}


def _tc(*words: str) -> str:
    said, problem = _run("tc", *words)
    if problem:
        raise PreconditionError(f"tc {' '.join(words)}: {problem}; expected it to succeed")
    return said


def _run(*words: str) -> tuple[str, str]:
    """Run a command; return what it said, and its error, "" if it succeeded."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, start_new_session=True)
    if done.returncode == 0:
        return done.stdout, ""
    return done.stdout, (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[0]
