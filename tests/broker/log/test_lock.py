"""The broker refuses a data directory that another process has locked; the lock ends with its process."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.beneath import Folder
from targets.broker.log.lock import LOCK_FILE, DataDirTakenError, held
from targets.kafka_family.logs import files
from tests.holders import another_has


def is_locked(directory: Path) -> bool:
    with Folder.at(directory) as folder:
        return files.is_locked(folder)


def test_directory_that_another_process_has_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """Source: Kafka, LogManager.lockLogDirs."""
    data = tmp_path / "made" / "for it"
    with another_has(data):
        refusal = pytest.raises(DataDirTakenError, match=rf"data_dir {data}: a running broker holds its \.lock")
        with refusal, held(data):
            pytest.fail("it was let in")
        assert is_locked(data)
    assert [LOCK_FILE] == [path.name for path in data.iterdir()]


def test_directory_of_a_process_that_was_killed_is_free_though_its_file_stands(tmp_path: Path) -> None:
    """Source: Kafka, LogManager.lockLogDirs."""
    with another_has(tmp_path) as holder:
        holder.kill()
        holder.wait()
        assert (tmp_path / LOCK_FILE).exists()
        assert not is_locked(tmp_path)
        with held(tmp_path):
            pass
