"""Lines that are on disk stay readable: a torn last line is cut off, and the next one is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.durable_lines import append_line, read_lines


@pytest.mark.parametrize("torn", ["", '{"b"', "x" * 9000])
def test_torn_last_line_is_dropped_and_the_next_is_whole(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "lines"
    assert [] == read_lines(path)
    append_line(path, {"a": "é"})
    with path.open("a") as file:
        file.write(torn)
    assert [{"a": "é"}] == read_lines(path)
    append_line(path, {"b": 2})
    assert [{"a": "é"}, {"b": 2}] == read_lines(path)


def test_line_that_is_no_json_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text('{"a": 1}\nno\n{"b": 2}\n')
    with pytest.raises(ValueError, match="Expecting value"):
        read_lines(tmp_path / "lines")
