"""Directories in which Apache Kafka's cleaner has run and a topic was deleted are read (make_kafka_cleanings)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.logs.lineage import DifferenceKind, LineageSegment, behind, differences, holes, lineage
from harness.logs.replica import ReplicaLog
from harness.logs.soundness import notes
from harness.model import Kind
from tests.kafka_release import DATA
from tests.targets.kafka_family.logs.build import batch
from tests.targets.kafka_family.logs.scans import find_partitions, scan_partition

RELEASES = ("0.10.2.2", "1.1.1", "3.9.1")
WITH_EPOCHS = RELEASES[1:]
# The offset that the cleaner had reached, and the offsets that it left of 18 records, or 24 with markers.
LEFT = {
    "compacted": (15, [1, 4, 7, 10, 12, 13, 14, 15, 16, 17]),
    "compacted-gzip": (12, [1, 4, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17]),
    "compacted-transactions": (23, [1, 3, 7, 9, 11, 15, 16, 17, 18, 19, 23]),
}
MARKERS = {3: "commit", 7: "abort", 11: "commit", 15: "abort", 19: "commit", 23: "abort"}
CASES = [(r, topic) for r in RELEASES for topic in LEFT if r in WITH_EPOCHS or topic != "compacted-transactions"]


def place(release: str, broker: str, topic: str) -> Path:
    return DATA / f"kafka-{release}-cleaned" / broker / f"{topic}-0"


def offsets(log: ReplicaLog) -> list[int]:
    return [offset for each in log.batches for offset, _, _ in each.records]


def pair(release: str, topic: str) -> dict[str, ReplicaLog]:
    """Read the cleaned replica, and the one on which no cleaner ran."""
    return {broker: scan_partition(place(release, broker, topic)) for broker in ("b1", "b2")}


@pytest.mark.parametrize(("release", "topic"), CASES)
def test_cleaned_log_is_read_whole_and_its_gaps_are_no_holes(release: str, topic: str) -> None:
    cleaned_to, left = LEFT[topic]
    cleaned, whole = pair(release, topic).values()
    end = whole.log_end_offset
    assert (list(range(end)), left) == (offsets(whole), offsets(cleaned))
    assert ((0, end), cleaned_to) == ((cleaned.log_start_offset, cleaned.log_end_offset), cleaned.cleaned_to)
    for log in (cleaned, whole):
        assert ((), (), end) == (log.problems, holes(log), log.high_watermark)
        assert [] == [note for note in notes(log) if note.kind is not None]
    if release in WITH_EPOCHS:
        only = (LineageSegment(epoch=0, start=0, end=end),)
        assert only == lineage(cleaned) == lineage(whole)


@pytest.mark.parametrize(("release", "topic"), CASES)
def test_cleaned_log_and_one_that_is_not_cleaned_do_not_differ(release: str, topic: str) -> None:
    logs = pair(release, topic)
    assert ((), ()) == (differences(logs), behind(logs))


@pytest.mark.parametrize(("release", "topic"), CASES)
def test_cleaned_log_differs_where_what_is_left_is_another_record(
    release: str, topic: str, tmp_path: Path
) -> None:
    """A cleaned replica hides no divergence in the records that it still has."""
    copy = shutil.copytree(place(release, "b2", topic), tmp_path / "b2" / f"{topic}-0")
    last = max(copy.glob("*.log"))
    base = int(last.stem)
    last.write_bytes(batch(base, "x"))
    logs = {"b1": scan_partition(place(release, "b1", topic)), "b2": scan_partition(copy)}
    found = differences(logs)
    assert (DifferenceKind.CONTENT, base) == (found[0].kind, found[0].first)


@pytest.mark.parametrize(("release", "topic"), CASES)
def test_gaps_are_holes_when_no_cleaner_has_written_that_it_was_there(
    release: str, topic: str, tmp_path: Path
) -> None:
    """Only the cleaner's checkpoint explains the gaps; without it they are holes."""
    log = scan_partition(shutil.copytree(place(release, "b1", topic), tmp_path / f"{topic}-0"))
    missing = [offset for first, end in holes(log) for offset in range(first, end)]
    assert sorted({*range(log.log_end_offset)} - {*LEFT[topic][1]}) == missing
    assert Kind.HOLE in {note.kind for note in notes(log)}


@pytest.mark.parametrize(("release", "topic"), CASES)
def test_replacement_that_a_crash_cut_short_is_read_as_its_broker_would_end_it(
    release: str, topic: str, tmp_path: Path
) -> None:
    """The bytes are the cleaner's own; the names are those between its last two renames."""
    source = place(release, "b1", topic)
    copy = shutil.copytree(source, tmp_path / source.name)
    deleted = sorted(path.name.removesuffix(".deleted") for path in copy.glob("*.log.deleted"))
    for name in deleted:
        if (copy / name).exists():
            (copy / name).rename(copy / f"{name}.swap")
    log = scan_partition(copy)
    swaps = [path for path in copy.iterdir() if path.suffix == ".swap"]
    assert swaps
    assert LEFT[topic][1] == offsets(log)
    assert ((), ()) == (log.problems, holes(log))
    assert len(swaps) == len(log.remarks)
    # An earlier moment: the old segments are still there, beside the swap made of them.
    for name in deleted:
        (copy / f"{name}.deleted").rename(copy / name)
    again = scan_partition(copy)
    assert {*LEFT[topic][1]} <= {*offsets(again)}
    assert ((), ()) == (again.problems, holes(again))
    assert () == differences({"left": log, "again": again, "whole": scan_partition(place(release, "b2", topic))})


@pytest.mark.parametrize("release", WITH_EPOCHS)
def test_markers_are_told_apart_from_what_clients_wrote(release: str) -> None:
    for log in pair(release, "compacted-transactions").values():
        found = {offset: text for each in log.batches if each.control for offset, _, text in each.records}
        assert {offset: f"{how} marker" for offset, how in MARKERS.items()} == found
        texts = [text for each in log.batches if not each.control for _, _, text in each.records]
        assert not any("marker" in (text or "") for text in texts)


@pytest.mark.parametrize("release", RELEASES)
def test_log_without_a_record_is_sound_and_empty(release: str) -> None:
    for log in pair(release, "empty").values():
        assert ((), (), 0, 0) == (log.problems, log.batches, log.log_start_offset, log.log_end_offset)
        assert [] == [note for note in notes(log) if note.kind is not None]


@pytest.mark.parametrize("release", WITH_EPOCHS)
def test_folder_of_a_deleted_topic_is_no_partition(release: str) -> None:
    data = DATA / f"kafka-{release}-cleaned" / "b1"
    (doomed,) = data.glob("doomed-0.*-delete")
    assert list(doomed.glob("*.log"))  # 0.10.2.2 empties such folders after 30 s, whatever its configuration
    names = {topic for each, topic in CASES if each == release} | {"empty"}
    assert {f"{name}-0" for name in names} == {path.name for path in find_partitions(data)}


def test_topic_id_is_read_where_a_release_writes_one() -> None:
    found = {r: {log.topic_id for log in pair(r, "compacted").values()} for r in RELEASES}
    assert [{None}, {None}] == [found[release] for release in RELEASES[:2]]
    (topic_id,) = found["3.9.1"]
    assert topic_id is not None
