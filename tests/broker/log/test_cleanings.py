"""Log cleanings of Apache Kafka that a crash interrupted are finished as Kafka's own next start would."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from targets.broker.log import LogOptions
from targets.broker.log.cleanings import end_cleanings
from targets.broker.log.names import segment_name
from targets.broker.log.recovery import Known, open_log
from tests.broker.log.batches import TP, all_of, raw_batch
from tests.kafka_release import DATA
from tests.targets.kafka_family.logs.scans import scan_partition

CASES = [
    (release, topic)
    for release in ("0.10.2.2", "1.1.1", "3.9.1")
    for topic in ("compacted-0", "compacted-gzip-0", "compacted-transactions-0")
    if (DATA / f"kafka-{release}-cleaned" / "b1" / topic).exists()
]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def batches_at(directory: Path, *bases: int, suffix: str = "") -> None:
    for base in bases:
        (directory / f"{segment_name(base)}{suffix}").write_bytes(raw_batch(base=base, count=2, epoch=0))


@pytest.mark.parametrize(("release", "topic"), CASES)
def test_log_is_opened_as_cleaned_when_the_renames_were_cut_short(
    release: str, topic: str, tmp_path: Path
) -> None:
    """
    The log contains the cleaner's output; the replaced segments are still there as `.deleted` files.

    Source: KAFKA-6264.
    """
    source = DATA / f"kafka-{release}-cleaned" / "b1" / topic
    expected = b"".join(path.read_bytes() for path in sorted(source.glob("*.log")))
    copy = shutil.copytree(source, tmp_path / str(TP))
    for deleted in copy.glob("*.deleted"):
        segment = deleted.with_suffix("")
        if segment.exists():
            segment.rename(segment.with_name(f"{segment.name}.swap"))
    assert list(copy.glob("*.swap"))
    log, found = open_log(TP, copy, Known(clean=False), LogOptions())
    assert (0, "clean") == (found.cut_bytes, found.reason)
    assert expected == b"".join(bytes(batch.payload) for batch in all_of(log))
    assert not list(copy.glob("*.swap"))
    assert scan_partition(source).log_end_offset == log.end_offset


def test_directory_without_a_cleaning_is_left_alone(tmp_path: Path) -> None:
    batches_at(tmp_path, 0, 2)
    before = names(tmp_path)
    end_cleanings(tmp_path)
    assert before == names(tmp_path)


def test_swap_replaces_those_alone_that_begin_in_its_range(tmp_path: Path) -> None:
    batches_at(tmp_path, 0, 2, 4, 6)
    (tmp_path / f"{segment_name(0)}.swap").write_bytes(raw_batch(base=3, epoch=0))
    end_cleanings(tmp_path)
    assert [segment_name(base) for base in (0, 4, 6)] == names(tmp_path)
    assert raw_batch(base=3, epoch=0) == (tmp_path / segment_name(0)).read_bytes()


def test_empty_swap_replaces_its_namesake(tmp_path: Path) -> None:
    batches_at(tmp_path, 0, 2)
    (tmp_path / f"{segment_name(0)}.swap").touch()
    end_cleanings(tmp_path)
    assert [segment_name(0), segment_name(2)] == names(tmp_path)
    assert b"" == (tmp_path / segment_name(0)).read_bytes()


def test_unfinished_cleaning_is_dropped_and_each_swap_behind_its_beginning(tmp_path: Path) -> None:
    """Source: KAFKA-6264."""
    batches_at(tmp_path, 0, 2, 4)
    batches_at(tmp_path, 2, suffix=".cleaned")
    (tmp_path / f"{segment_name(4)}.swap").touch()
    before = (tmp_path / segment_name(4)).read_bytes()
    end_cleanings(tmp_path)
    assert [segment_name(base) for base in (0, 2, 4)] == names(tmp_path)
    assert before == (tmp_path / segment_name(4)).read_bytes()
