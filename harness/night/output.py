"""Write what came of a night: night.html and night.md for people, night.json and junit.xml for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from harness.night.junit import junit_of
from harness.night.markdown import markdown_of
from harness.night.outcome import Outcome
from harness.night.page import write_html
from harness.night.tables import JSON, earlier_nights
from harness.night.view import view_of

HTML: Final = "night.html"
MARKDOWN: Final = "night.md"
JUNIT: Final = "junit.xml"


def write_night(outcome: Outcome, nights: Path, folder: Path) -> None:
    """
    Write all files of a night, each as a whole; the page is last, so that it is there only with the others.

    Raises:
        OSError: one of them could not be written.
    """
    earlier, unread = earlier_nights(nights, outcome.name)
    view = view_of(outcome, earlier, unread, str(folder))
    _replace(folder / JSON, json.dumps(outcome.to_dict(), indent=1) + "\n")
    _replace(folder / JUNIT, junit_of(outcome))
    _replace(folder / MARKDOWN, markdown_of(view))
    write_html(view, folder / HTML)


def _replace(path: Path, text: str) -> None:
    partial = path.with_suffix(".partial")
    try:
        partial.write_text(text, encoding="utf-8", errors="replace")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
