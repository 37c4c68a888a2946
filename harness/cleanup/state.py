"""Find the per-user folders that outlive a run: ledgers, port claims, disk templates."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from harness.model import UsageError


def state_dir(name: str) -> Path:
    """
    Return the folder of this name in the user's state; create it if it is missing, readable by this user alone.

    The first that can be written: $XDG_STATE_HOME/fencepost/NAME, ~/.local/state/fencepost/NAME, or
    TMP/fencepost-UID/NAME (for a user without a writable home, such as `nobody`).

    Raises:
        UsageError: None of them can be created, or they belong to another user.
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
    """Return the folders to try, best first."""
    bases = []
    if os.environ.get("XDG_STATE_HOME"):
        bases.append(Path(os.environ["XDG_STATE_HOME"]) / "fencepost")
    home = os.path.expanduser("~")
    if home != "~":
        bases.append(Path(home) / ".local" / "state" / "fencepost")
    bases.append(Path(tempfile.gettempdir()) / f"fencepost-{os.geteuid()}")
    return bases
