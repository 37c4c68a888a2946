"""The page of the design names code that is there, and says of each part where it stands."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path("docs/design-v3.md")
CORE = Path("targets/broker/core")
STATES = ("done", "not yet", "left out", "partly")
_FILE = re.compile(r"`([\w/]+\.py)`")


def rows() -> list[list[str]]:
    """Return the cells of each row of its tables, without the heads."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[-1] != "state"]


def test_every_part_has_a_state_and_what_is_done_has_code() -> None:
    assert len(rows()) > 40
    for what, code, state in rows():
        assert state.startswith(STATES), what
        assert code or not state.startswith(("done", "partly")), what


def test_every_file_that_it_names_is_there() -> None:
    named = {name for _, *cells in rows() for cell in cells for name in _FILE.findall(cell)}
    assert "retention.py" in named
    assert [] == sorted(name for name in named if not (CORE / name).exists() and not Path(name).exists())
