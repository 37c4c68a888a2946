"""Replicas that are compared window by window get the result of whole logs, wherever the windows end."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from harness import limits
from harness.beneath import Folder
from harness.logs.compare import Comparison, compare
from harness.logs.graph import fork_points, lineage_graph
from harness.logs.lineage import behind, differences, lineage
from harness.logs.soundness import notes
from harness.model import Kind, Verdict
from targets.kafka_family.logs.data import DataFolder
from targets.kafka_family.logs.scan import Scan
from tests.targets.kafka_family.logs.build import batch, partition
from tests.targets.kafka_family.logs.scans import scan_partition


def compared(tmp_path: Path, names: Sequence[str]) -> Comparison:
    with ExitStack() as stack:
        opened = {name: DataFolder(stack.enter_context(Folder.at(tmp_path / name))) for name in names}
        return compare("t-0", {name: partial(Scan, data, "t-0") for name, data in opened.items()})


def as_whole(tmp_path: Path, names: Sequence[str]) -> Mapping[str, object]:
    """Return what the functions of whole logs say."""
    logs = {name: scan_partition(tmp_path / name / "t-0") for name in names}
    return {
        "differences": differences(logs),
        "behind": behind(logs),
        "forks": fork_points(lineage_graph(logs)),
        "lineage": {name: lineage(log) for name, log in logs.items()},
        "notes": {name: notes(log) for name, log in logs.items()},
        "ends": {name: (log.log_start_offset, log.log_end_offset, log.problems) for name, log in logs.items()},
    }


def as_compared(found: Comparison) -> Mapping[str, object]:
    logs = {name: replica.log for name, replica in found.replicas.items()}
    return {
        "differences": found.differences,
        "behind": found.behind,
        "forks": found.forks,
        "lineage": {name: replica.lineage for name, replica in found.replicas.items()},
        "notes": {name: replica.notes for name, replica in found.replicas.items()},
        "ends": {name: (log.log_start_offset, log.log_end_offset, log.problems) for name, log in logs.items()},
    }


def log_of(rng: random.Random, history: Sequence[tuple[str, int]]) -> list[bytes]:
    """Return batches with these (value, epoch) from offset 0 on; now and then one is missing or changed."""
    batches: list[bytes] = []
    at = 0
    while at < len(history):
        count = rng.randint(1, 4)
        piece = [value for value, epoch in history[at : at + count] if epoch == history[at][1]]
        if rng.random() < 0.05:
            piece = [f"other {value}" for value in piece]
        epoch = history[at][1] + (rng.random() < 0.03)
        if rng.random() > 0.04:
            batches.append(batch(at, *piece, epoch=epoch))
        at += len(piece)
    return batches


@pytest.mark.parametrize("seed", range(60))
def test_windows_give_what_whole_logs_give(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    epochs = sorted(rng.randrange(5) for _ in range(60))
    history = [(f"m{index}", epoch) for index, epoch in enumerate(epochs)]
    names = [f"b{number}" for number in range(rng.randint(1, 3))]
    for name in names:
        batches = log_of(rng, history[: rng.randint(20, 60)])
        entries = [(epoch, epochs.index(epoch)) for epoch in sorted(set(epochs)) if rng.random() < 0.9]
        directory = partition(tmp_path / name, *batches, epochs=entries if rng.random() < 0.8 else None)
        if rng.random() < 0.3:
            # A damaged segment, and another one behind it.
            (directory / f"{60:020d}.log").write_bytes(batch(60, "x", epoch=9) + b"damaged")
            (directory / f"{70:020d}.log").write_bytes(batch(70, "y", epoch=9))
        if rng.random() < 0.3:
            (tmp_path / name / "log-start-offset-checkpoint").write_text(f"0\n1\nt 0 {rng.randrange(30)}\n")
        if rng.random() < 0.3:
            (tmp_path / name / "cleaner-offset-checkpoint").write_text(f"0\n1\nt 0 {rng.randrange(60)}\n")
    expected = as_whole(tmp_path, names)
    for records in (1, 2, 7, 1000):
        monkeypatch.setattr(limits, "LOG_WINDOW_RECORDS", records)
        assert expected == as_compared(compared(tmp_path, names)), records


def test_batches_that_go_back_over_a_window_are_disorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_WINDOW_RECORDS", 2)
    sound = [batch(at, f"m{at}") for at in range(10)]
    partition(tmp_path / "a", *sound, epochs=[(0, 0)])
    partition(tmp_path / "b", *sound, *sound[:8], batch(10, "m10"), epochs=[(0, 0)])
    found = compared(tmp_path, ["a", "b"])
    assert Verdict.INVALID == found.verdict
    assert [Kind.DISORDER] * 8 == [note.kind for note in found.replicas["b"].notes]
    assert ((), 11) == (found.differences, found.replicas["b"].log.log_end_offset)


@pytest.mark.parametrize("what", ["epochs", "holes", "disorder"])
def test_reading_ends_when_a_log_has_too_much_to_report(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOG_FINDINGS_MAX", 5)
    monkeypatch.setattr(limits, "LOG_WINDOW_RECORDS", 2)
    step = 2 if what == "holes" else 0 if what == "disorder" else 1
    batches = [batch(at * step, "m", epoch=at if what == "epochs" else 0) for at in range(100)]
    directory = partition(tmp_path / "a", *batches, epochs=None)
    partition(tmp_path / "b", batch(0, "m"), epochs=[(0, 0)])
    found = compared(tmp_path, ["a", "b"])
    replica = found.replicas["a"]
    assert directory.name in replica.log.problems[-1]
    assert "more than 5 holes, changes of epoch or disorders; the rest is not read" in replica.log.problems[-1]
    assert 12 > len(replica.lineage)
    assert found.verdict in {Verdict.UNKNOWN, Verdict.INVALID}


def test_differences_are_counted_no_further_than_they_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOG_FINDINGS_MAX", 5)
    for name in ("a", "b"):
        values = [f"m{at}" if at % 2 else f"{name}{at}" for at in range(40)]
        partition(tmp_path / name, batch(0, *values), epochs=[(0, 0)])
    found = compared(tmp_path, ["a", "b"])
    assert (5, "from there on: more than 5 differences") == (len(found.differences), found.incomparable)
    assert Verdict.INVALID == found.verdict
