"""Two dumps of the same seeds are equal; a difference is reported with its seed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.behaviour import differences, dump, main
from tests.kept import exhaustive


@pytest.mark.slow
@exhaustive
def test_same_commit_gives_the_same_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        dump(tmp_path / name, 4, "hw")
    assert (4, []) == differences(tmp_path / "old", tmp_path / "new")
    assert 0 == main(["compare", str(tmp_path / "old"), str(tmp_path / "new")])
    assert "4 seeds compared, 0 differ" in capsys.readouterr().out


def test_seed_that_differs_is_named_with_what_was_and_what_is(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        dump(tmp_path / name, 2, "kip380")
    path = tmp_path / "new" / "kip380.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1]["acked"] += 1
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    compared, found = differences(tmp_path / "old", tmp_path / "new")
    assert (2, 1) == (compared, len(found))
    assert "kip380, seed 1: {'acked':" in found[0]
    assert 1 == main(["compare", str(tmp_path / "old"), str(tmp_path / "new")])


def test_nothing_compared_is_no_agreement(tmp_path: Path) -> None:
    assert 1 == main(["compare", str(tmp_path), str(tmp_path)])
