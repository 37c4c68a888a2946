"""Files that tests of logs leave open: a log has no end of its own but its process's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from targets.broker.log.open_files import OpenFiles


@pytest.fixture(autouse=True)
def files_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close what a test has opened: a thousand descriptors later select() would refuse to serve another test."""
    made: list[OpenFiles] = []
    init = OpenFiles.__init__

    def noted(self: OpenFiles, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        made.append(self)

    monkeypatch.setattr(OpenFiles, "__init__", noted)
    yield
    for files in made:
        files.close_all()
