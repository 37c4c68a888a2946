"""One byte of a file is chosen and flipped in place, and a reader finds it; nothing outside is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.beneath import Folder, RefusedError
from harness.bit_rot import Flip, Where
from harness.hosts.trees import exchange
from harness.logs.flips import flip_of_count
from targets.kafka_family.logs.flipping import chosen
from tests.targets.kafka_family.logs.build import batch, partition
from tests.targets.kafka_family.logs.scans import scan_partition

WHOLE = tuple(batch(at, f"m{at}") for at in range(6))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A log of three batches in a closed segment, and three in the active one."""
    made = partition(tmp_path, *WHOLE[:3], epochs=[(0, 0)])
    (made / f"{3:020d}.log").write_bytes(b"".join(WHOLE[3:]))
    return made


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def flipped(directory: Path, where: Where) -> Flip | None:
    """Choose a byte, and flip it as a host does."""
    with Folder.at(directory) as folder, Folder.at(directory.parent) as data:
        found = chosen(folder, where)
        if found is not None:
            was = bytes((found.before,))
            assert was == exchange(data, found.path, found.position, was, bytes((found.after,)))
        return found


@pytest.mark.parametrize(("where", "offset"), [(Where.CLOSED, 1), (Where.ACTIVE, 4)])
def test_flip_changes_one_bit_of_the_middle_batch_and_nothing_else(
    directory: Path, where: Where, offset: int
) -> None:
    before = contents(directory)
    done = flipped(directory, where)
    assert done is not None
    after = contents(directory)
    changed = {name for name in before if before[name] != after[name]}
    assert {done.file} == changed
    at = [at for at, (old, new) in enumerate(zip(before[done.file], after[done.file], strict=True)) if old != new]
    assert [done.position] == at
    assert (done.before, done.after) == (before[done.file][at[0]], after[done.file][at[0]])
    assert (offset, offset) == (done.base, done.last)
    log = scan_partition(directory)
    assert ((offset, offset + 1),) == log.unread
    assert log.problems[0].startswith(f"{done.file}, position ")
    assert 6 == log.log_end_offset


def test_second_flip_is_of_another_batch_and_mends_nothing(directory: Path) -> None:
    found = [flipped(directory, Where.CLOSED) for _ in range(4)]
    assert [1, 2, 0, None] == [None if each is None else each.base for each in found]
    assert 3 == len(scan_partition(directory).problems)


def test_log_of_one_segment_has_no_closed_one(tmp_path: Path) -> None:
    assert flipped(partition(tmp_path, *WHOLE, epochs=[(0, 0)]), Where.CLOSED) is None


def test_flip_of_a_checkpoint_makes_a_letter_of_a_digit(directory: Path) -> None:
    done = flipped(directory, Where.CHECKPOINT)
    assert done == Flip(path=f"{directory.name}/leader-epoch-checkpoint", position=2, before=0x31, after=0x71)
    assert "leader-epoch-checkpoint: 'q'; expected a whole number" in scan_partition(directory).problems[0]
    assert flipped(directory, Where.CHECKPOINT) is None


def test_checkpoint_without_entries_or_without_a_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("0\n0\n", encoding="utf-8")
    with Folder.at(tmp_path) as folder:
        assert (None, None) == (flip_of_count(folder, "empty"), flip_of_count(folder, "missing"))
    assert "0\n0\n" == (tmp_path / "empty").read_text(encoding="utf-8")


def test_link_in_the_place_of_a_segment_is_not_followed(directory: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(WHOLE[3])
    active = directory / f"{3:020d}.log"
    active.unlink()
    os.symlink(victim, active)
    with pytest.raises(RefusedError):
        flipped(directory, Where.ACTIVE)
    assert WHOLE[3] == victim.read_bytes()
