"""
The failure of a run that could not be played or taken down: one line for the table, and a file with the traceback.

Such a run is unknown, and the command that plays it goes on with the others: one full disk, one busy mount or one
bug must not lose the verdicts of all other runs.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Final

from harness.model import FencepostError
from harness.run.store import Run
from harness.shortage import shortage_of

REASON_CHARACTERS_MAX: Final = 600


def reason_of(error: BaseException) -> str:
    """Return an error as one line: first what happened first, such as a failed step before a failed clean-up."""
    texts = dict.fromkeys(_text(each) for each in reversed(list(_chain(error))))
    line = "; then ".join(texts)
    return line if len(line) <= REASON_CHARACTERS_MAX else f"{line[:REASON_CHARACTERS_MAX]}…"


def store_traceback(run: Run, error: BaseException) -> str:
    """Write the traceback to the run's folder; return where it is, or why it could not be written."""
    try:
        run.path.mkdir(parents=True, exist_ok=True)
        run.traceback.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError as full:
        return f"its traceback could not be written: {full.strerror}"
    return f"traceback in {run.traceback.name}"


def failure_of(run: Run, error: BaseException) -> str:
    """Store the error's traceback; return the failure as one line."""
    return f"{reason_of(error)} ({store_traceback(run, error)})"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, and those during whose handling it was raised; a cause is told by what it caused."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = None if found.__suppress_context__ or found.__cause__ else found.__context__


def _text(error: BaseException) -> str:
    """Return what an error says, with its class if it is not one of ours."""
    said = " | ".join(filter(None, map(str.strip, str(error).splitlines())))
    if not isinstance(error, FencepostError):
        said = f"{type(error).__name__}: {said}" if said else type(error).__name__
    said = "; ".join(filter(None, (said, shortage_of(error))))
    return "; then ".join((said, *getattr(error, "__notes__", ())))
