"""
Processes by identity: a pid alone may already belong to another process when a signal is sent.

An identity is (pid, start time, boot id). A signal goes through a pidfd that was opened before the identity was
compared, so that the signal reaches exactly the process that was compared.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness import limits

# The environment variable with a child's token; see bearers.
TOKEN_VARIABLE: Final = "FENCEPOST_TOKEN"
# States of /proc/PID/stat: a zombie or dead; stopped by a signal or a tracer.
_ENDED: Final = "ZX"
_STOPPED: Final = "Tt"
# What libfaketime makes for its process, and leaves when that is killed (src/libfaketime.c, ft_shm_create).
_SHARED: Final = ("/dev/shm/faketime_shm_{pid}", "/dev/shm/sem.faketime_sem_{pid}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """
    Identifies one process uniquely, also after its pid is reused or the machine has rebooted.

    Attributes:
        start: In clock ticks since boot; field 22 of /proc/PID/stat.
        boot: The kernel's boot id.
    """

    pid: int
    start: int
    boot: str


def boot_id() -> str:
    """Return the random id that the kernel generated at boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def identity_of(pid: int) -> Identity | None:
    """Return the identity of the process that has this pid now; None if there is none."""
    stat = _stat(pid)
    return None if stat is None else Identity(pid=pid, start=int(stat[19]), boot=boot_id())


def is_alive(identity: Identity) -> bool:
    """
    Return True if exactly this process exists and is no zombie; a stopped process is alive.

    A process whose first thread is a zombie is alive while another thread is not: it keeps its files and ports
    until the last thread has ended. A killed Java is in this state for some milliseconds.
    """
    stat = _stat(identity.pid)
    if stat is None or int(stat[19]) != identity.start or identity.boot != boot_id():
        return False
    return stat[0] not in _ENDED or any(state not in _ENDED for state in _thread_states(identity.pid))


def is_stopped(identity: Identity) -> bool:
    """Return True if every thread of the process is stopped; the kernel stops them one after another."""
    states = _thread_states(identity.pid)
    return bool(states) and is_alive(identity) and all(state in _STOPPED + _ENDED for state in states)


def send(identity: Identity, number: signal.Signals) -> bool:
    """Signal exactly this process; return False if it is gone, even if another process has its pid."""
    try:
        handle = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return False
    try:
        if not is_alive(identity):
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def ended_within(identity: Identity, seconds: float) -> bool:
    """Wait until the process has ended (a zombie has); return False if it outlives the time."""
    try:
        handle = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return True
    try:
        if not is_alive(identity):
            return True
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(handle)


def end(identity: Identity) -> bool:
    """SIGKILL exactly this process and wait until it has ended; return False if it does not in time."""
    send(identity, signal.SIGKILL)
    return ended_within(identity, limits.PROCESS_END_S_MAX)


def remove_shared(pid: int) -> None:
    """Remove what a preloaded libfaketime left in /dev/shm; do nothing while a process with that pid is alive."""
    found = identity_of(pid)
    if found is None or not is_alive(found):
        for name in _SHARED:
            with suppress(OSError):  # another user's, whose process had that pid too
                Path(name.format(pid=pid)).unlink(missing_ok=True)


def bearers(token: str, since: int, mark: Path | None = None) -> Iterator[Identity]:
    """
    Yield our processes that have this token in their environment, or the mark as standard input.

    This finds a child whose harness was killed between the fork and the record of its pid. Until exec has ended,
    /proc shows the environment of the parent or none, and on a busy machine that can take long; but the child has
    the mark before it closes the lock of the ledger. Only processes of our own user that started at `since` (clock
    ticks since boot) or later are examined.
    """
    wanted = f"{TOKEN_VARIABLE}={token}".encode()
    file = None if mark is None else _file(mark)
    for found in _ours(since):
        # First the mark: a process that no longer has it has the token by then.
        marked = file is not None and _file(Path(f"/proc/{found.pid}/fd/0")) == file
        if marked or wanted in _environment(found.pid):
            yield found


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait until the condition holds; return False if it does not within the time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(limits.CONDITION_POLL_S)  # noqa: TID251
    return True


def _ours(since: int) -> Iterator[Identity]:
    """Yield the other processes of our user that started at `since` or later."""
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            if os.stat(f"/proc/{name}").st_uid != os.geteuid():
                continue
        except OSError:
            continue
        found = identity_of(int(name))
        if found is not None and found.start >= since:
            yield found


def _environment(pid: int) -> list[bytes]:
    """Return the variables that a process was given by exec; [] if they cannot be read."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _file(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file, also through /proc/PID/fd; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _thread_states(pid: int) -> list[str]:
    """Return the states of all threads of a process that still exist."""
    try:
        threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []
    return [stat[0] for stat in (_stat(pid, thread) for thread in threads) if stat is not None]


def _stat(pid: int, thread: int | None = None) -> list[str] | None:
    """Return /proc/PID/stat from its third field on; the second, the name, may contain blanks and brackets."""
    path = f"/proc/{pid}/stat" if thread is None else f"/proc/{pid}/task/{thread}/stat"
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
