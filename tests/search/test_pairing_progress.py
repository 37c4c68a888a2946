"""An interrupted comparison resumes where it stopped, even if its last line is torn."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model import UsageError
from harness.search.pairing_progress import PairingProgress, PlayedSeed

ABOUT = {"theirs": "kafka:1", "ours": "broker:hw", "host": "local"}


def played(side: str, seed: int) -> PlayedSeed:
    return PlayedSeed(side=side, seed=seed, run=f"play-1/seed-{seed}-{side}", commit="abc", seconds=1.5)


def test_seeds_that_were_played_are_known_after_a_new_start(tmp_path: Path) -> None:
    PairingProgress(tmp_path / "folder", ABOUT).add(played("ours", 3))
    again = PairingProgress(tmp_path / "folder", ABOUT)
    assert (True, False, False) == (again.has("ours", 3), again.has("theirs", 3), again.has("ours", 4))
    assert played("ours", 3) == again.played["ours", 3]
    assert tmp_path / "folder/play-1/seed-3-ours" == again.run_of(again.played["ours", 3]).path


def test_line_that_a_kill_has_torn_is_dropped_and_the_next_is_whole(tmp_path: Path) -> None:
    PairingProgress(tmp_path, ABOUT).add(played("ours", 0))
    with (tmp_path / "rounds.jsonl").open("a") as file:
        file.write('{"side":"theirs","se')
    torn = PairingProgress(tmp_path, ABOUT)
    assert {("ours", 0)} == set(torn.played)
    torn.add(played("theirs", 0))
    assert {("ours", 0), ("theirs", 0)} == set(PairingProgress(tmp_path, ABOUT).played)


def test_comparison_of_something_else_does_not_go_on_here(tmp_path: Path) -> None:
    PairingProgress(tmp_path, ABOUT)
    with pytest.raises(UsageError, match="expected the same"):
        PairingProgress(tmp_path, {**ABOUT, "ours": "broker:kip380"})


def test_folder_that_cannot_be_written_is_an_error_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"expected a folder that can be written; name another \(--results\)"):
        PairingProgress(tmp_path / "file" / "folder", ABOUT)


def test_every_start_has_a_folder_of_its_own(tmp_path: Path) -> None:
    progress = PairingProgress(tmp_path, ABOUT)
    assert ["play-1", "play-2"] == [progress.begin_suite().path.name for _ in range(2)]
