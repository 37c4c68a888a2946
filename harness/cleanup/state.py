"""Give the per-user folders that outlive a run: ledgers, port claims, templates."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from harness.model import UsageError


def state_dir(name: str) -> Path:
    """
    Give the folder of that name in this user's state, made when it is not there.

    Shapes:  $XDG_STATE_HOME/fencepost/NAME, else ~/.local/state/fencepost/NAME, else (no home that can be
             written, as for `nobody`) TMP/fencepost-UID/NAME. Nobody else may read it.
    Raises:  UsageError when none of them can be made, or when the one in TMP belongs to somebody else.
    """
    tried: list[str] = []
    for base in _bases():
        folder = base / name
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            tried.append(f"{folder}: {error.strerror}")
            continue
        if folder.stat().st_uid == os.geteuid() and os.access(folder, os.W_OK):
            return folder
        tried.append(f"{folder}: belongs to uid {folder.stat().st_uid}, we are {os.geteuid()}")
    raise UsageError(
        f"state folder {name!r}: none can be written ({'; '.join(tried)}); expected one; set XDG_STATE_HOME"
    )


def _bases() -> list[Path]:
    """Give the places to try, best first."""
    bases = []
    if os.environ.get("XDG_STATE_HOME"):
        bases.append(Path(os.environ["XDG_STATE_HOME"]) / "fencepost")
    home = os.path.expanduser("~")
    if home != "~":
        bases.append(Path(home) / ".local" / "state" / "fencepost")
    bases.append(Path(tempfile.gettempdir()) / f"fencepost-{os.geteuid()}")
    return bases
