"""
The console of every command: a table on a terminal fits it; in a pipe, a file or a CI log it has one line a row.

COLUMNS, where the user sets it, decides in both cases.
"""

from __future__ import annotations

import os
from typing import Any, Final

from rich.console import Console

# Of what is no terminal: wider than any table. A table takes only what it needs of it.
COLUMNS_UNBOUNDED: Final = 100_000


def console(*, stderr: bool = False, **options: Any) -> Console:
    """Return a console of standard output, or of standard error, with rich's options."""
    made = Console(stderr=stderr, **options)
    # Not rich's own answer, which FORCE_COLOR changes; and its width would be that of another of the three files.
    if not made.file.isatty() and not os.environ.get("COLUMNS", "").isdigit():
        made.width = COLUMNS_UNBOUNDED
    return made


def is_unbounded(console: Console) -> bool:
    """Return whether a row of a table must be one line."""
    return console.width >= COLUMNS_UNBOUNDED
