"""A file of JSON objects, one a line, each on disk before the work goes on; what a kill has torn is none."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> list[Any]:
    """
    Return what the whole lines of a file say, [] if there is no file; a torn last line is cut off the file.

    Raises:
        OSError: the file cannot be read, or not be cut.
        ValueError: a whole line is no JSON.
    """
    if not path.exists():
        return []
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        os.truncate(path, len(whole))
    return [json.loads(line) for line in whole.decode("utf-8").splitlines()]


def append_line(path: Path, line: Mapping[str, Any]) -> None:
    """
    Append a line; it is on disk when this returns.

    Raises:
        OSError: the file cannot be written; the line may be torn.
    """
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, separators=(",", ":")) + "\n")
        file.flush()
        os.fsync(file.fileno())
