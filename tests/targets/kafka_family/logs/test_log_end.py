"""The end of a log from its newest segment: that of a whole scan, or unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.beneath import Folder
from targets.kafka_family.logs.log_end import quick_end
from tests.targets.kafka_family.logs.build import batch
from tests.targets.kafka_family.logs.scans import scan_partition


def written(tmp_path: Path, **segments: bytes) -> Path:
    folder = tmp_path / "log-0"
    folder.mkdir()
    for base, data in segments.items():
        (folder / f"{int(base[1:]):020}.log").write_bytes(data)
    return folder


def end_of(folder: Path) -> int | None:
    with Folder.at(folder) as opened:
        return quick_end(opened)


SOUND = batch(4, "a", "b")
DAMAGED = SOUND[:-1] + bytes([SOUND[-1] ^ 1])


@pytest.mark.parametrize(
    ("newest", "end"),
    [
        (b"", 4),
        (SOUND, 6),
        (SOUND + batch(6, "c"), 7),
        (SOUND + batch(6, "c")[:-3], 6),
        (SOUND + bytes(100), 6),
    ],
    ids=["empty", "one batch", "two batches", "a torn batch", "zeros"],
)
def test_end_is_that_of_a_whole_scan(tmp_path: Path, newest: bytes, end: int) -> None:
    folder = written(tmp_path, o0=batch(0, "x"), o4=newest)
    assert (end, end) == (end_of(folder), scan_partition(folder).log_end_offset)


@pytest.mark.parametrize(
    "newest", [DAMAGED, DAMAGED + batch(6, "c")], ids=["damage", "damage before a sound batch"]
)
def test_damage_is_for_a_whole_scan(tmp_path: Path, newest: bytes) -> None:
    assert None is end_of(written(tmp_path, o0=batch(0, "x"), o4=newest))


def test_log_without_segments_or_with_an_unfinished_cleaning_is_for_a_whole_scan(tmp_path: Path) -> None:
    folder = written(tmp_path)
    assert None is end_of(folder)
    (folder / f"{0:020}.log").write_bytes(batch(0, "x"))
    assert 1 == end_of(folder)
    (folder / f"{0:020}.log.swap").touch()
    assert None is end_of(folder)
