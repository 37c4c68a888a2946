"""
Ends calls of code that the harness has not seen, such as a target's, when they last too long.

An exception is raised in the thread of the call, at its next step in Python: so a loop ends. A call into C that
never returns, such as a read that waits, cannot be ended so.

    Watch   watches calls that must be made in one thread, very many of them
    apart   makes a call in another thread, which is left behind if it cannot be ended
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")

# More steps of a thread than it takes until an exception that was set from outside is raised in it.
_STEPS: Final = 1000
# How often it is looked, within the time that a call may last, whether it is still the same call.
_LOOKS: Final = 4
# How long a thread waits for another job, in seconds.
_IDLE_S: Final = 0.2


class LateError(BaseException):
    """A call lasted too long. No `except Exception` of what was called hides it."""


class _CalmError(BaseException):
    """What a thread raises in itself."""


def _raise_in(thread_id: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(error))


def _calm() -> None:
    """
    Take back that all threads are to look for what was raised in them.

    Up to Python 3.12 one flag says so to all of them, and a thread that waits in C may never take what is its own:
    meanwhile all others look at every step, and on 3.11 a call under sys.setprofile never begins. Whoever takes
    something lowers the flag; a thread that comes back from C, or has waited to go on, raises it for its own.
    """
    try:
        _raise_in(threading.get_ident(), _CalmError)
        for _ in range(_STEPS):
            pass
    except _CalmError:
        pass


class Calls:
    """The calls of one thread, one at a time; another thread may interrupt the one that is under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls = 0
        self._busy = False
        self._fired = False
        self._thread_id = 0

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self._busy

    def bind(self, thread_id: int) -> None:
        """Take the thread with this id for the one that calls."""
        self._thread_id = thread_id

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call the function; raise what it raises, and LateError if it was interrupted."""
        try:
            self._calls += 1
            self._busy = True
            try:
                return function(*args)
            except LateError:
                self._fired = False
                raise
            finally:
                self._end()
        finally:
            self._busy = self._fired = False

    def interrupt(self, number: int = 0) -> None:
        """Raise LateError in the call that is under way, if it has this number; 0: whichever it is."""
        with self._lock:
            if self._busy and number in (0, self._calls):
                self._fired = True
                _raise_in(self._thread_id, LateError)
                _calm()

    def _end(self) -> None:
        with self._lock:  # after it nothing is set any more
            self._busy = False
        if self._fired:
            for _ in range(_STEPS):
                pass  # what was set is raised here, unless what was called has caught it
            raise LateError


class Watch(Calls):
    """
    Watches the calls of one thread.

    Args:
        within_s: how long a call may last, in seconds; it is interrupted after twice that at the latest.
    """

    def __init__(self, within_s: float) -> None:
        super().__init__()
        self._within_s = within_s
        self._over = threading.Event()
        self._watching: threading.Thread | None = None

    def start(self, thread_id: int) -> None:
        """Watch the thread with this id from now on."""
        self.bind(thread_id)
        self._watching = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._watching.start()

    def close(self) -> None:
        """Watch no more; safe to call twice."""
        self._over.set()
        if self._watching is not None:
            self._watching.join()

    def _watch(self) -> None:
        seen = -1
        while not self._over.wait(self._within_s):
            if self._calls == seen:
                self.interrupt(seen)
            seen = self._calls


@dataclass(slots=True)
class Steps:
    """
    Where work is that calls such code again and again: whoever calls it counts, before and after.

    Attributes:
        began: how many calls began.
        ended: the same number once the last of them has ended.
        what: what the last of them is to bring.
    """

    began: int = 0
    ended: int = 0
    what: str = ""

    @property
    def under_way(self) -> int:
        """The number of the call that is under way; 0 for none."""
        return self.began if self.began != self.ended else 0


def apart(work: Callable[[], T], within_s: float, steps: Steps | None = None) -> T:
    """
    Do work in another thread, and wait for it.

    Args:
        within_s: how long a call may last, in seconds; a little more is no harm.
        steps: where the work is; None: all of it is one call.

    Raises:
        LateError: a call lasted too long, which was to bring what the text says. Its thread is interrupted, and
            left behind if that does not end it.
        BaseException: what the work raises.
    """
    at = Steps(began=1) if steps is None else steps
    outcome: SimpleQueue[tuple[list[T], BaseException | None]] = SimpleQueue()

    def do(calls: Calls) -> None:
        try:
            outcome.put(([calls.call(work)], None))
        except BaseException as error:
            outcome.put(([], error))

    looks, seen, worker = 0, at.under_way, _worker()
    worker.jobs.put(do)
    try:
        while True:
            with suppress(Empty):
                found, error = outcome.get(timeout=within_s / _LOOKS)
                break
            now = at.under_way
            looks = looks + 1 if now and now == seen else 0
            seen = now
            if looks == _LOOKS:
                late = LateError(at.what)  # before the thread goes on with its way out
                worker.calls.interrupt()
                with suppress(Empty):
                    outcome.get(timeout=within_s / _LOOKS)
                raise late
    except BaseException:
        worker.jobs.put(None)
        raise
    _FREE.append(worker)
    if error is not None:
        raise error
    return found[0]


# --- the threads of `apart` ------------------------------------------------------------------------------------
class _Worker:
    """
    A thread that does one job after another: to start one for each look at a log costs more than many a look.

    It ends when no job has come for a while.
    """

    def __init__(self) -> None:
        self.calls = Calls()
        self.jobs: SimpleQueue[Callable[[Calls], None] | None] = SimpleQueue()
        self.thread = threading.Thread(target=self._serve, name="apart", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        self.calls.bind(threading.get_ident())
        while self._serves_one():
            pass

    def _serves_one(self) -> bool:
        """Do the next job; return False if there is none to come."""
        try:
            job = self.jobs.get(timeout=_IDLE_S)
        except Empty:
            try:
                _FREE.remove(self)
            except ValueError:  # it was just taken, or is not yet given back
                return True
            return False
        if job is None:
            return False
        job(self.calls)
        return True


# Those without a job. To append, pop and remove are each one step for all threads.
_FREE: Final[list[_Worker]] = []


def _worker() -> _Worker:
    """Return a thread without a job: one that is there, but not one that was left in the parent by a fork."""
    while True:
        try:
            found = _FREE.pop()
        except IndexError:
            return _Worker()
        if found.thread.is_alive():
            return found
