"""The files of a log, their changes during a reading, and the lock on their directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.beneath import Folder
from harness.logs.files import is_disturbed
from targets.kafka_family.logs import files
from targets.kafka_family.logs.files import Listing
from tests.holders import another_has


def name(first: int, suffix: str = "") -> str:
    return f"{first:020d}.log{suffix}"


def list_log(directory: Path) -> Listing:
    with Folder.at(directory) as folder:
        return files.list_log(folder)


def is_locked(directory: Path) -> bool:
    with Folder.at(directory) as folder:
        return files.is_locked(folder)


def listed(directory: Path, **sizes: int) -> Listing:
    """Give a directory segments of these sizes, and list it; existing files are truncated or extended in place."""
    wanted = {name(int(first[1:])): size for first, size in sizes.items()}
    for path in directory.iterdir():
        if path.name not in wanted:
            path.unlink()
    for each, size in wanted.items():
        with (directory / each).open("ab") as file:
            file.truncate(size)
    return list_log(directory)


def test_list_log_parts_segments_from_what_a_cleaning_left(tmp_path: Path) -> None:
    for each in (name(9), name(0), name(3, ".swap"), name(6, ".deleted"), "0.log", name(0) + ".txt"):
        (tmp_path / each).touch()
    found = list_log(tmp_path)
    assert ([0, 9], [3], None) == (list(found.segments), list(found.swaps), found.cleaned_from)
    assert {name(0), name(9), name(3, ".swap")} == set(found.seen)


def test_list_log_leaves_out_a_swap_when_a_split_was_not_finished(
    tmp_path: Path,
) -> None:
    """Source: KAFKA-6264."""
    for each in (name(0), name(0, ".swap"), name(5, ".swap"), name(5, ".cleaned"), name(8, ".cleaned")):
        (tmp_path / each).touch()
    found = list_log(tmp_path)
    assert ([0], 5) == (list(found.swaps), found.cleaned_from)


def test_log_is_not_disturbed_when_it_grows_rolls_or_loses_its_beginning(tmp_path: Path) -> None:
    before = listed(tmp_path, s0=5, s3=5)
    for after in (listed(tmp_path, s0=5, s3=9), listed(tmp_path, s0=5, s3=9, s6=1), listed(tmp_path, s3=9, s6=1)):
        assert not is_disturbed(before.seen, after.seen)
        assert before.seen != after.seen


@pytest.mark.parametrize("after", [{"s0": 5}, {"s0": 5, "s3": 4}, {"s0": 4, "s3": 5}, {"s0": 5, "s6": 5}])
def test_log_is_disturbed_when_its_end_goes_or_a_segment_shrinks(tmp_path: Path, after: dict[str, int]) -> None:
    before = listed(tmp_path, s0=5, s3=5)
    assert is_disturbed(before.seen, listed(tmp_path, **after).seen)


def test_log_is_disturbed_when_a_segment_was_replaced(tmp_path: Path) -> None:
    before = listed(tmp_path, s0=5, s3=5)
    (tmp_path / "other").write_bytes(bytes(5))
    (tmp_path / "other").replace(tmp_path / name(0))
    assert is_disturbed(before.seen, list_log(tmp_path).seen)


def test_directory_is_locked_only_while_another_process_holds_it(tmp_path: Path) -> None:
    assert not is_locked(tmp_path)
    with another_has(tmp_path):
        assert is_locked(tmp_path)
        assert is_locked(tmp_path), "asking once has taken it away"
    assert not is_locked(tmp_path)
