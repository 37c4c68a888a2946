"""
Make the tables of a history while it is written: `python -m harness.tables.follow HISTORY CONTROL`.

CONTROL is the descriptor of a pipe from the process that writes the history. Its one line says how many bytes the
history has at its end. The pipe stays open until the tables are there: if it ends before, that process has been
killed or has given up, and this one removes what it made and ends.

It runs at low priority, and needs less time for an op than whoever records it (benchmarks/history.py).
"""

from __future__ import annotations

import gc
import os
import select
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness.tables.manifest import TablesError, partial_folder
from harness.tables.writer import PIECE_BYTES, TableMaker, put_in_place

# How long it waits for more when it has read everything.
LOOK_S: Final = 0.25
# Where the run needs every core, this one gets a tenth of a core, and the run loses no more than that.
NICENESS: Final = 10


class _GivenUpError(Exception):
    """The process that wrote the history has ended, or wants no tables."""


def follow(history: Path, control: int) -> None:
    """
    Make the tables of a history that grows; whatever is raised, nothing half is left.

    Raises:
        OSError: the folder cannot be written.
        TablesError: the history has fewer bytes than the pipe said.
    """
    partial = partial_folder(history)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with history.open("rb", buffering=0) as file, TableMaker(partial, history) as maker:
            size: int | None = None
            while size is None or maker.size < size:
                piece = file.read(PIECE_BYTES if size is None else min(PIECE_BYTES, size - maker.size))
                maker.add(piece)
                if size is not None and not piece:
                    raise TablesError(f"{history}: {maker.size} bytes; expected the {size} that were written")
                said = _said(control, 0 if len(piece) == PIECE_BYTES or size is not None else LOOK_S)
                size = said if size is None else size
            maker.finish()
        _said(control, 0)
        put_in_place(history)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _said(control: int, seconds: float) -> int | None:
    """Return the number that is in the pipe, None if there is none within the time."""
    if not select.select([control], [], [], seconds)[0]:
        return None
    line = os.read(control, 100)
    if not line.endswith(b"\n"):
        raise _GivenUpError
    return int(line)


def main(arguments: Sequence[str]) -> int:
    """Follow a history to its end; return 0 if its tables are there."""
    os.nice(NICENESS)
    # Rows have no cycles, and are many: looking for cycles among them takes a fifth of the time.
    gc.disable()
    try:
        follow(Path(arguments[0]), int(arguments[1]))
    except _GivenUpError:
        return 1
    except (OSError, TablesError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
