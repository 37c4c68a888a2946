"""What a node's disk may do wrong, and what a machine must be able to do to have it so."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from harness.ability import Ability


class DiskError(StrEnum):
    """
    What is wrong with a disk.

    FULL: a write fails with ENOSPC; a part of it may be in the file. WRITE: a write fails with EIO, and nothing of
    it is in the file. FLUSH: an fsync, of a log or a checkpoint, fails with EIO; what it was to make durable may
    be gone, and no later fsync says so. READ: a read of a log fails with EIO. READ_ONLY: every change fails with
    EROFS. SLOW: nothing fails, and every call takes longer.
    """

    FULL = "full"
    WRITE = "write"
    FLUSH = "flush"
    READ = "read"
    READ_ONLY = "read-only"
    SLOW = "slow"


NEEDS: Final[Mapping[DiskError, Ability]] = {
    DiskError.FULL: Ability.DISK_FULL,
    DiskError.WRITE: Ability.DISK_ERRORS,
    DiskError.FLUSH: Ability.DISK_ERRORS,
    DiskError.READ: Ability.DISK_READ_ERRORS,
    DiskError.READ_ONLY: Ability.DISK_READ_ONLY,
    DiskError.SLOW: Ability.DISK_SLOW,
}
# By how much a call on a slow disk takes longer: as on one that others keep busy.
SLOW_MS: Final = 20
