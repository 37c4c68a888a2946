"""A log's segments are read among the files that cleanings and running brokers leave beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.logs import segments, stream
from harness.logs.lineage import differences, holes, lineage
from harness.logs.replica import ReplicaLog
from harness.logs.soundness import notes
from targets.kafka_family.logs import files, scan
from tests.targets.kafka_family.logs.build import batch, partition
from tests.targets.kafka_family.logs.scans import scan_partition

WHOLE = tuple(batch(at, f"m{at}") for at in range(12))


def segment(first: int, suffix: str = "") -> str:
    return f"{first:020d}.log{suffix}"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Four segments of three records each."""
    made = partition(tmp_path, *WHOLE[:3], epochs=[(0, 0)])
    for first in (3, 6, 9):
        (made / segment(first)).write_bytes(b"".join(WHOLE[first : first + 3]))
    return made


def offsets(log: ReplicaLog) -> list[int]:
    return [offset for each in log.batches for offset, _, _ in each.records]


def clean(directory: Path, suffix: str) -> None:
    """Write the result of a cleaning of the first segments, which leaves offsets 1 and 4."""
    (directory / segment(0, suffix)).write_bytes(WHOLE[1] + WHOLE[4])


def alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every data directory look locked by a running broker."""
    monkeypatch.setattr(scan, "is_locked", lambda data: True)


@pytest.mark.parametrize("gone", [(), (0,), (0, 3), (0, 3, 6)])
def test_swap_stands_for_the_segments_that_it_was_made_of(directory: Path, gone: tuple[int, ...]) -> None:
    """Source: Apache Kafka, LogLoader: a broker that died during a replacement completes it when it starts."""
    before = scan_partition(directory)
    clean(directory, ".swap")
    for first in gone:
        (directory / segment(first)).rename(directory / segment(first, ".deleted"))
    log = scan_partition(directory)
    left = [] if 6 in gone else [6, 7, 8]
    assert [1, 4, *left, 9, 10, 11] == offsets(log)
    assert ((), ()) == (log.problems, holes(log))
    assert (0, 12) == (log.log_start_offset, log.log_end_offset)
    assert () == differences({"before": before, "after": log})
    (note,) = notes(log)
    assert note.kind is None
    assert f"{segment(0, '.swap')}: the result of a cleaning of offsets [0, {9 if 6 in gone else 6})" in note.text


@pytest.mark.parametrize("gone", [(), (3,), (0, 3)])
def test_segments_are_read_in_stead_of_a_swap_that_cannot_be(directory: Path, gone: tuple[int, ...]) -> None:
    """Whether it had the records of those that are gone is unknown: they are unread, and no hole."""
    (directory / segment(0, ".swap")).mkdir()
    for first in gone:
        (directory / segment(first)).rename(directory / segment(first, ".deleted"))
    log = scan_partition(directory)
    assert [at for at in range(12) if at // 3 * 3 not in gone] == offsets(log)
    assert ((), 0, 12) == (holes(log), log.log_start_offset, log.log_end_offset)
    assert {f"{segment(0, '.swap')}: a folder; expected a regular file"} == set(log.problems)


def test_segments_that_are_gone_are_a_hole_when_no_swap_stands_for_them(directory: Path) -> None:
    for first in (3, 6):
        (directory / segment(first)).rename(directory / segment(first, ".deleted"))
    assert ((3, 9),) == holes(scan_partition(directory))


@pytest.mark.parametrize("suffix", [".cleaned", ".deleted"])
def test_what_is_unfinished_or_taken_out_is_no_part_of_the_log(directory: Path, suffix: str) -> None:
    clean(directory, suffix)
    log = scan_partition(directory)
    assert list(range(12)) == offsets(log)
    assert ((), ()) == (log.problems, holes(log))
    assert (suffix == ".cleaned") == any("a cleaning is not finished" in each for each in log.remarks)


def test_gaps_before_a_cleaning_under_way_are_no_holes_and_those_behind_it_are(directory: Path) -> None:
    (directory / segment(0)).write_bytes(WHOLE[1])
    (directory / segment(6)).write_bytes(WHOLE[7])
    (directory / segment(3, ".cleaned")).touch()
    assert ((6, 7), (8, 9)) == holes(scan_partition(directory))


def test_write_under_way_is_read_again_until_it_is_whole(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last = directory / segment(9)
    torn, whole = last.read_bytes()[:-1], last.read_bytes()
    states = iter((torn, torn, whole))

    def write_on(data: Path) -> bool:
        last.write_bytes(next(states))
        return True

    monkeypatch.setattr(scan, "is_locked", write_on)
    log = scan_partition(directory)
    assert (12, ()) == (log.log_end_offset, log.problems)
    assert [] == list(states)


def test_write_under_way_is_told_as_one_when_it_does_not_end(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = directory / segment(9)
    last.write_bytes(last.read_bytes()[:-1])
    monkeypatch.setattr(stream, "SETTLE_S_MAX", 0.0)
    dead = scan_partition(directory)
    alive(monkeypatch)
    found = scan_partition(directory)
    assert (11, 11) == (dead.log_end_offset, found.log_end_offset)
    assert 1 == len(dead.problems)
    assert dead.problems == found.problems[:1]
    assert "a broker is writing to it, and did not finish its last write" in found.problems[1]


def test_zeros_at_the_end_are_a_running_broker_s_room_and_a_dead_one_s_problem(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (directory / segment(9)).open("ab") as file:
        file.truncate(5000)
    assert "all zero" in scan_partition(directory).problems[0]
    alive(monkeypatch)
    log = scan_partition(directory)
    assert ((), 12) == (log.problems, log.log_end_offset)
    assert any("zero bytes behind the log's end" in each for each in log.remarks)


def test_zeros_in_a_segment_that_others_follow_are_a_problem_whoever_runs(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (directory / segment(3)).open("ab") as file:
        file.truncate(5000)
    alive(monkeypatch)
    assert "all zero" in scan_partition(directory).problems[0]


def test_damage_is_a_problem_whoever_runs(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last = directory / segment(9)
    data = bytearray(last.read_bytes())
    data[len(WHOLE[9]) + 70] ^= 1
    last.write_bytes(data)
    alive(monkeypatch)
    log = scan_partition(directory)
    assert "CRC-32C" in log.problems[0]
    assert (12, 1, ((10, 11),)) == (log.log_end_offset, len(log.problems), log.unread[:1])
    assert [9, 11] == [batch.base for batch in log.batches[-2:]]


def test_log_is_listed_again_when_a_segment_goes_before_it_is_read(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention deletes the first segment between the listing and the reading."""
    lists = 0

    def list_then_lose(path: Path) -> files.Listing:
        nonlocal lists
        lists += 1
        found = files.list_log(path)
        (directory / segment(0)).unlink(missing_ok=True)
        return found

    monkeypatch.setattr(scan, "list_log", list_then_lose)
    log = scan_partition(directory)
    assert ((), 3, list(range(3, 12))) == (log.problems, log.log_start_offset, offsets(log))
    assert 4 == lists


def test_log_that_never_stands_still_is_told_as_such(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "SETTLE_S_MAX", 0.0)
    monkeypatch.setattr(segments, "is_disturbed", lambda before, after: True)
    assert "its files kept changing" in scan_partition(directory).problems[0]


def test_epochs_are_read_again_when_they_change_with_the_log(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader records its epoch and appends, between the readings of the checkpoint and of the log."""
    checkpoint = directory / "leader-epoch-checkpoint"
    checkpoint.write_text("0\n1\n0 0\n")

    def lead(path: Path) -> files.Listing:
        checkpoint.write_text("0\n2\n0 0\n1 12\n")
        (directory / segment(12)).write_bytes(batch(12, "m12", epoch=1))
        return files.list_log(path)

    monkeypatch.setattr(scan, "list_log", lead)
    log = scan_partition(directory)
    assert (((0, 0), (1, 12)), 13, ()) == (log.epochs, log.log_end_offset, notes(log))
    assert [0, 1] == [each.epoch for each in lineage(log)]
