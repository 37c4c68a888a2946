"""
Sets the clocks of one process, by libfaketime, which is preloaded and reads a file before every look at a clock.

    FAKETIME_DONT_FAKE_MONOTONIC=1    the wall clock alone; without it the monotonic clock too, which then shows
                                      the wall clock's time. The library reads it once, so that it is decided as a
                                      process starts, for its whole life.
    FAKETIME_FORCE_MONOTONIC_FIX=0    beside it, or every timed wait of a Java ends at once
    FAKETIME_NO_CACHE=1               the file is read each time: a change is seen by the next look at a clock
    FAKETIME_FMT=%s                   times are seconds since 1970, in no time zone
    NO_FAKE_STAT=1                    times of files stay as they are
    LC_ALL=C.UTF-8                    a fraction follows a dot, as it is written here

The file has one line: `+S` (ahead by S seconds), `S` (stands still at S), `@S xR` (S from now on, at rate R),
`+S xR` (a process that starts has been at rate R since its start). A rate stays until another is written.
Source:  libfaketime 0.9.10, README and src/libfaketime.c (fake_clock_gettime, parse_ft_string).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from harness.beneath import Folder
from harness.clocks import NS_PER_S, Reading, Setting, Which
from harness.model import PreconditionError

# Names a library in another place.
VARIABLE: Final = "FENCEPOST_FAKETIME"
NAME: Final = "libfaketimeMT.so.1"
INSTALL: Final = f"expected {NAME}: `apt-get install libfaketime`, or its path in ${VARIABLE}"
# Debian and Ubuntu; Fedora; a build of one's own.
_PLACES: Final = ("/usr/lib/*/faketime", "/usr/lib*/faketime", "/usr/lib*", "/usr/local/lib*/faketime")
# The file in a node's folder of launch files, and the one that replaces it.
CONTROL: Final = "clock"
_NEXT: Final = "clock.next"
# What a process must see that is told to stand still there.
_STILL_S: Final = 1_000_000_000
# Prints both clocks, with nothing but what a minimal image has.
LOOK: Final = ("-S", "-c", "import time; print(int(time.time()), int(time.monotonic()))")
_LOOK_S_MAX: Final = 20.0


def find() -> Path | None:
    """Return the library of this machine, None if there is none."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named) if Path(named).is_file() else None
    for place in _PLACES:
        for found in sorted(Path("/").glob(f"{place[1:]}/{NAME}")):
            return found.resolve()
    return None


@cache
def lacks() -> str:
    """Return why processes of this machine cannot have clocks of their own, "" if they can; tried once."""
    library = find()
    if library is None:
        return f"no libfaketime on this machine; {INSTALL}"
    with tempfile.TemporaryDirectory(prefix="fencepost-clock-") as folder:
        control = Path(folder) / CONTROL
        control.write_text(f"{_STILL_S}\n", encoding="utf-8")
        for which in Which:
            env = {**os.environ, **environment(str(library), str(control), which)}
            try:
                done = subprocess.run(
                    [sys.executable, *LOOK],
                    env=env,
                    capture_output=True,
                    text=True,
                    timeout=_LOOK_S_MAX,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                return f"{library}: {error}; {INSTALL}"
            if reason := why_not(which, done.stdout, done.stderr):
                return f"{library}: {reason}; {INSTALL}"
    return ""


def why_not(which: Which, printed: str, error: str) -> str:
    """Return why what a process printed by LOOK, standing still at _STILL_S, shows no clock of its own; or ""."""
    try:
        wall, monotonic = map(int, printed.split())
    except ValueError:
        return f"a process that preloads it said {(error or printed).strip()[-200:]!r}"
    wanted = (_STILL_S, which is Which.BOTH)
    seen = (wall, monotonic == _STILL_S)
    return "" if seen == wanted else f"a process that preloads it saw {wall} and {monotonic}, for {which}"


def still_file() -> str:
    """Return the text of a control file for a probe of `why_not`."""
    return f"{_STILL_S}\n"


def environment(library: str, control: str, which: Which) -> dict[str, str]:
    """Return the variables of a process whose clocks the file at `control` sets; both paths are the process's."""
    found = {
        "LD_PRELOAD": library,
        "FAKETIME_TIMESTAMP_FILE": control,
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_FMT": "%s",
        "NO_FAKE_STAT": "1",
        "LC_ALL": "C.UTF-8",
    }
    if which is Which.WALL:
        found |= {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_FORCE_MONOTONIC_FIX": "0"}
    return found


@dataclass(slots=True)
class NodeClock:
    """
    The clocks of one node over the lives of its process, and the file that sets them.

    Attributes:
        conf: the folder of the file.
        which: the clocks of the process that runs now.
    """

    conf: Path
    which: Which | None = None
    _setting: Setting | None = None
    # What both clocks showed as they were set, and when that was.
    _shown_ns: int = 0
    _since_ns: int = 0

    def begin(self, which: Which) -> None:
        """Write the file for a process that is about to start: the clocks go on as they were set."""
        if self.which is not which:
            self._setting = None
        self.which = which
        self._write(self._at_start())

    def set(self, setting: Setting, seen: Reading) -> None:
        """
        Set the clocks of the process that runs.

        Args:
            seen: what it read of them last: from there both clocks go on.

        Raises:
            PreconditionError: the process was started with other clocks.
        """
        if self.which is not setting.which:
            had = "the machine's own clocks" if self.which is None else f"clocks for {self.which}"
            raise PreconditionError(f"set the clock: it was started with {had}; expected them for {setting.which}")
        now_ns = time.time_ns()
        if setting.which is Which.WALL:
            self._setting = setting
            self._shown_ns = now_ns + _ns(setting.ahead_s)
            self._write(_seconds(self._shown_ns) if setting.frozen else _signed(_ns(setting.ahead_s)))
            return
        rate = 1.0 if self._setting is None else self._setting.rate
        passed_ns = time.monotonic_ns() - seen.asked.monotonic_ns
        # From the reading's earlier end: rather a little forward than back, which a monotonic clock never goes.
        self._shown_ns = seen.wall_ns + round(passed_ns * rate) + _ns(setting.ahead_s)
        self._since_ns, self._setting = time.monotonic_ns(), setting
        self._write(f"@{_seconds(self._shown_ns)} x{setting.rate:g}")

    def _at_start(self) -> str:
        setting = self._setting
        if setting is None:
            return "+0 x1" if self.which is Which.BOTH else "+0"
        if setting.which is Which.WALL:
            return _seconds(self._shown_ns) if setting.frozen else _signed(_ns(setting.ahead_s))
        shown_ns = self._shown_ns + round((time.monotonic_ns() - self._since_ns) * setting.rate)
        return f"{_signed(shown_ns - time.time_ns())} x{setting.rate:g}"

    def _write(self, line: str) -> None:
        """Replace the file in one step: a process that reads it meanwhile sees the old line or the new one."""
        self.conf.mkdir(parents=True, exist_ok=True)
        with Folder.no_link(self.conf) as folder:
            handle = folder.open(_NEXT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f"{line}\n")
            os.rename(_NEXT, CONTROL, src_dir_fd=folder.fileno(), dst_dir_fd=folder.fileno())


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)


def _seconds(ns: int) -> str:
    return f"{ns // NS_PER_S}.{ns % NS_PER_S:09d}"


def _signed(ns: int) -> str:
    return f"{'-' if ns < 0 else '+'}{_seconds(abs(ns))}"
