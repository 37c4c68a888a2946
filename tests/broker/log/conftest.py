"""Files that tests of logs leave open: a log has no end of its own but its process's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from targets.broker.log.open_files import File, OpenFiles


@pytest.fixture(autouse=True)
def files_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close what a test has opened: a thousand descriptors later select() would refuse to serve another test."""
    opened: list[tuple[OpenFiles, File]] = []
    open_ = OpenFiles._opened

    def noted(self: OpenFiles, file: File, flags: int) -> int:
        opened.append((self, file))
        return open_(self, file, flags)

    monkeypatch.setattr(OpenFiles, "_opened", noted)
    yield
    for files, file in opened:
        files.close(file)
