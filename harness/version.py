"""Which Fencepost this is: its version, and the commit of its checkout if it is one; for reports and histories."""

from __future__ import annotations

import importlib.metadata
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Final

# The checkout, or the folder into which the package is installed.
ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = "fencepost"
NO_COMMIT: Final = "unknown"


@cache
def version() -> str:
    """Return the version of pyproject.toml: of the checkout whose code runs, else of the installed package."""
    if in_checkout():
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return str(project["version"])
    return importlib.metadata.version(PACKAGE)


def in_checkout() -> bool:
    """Return whether this code is that of a checkout, with its Makefile, and not of an installed package."""
    return (ROOT / "pyproject.toml").is_file() and (ROOT / "Makefile").is_file()


def commit() -> str:
    """
    Return the commit that is checked out, with + if files differ from it; NO_COMMIT without git.

    An installed package has none, though its environment may stand in a checkout of something else.
    """
    if not in_checkout():
        return NO_COMMIT
    try:
        found = subprocess.run(
            ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+"],
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return NO_COMMIT
    return found.stdout.strip() or NO_COMMIT


def named(version: str, commit: str) -> str:
    """Return the words for a version and a commit, either of which an older run may lack."""
    words = [f"{PACKAGE} {version}" if version else "", "" if commit == NO_COMMIT else f"commit {commit}"]
    return ", ".join(filter(None, words)) or f"commit {commit}"


def build() -> str:
    """Return the words for what runs now, as `fencepost 0.1.0, commit 8cf5875`."""
    return named(version(), commit())
