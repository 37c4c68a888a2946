"""Find the folders of stored runs, and of suites with a table, below a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from harness.run.store import Run, SuiteDir
from harness.tables.manifest import MANIFEST

# Below a suite's folder: what the services that its runs share have on this machine.
SERVICES: Final = "services"


def is_run(folder: Path) -> bool:
    """Return True if a folder has a history, if only by name, or tables."""
    run = Run(path=folder)
    return os.path.lexists(run.history) or os.path.lexists(run.tables / MANIFEST)


def stored_folders(
    top: Path,
    note: Callable[[OSError], None] | None = None,
    leave_out: Callable[[Path], bool] = lambda _: False,
) -> Iterator[tuple[Path, bool]]:
    """
    Yield the folder of each run with True, and of each suite that has a table with False, in the order of names.

    No link is followed, and nothing below a run is looked at.

    Args:
        top: where to look; it may be one of them.
        note: called with the error of a folder that cannot be listed.
        leave_out: folders of which nothing is wanted.
    """
    for text, names, files in os.walk(top, onerror=note):
        path = Path(text)
        names.sort()
        if leave_out(path):
            names.clear()
        elif is_run(path):
            names.clear()
            yield path, True
        elif SuiteDir(path=path).suite.name in (*files, *names):
            yield path, False
