"""Find the per-user folders that outlive a run: ledgers, port claims, disk templates."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from harness.model import UsageError

_OURS_ALONE: Final = 0o700
_OTHERS_WRITE: Final = 0o022


def state_dir(name: str) -> Path:
    """
    Return the folder of this name in the user's state; create it if it is missing, readable by this user alone.

    The first that can be written: $XDG_STATE_HOME/fencepost/NAME, ~/.local/state/fencepost/NAME, or
    TMP/fencepost-UID/NAME (for a user without a writable home, such as `nobody`).

    Anybody can make a folder in TMP before us, and a ledger in it would tell us what to delete. Such a folder is
    refused. No other name is tried instead: the next run must find the ledgers of this one.

    Raises:
        UsageError: None of them can be created, or they belong to another user.
    """
    tried: list[str] = []
    for base in _bases():
        folder = base / name
        try:
            folder.mkdir(mode=_OURS_ALONE, parents=True, exist_ok=True)
        except OSError as error:
            tried.append(f"{folder}: {error.strerror}")
            continue
        if folder.stat().st_uid == os.geteuid() and os.access(folder, os.W_OK):
            return folder
        tried.append(f"{folder}: belongs to uid {folder.stat().st_uid}, we are {os.geteuid()}")
    shared = Path(tempfile.gettempdir()) / f"fencepost-{os.geteuid()}"
    try:
        _make_private(shared)
        _make_private(shared / name)
    except OSError as error:
        tried.append(f"{shared}: {error.strerror}")
    except UsageError as error:
        tried.append(str(error))
    else:
        return shared / name
    raise UsageError(
        f"state folder {name!r}: none can be used ({'; '.join(tried)}); expected one of ours alone; remove what "
        "is there, or set XDG_STATE_HOME"
    )


def _bases() -> list[Path]:
    """Return the folders to try that only this user or root can prepare, best first."""
    bases = []
    if os.environ.get("XDG_STATE_HOME"):
        bases.append(Path(os.environ["XDG_STATE_HOME"]) / "fencepost")
    home = os.path.expanduser("~")
    if home != "~":
        bases.append(Path(home) / ".local" / "state" / "fencepost")
    return bases


def _make_private(folder: Path) -> None:
    """
    Make a folder of ours alone, or require that it is one; never follow a link.

    Raises:
        UsageError: It is no folder, belongs to another user, or other users may have written to it.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=_OURS_ALONE)
    found = folder.lstat()
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode):
        raise UsageError(f"{folder}: no folder, but {_kind(found.st_mode)}")
    if found.st_uid != os.geteuid():
        raise UsageError(f"{folder}: belongs to uid {found.st_uid}, we are {os.geteuid()}")
    if mode & _OTHERS_WRITE:
        raise UsageError(f"{folder}: others may write to it (mode {mode:04o})")
    if mode != _OURS_ALONE:  # made by an earlier version
        folder.chmod(_OURS_ALONE)


def _kind(mode: int) -> str:
    return "a link" if stat.S_ISLNK(mode) else "a file"
