"""What passed is trimmed and goes first, what failed is whole and goes last, and nothing goes without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.night import trim
from harness.night.trim import Shelf
from harness.run.store import Run

KILO = 1024


def shelf(nights: Path, night: str = "2", bytes_max: int = 10**9) -> tuple[Shelf, list[str]]:
    gone: list[str] = []
    return Shelf(nights=nights, night=night, bytes_max=bytes_max, tell=lambda path, _size: gone.append(path)), gone


def played(shelf: Shelf, name: str, kilobytes: int = 100) -> Run:
    run = shelf.playing("u").create_run(name)
    for path in (run.history, run.schedule, run.anomalies, run.logs / "A.log"):
        path.write_bytes(b"x" * (kilobytes * KILO // 4))
    (run.path / "nodes").mkdir()
    return run


def keep(shelf: Shelf, name: str, *, finding: bool) -> str:
    place = shelf.place("u", name, finding=finding)
    assert shelf.keep(played(shelf, name), place)
    return place


def test_run_that_passed_keeps_what_judges_and_plays_it_again(tmp_path: Path) -> None:
    kept, _ = shelf(tmp_path)
    place = tmp_path / "2" / keep(kept, "a", finding=False)
    assert {"history.jsonl", "schedule.txt", "anomalies.json"} == {path.name for path in place.iterdir()}


def test_finding_is_kept_whole(tmp_path: Path) -> None:
    kept, _ = shelf(tmp_path)
    place = tmp_path / "2" / keep(kept, "a", finding=True)
    assert {"history.jsonl", "schedule.txt", "anomalies.json", "logs", "nodes"} == {
        path.name for path in place.iterdir()
    }


def test_oldest_that_passed_go_first_and_findings_of_earlier_nights_before_those_of_this_one(
    tmp_path: Path,
) -> None:
    earlier, _ = shelf(tmp_path, "1")
    for name, finding in (("a", False), ("b", True)):
        keep(earlier, name, finding=finding)
    now, gone = shelf(tmp_path, bytes_max=450 * KILO)
    keep(now, "c", finding=True)
    keep(now, "d", finding=True)
    assert [] == gone
    keep(now, "e", finding=False)
    assert ["1/passed/u/a"] == gone
    keep(now, "f", finding=True)
    keep(now, "g", finding=True)
    assert ["1/passed/u/a", "2/passed/u/e", "1/findings/u/b"] == gone
    keep(now, "h", finding=True)
    assert "2/findings/u/c" == gone[-1]
    assert trim._size(tmp_path) <= 450 * KILO


def test_room_is_made_of_runs_that_passed_alone(tmp_path: Path) -> None:
    kept, gone = shelf(tmp_path)
    keep(kept, "a", finding=True)
    keep(kept, "b", finding=False)
    assert kept.make_room()
    assert not kept.make_room()
    assert ["2/passed/u/b"] == gone


def test_run_in_which_a_filesystem_is_mounted_stays_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, _ = shelf(tmp_path)
    run = played(kept, "a")
    monkeypatch.setattr(
        "harness.night.trim.mounts.mounts_below", lambda path: [path] if "playing" in path.parts else []
    )
    assert not kept.keep(run, kept.place("u", "a", finding=False))
    kept.clear()
    assert run.path.is_dir()
    monkeypatch.setattr("harness.night.trim.mounts.mounts_below", lambda _: [])
    kept.clear()
    assert not run.path.parent.exists()


def test_run_that_was_kept_before_a_kill_is_kept_again_in_its_place(tmp_path: Path) -> None:
    kept, _ = shelf(tmp_path)
    keep(kept, "a", finding=True)
    keep(kept, "a", finding=True)
    assert ["a"] == [path.name for path in (tmp_path / "2" / "findings" / "u").iterdir()]
