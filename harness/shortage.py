"""Which limit of the machine an error has met, and what to do: memory, the disk, a file's size, open files."""

from __future__ import annotations

import errno
import resource
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

_CGROUP: Final = Path("/sys/fs/cgroup/memory.max")
_KIB: Final = 1024


def shortage_of(error: BaseException) -> str:
    """Return the limit that an error has met, and what to do; "" for an error of another kind."""
    if isinstance(error, MemoryError):
        return memory()
    if isinstance(error, OSError) and error.errno is not None and error.errno in _OF_ERRNO:
        return _OF_ERRNO[error.errno]()
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return _processes()
    return ""


def memory() -> str:
    """Return what bounds this process's memory, and what to do."""
    found = [f"{name} is {text}" for name, kind in _OF_MEMORY.items() if (text := _kib(kind))]
    try:
        bound = _CGROUP.read_text("ascii").strip()
    except OSError:
        bound = "max"
    if bound != "max":
        found.append(f"the control group's memory.max is {bound} bytes")
    limits = ", ".join(found) or "all that the machine has"
    return f"out of memory: {limits}; expected more, or fewer processes at a time (--jobs)"


def _disk() -> str:
    return "the disk is full; make room, or name a folder on another disk (--results, TMPDIR)"


def _quota() -> str:
    return "the disk quota is used up; make room, or name a folder on another disk (--results, TMPDIR)"


def _file_size() -> str:
    bound = _kib(resource.RLIMIT_FSIZE)
    return f"no file may be larger{f' than {bound} (ulimit -f)' if bound else ''}; raise the limit"


def _open_files() -> str:
    return f"too many open files: ulimit -n is {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}; raise it"


def _processes() -> str:
    return (
        f"no further thread or process: ulimit -u is {_plain(resource.RLIMIT_NPROC)}; raise it, or take fewer "
        "processes at a time (--jobs)"
    )


def _kib(kind: int) -> str:
    """Return a limit in KiB, "" for none."""
    bound = resource.getrlimit(kind)[0]
    return "" if bound == resource.RLIM_INFINITY else f"{bound // _KIB} KiB"


def _plain(kind: int) -> str:
    bound = resource.getrlimit(kind)[0]
    return "unlimited" if bound == resource.RLIM_INFINITY else str(bound)


_OF_MEMORY: Final[Mapping[str, int]] = {
    "ulimit -v": resource.RLIMIT_AS,
    "ulimit -d": resource.RLIMIT_DATA,
}
_OF_ERRNO: Final[Mapping[int, Callable[[], str]]] = {
    errno.ENOMEM: memory,
    errno.ENOSPC: _disk,
    errno.EDQUOT: _quota,
    errno.EFBIG: _file_size,
    errno.EMFILE: _open_files,
}
