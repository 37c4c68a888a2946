"""Message formats before v2 are read as a release that knows v2 still writes them: tests/make_kafka_formats.py."""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path

import pytest

from harness.logs.lineage import differences, holes
from tests.kafka_release import DATA
from tests.targets.kafka_family.logs.scans import find_partitions, scan_partition

WRITTEN = find_partitions(DATA / "kafka-1.1.1-formats" / "b1")
REST = " and again" * 6


def name(directory: Path) -> str:
    return directory.name.removesuffix("-0")


@pytest.mark.parametrize("directory", WRITTEN, ids=name)
def test_every_record_is_read_whatever_the_format(directory: Path) -> None:
    log = scan_partition(directory)
    values = [value for each in log.batches for _, _, value in each.records]
    first = [f"{name(directory)}, batch {batch}, record {at}{REST}" for batch in range(2) for at in range(3)]
    assert first == values[:6]
    assert {f"{name(directory)}, later{REST}"} >= set(values[6:])
    assert list(range(len(values))) == [offset for each in log.batches for offset, _, _ in each.records]
    assert ((), (), len(values)) == (log.problems, holes(log), log.log_end_offset)
    assert () == differences(
        {"b1": log, "b2": scan_partition(DATA / "kafka-1.1.1-formats" / "b2" / directory.name)}
    )


@pytest.mark.parametrize("directory", WRITTEN, ids=name)
def test_epochs_begin_with_the_format_that_has_them(directory: Path) -> None:
    log = scan_partition(directory)
    begins = next((each.base for each in log.batches if each.magic == 2), None)
    assert directory.name.startswith("mixed") == (begins is not None)
    assert {1 if begins else 0} == {each.magic for each in log.batches} - {2}
    assert [each.magic != 2 for each in log.batches] == [each.epoch == -1 for each in log.batches]
    assert (((0, begins),) if begins else ()) == log.epochs


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_message_set_that_does_not_open_is_unread_and_no_hole(codec: str, tmp_path: Path) -> None:
    source = DATA / "kafka-1.1.1-formats" / "b1" / f"v0-{codec}-0"
    copy = shutil.copytree(source, tmp_path / source.name)
    path = copy / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    end = 12 + int.from_bytes(data[8:12])
    data[26:end] = b"\xee" * (end - 26)
    data[12:16] = zlib.crc32(data[16:end]).to_bytes(4)
    path.write_bytes(data)
    log = scan_partition(copy)
    assert ((0, 3),) == log.unread
    assert () == holes(log)
    assert 1 == len(log.problems)
    assert () == differences({"whole": scan_partition(source), "damaged": log})
