"""An ext4 of the run's own is full, dead or read-only without FUSE; a torn power loss leaves zeros."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from harness.cleanup.ledger import Ledger
from harness.cluster.disk_error import DiskError
from harness.hosts.loopfs import LoopDisk
from harness.hosts.lost_pages import PAGE_BYTES
from harness.model import PreconditionError
from tests.hosts.test_disks import DeadVictim, nothing
from tests.needs import needs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    needs("loop"),
]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[LoopDisk]:
    """A mounted disk with one flushed file."""
    ledger = Ledger.open(tmp_path, root=tmp_path / "runs")
    made = LoopDisk(folder=tmp_path / "A", ledger=ledger)
    (made.data / "log").write_bytes(b"flushed")
    made.flush()
    yield made
    assert [] == ledger.close()


def write(disk: LoopDisk) -> None:
    (disk.data / "other").write_bytes(bytes(PAGE_BYTES))


def read(disk: LoopDisk) -> None:
    (disk.data / "log").read_bytes()


def number_of(act: Callable[[LoopDisk], None], disk: LoopDisk) -> int:
    """Return the error with which it fails, 0 for none."""
    try:
        act(disk)
    except OSError as error:
        return error.errno or 0
    return 0


@pytest.mark.parametrize(
    ("error", "at_write", "at_read"),
    [
        (DiskError.FULL, errno.ENOSPC, 0),
        (DiskError.WRITE, errno.EIO, errno.EIO),
        (DiskError.FLUSH, errno.EIO, errno.EIO),
        (DiskError.READ_ONLY, errno.EROFS, 0),
    ],
)
def test_disk_fails_as_told_until_it_is_mended(
    disk: LoopDisk, error: DiskError, at_write: int, at_read: int
) -> None:
    (disk.data / "late").write_bytes(b"unflushed")
    assert disk.break_down(error, DeadVictim())
    assert (error, at_write, at_read) == (disk.state(), number_of(write, disk), number_of(read, disk))
    assert disk.mend(DeadVictim())
    assert ("", 0, 0) == (disk.state(), number_of(write, disk), number_of(read, disk))
    # A failed fsync alone takes what was not flushed.
    assert (error is not DiskError.FLUSH) is (disk.data / "late").exists()


@pytest.mark.parametrize("error", [DiskError.READ, DiskError.SLOW])
def test_what_ext4_cannot_do_is_refused(disk: LoopDisk, error: DiskError) -> None:
    with pytest.raises(PreconditionError, match=f"disk error {error}: ext4 has none; expected FUSE over it"):
        disk.break_down(error, DeadVictim())
    assert (0, "") == (number_of(write, disk), disk.state())


def test_torn_power_loss_leaves_pages_and_zeros(disk: LoopDisk) -> None:
    old = b"flushed" + b"x" * (20 * PAGE_BYTES)
    with (disk.data / "log").open("ab") as file:
        file.write(old[7:])
    seen = disk.power_loss(DeadVictim(), nothing, Random(3))
    new = (disk.data / "log").read_bytes()
    assert " pages and the journal reached the disk before; of " in seen
    assert (b"flushed", True) == (new[:7], len(new) <= len(old))
    at = range(PAGE_BYTES, len(new) - PAGE_BYTES, PAGE_BYTES)
    assert {b"x" * PAGE_BYTES, bytes(PAGE_BYTES)} == {new[page : page + PAGE_BYTES] for page in at}


def test_lost_disk_stays_lost_after_a_power_loss(disk: LoopDisk, tmp_path: Path) -> None:
    assert "1 files lost" in disk.lose(tmp_path / "aside")
    disk.power_loss(DeadVictim(), nothing)
    assert ([], b"flushed") == (list(disk.data.iterdir()), (tmp_path / "aside" / "log").read_bytes())
