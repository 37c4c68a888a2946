"""A data directory that another process has is refused; the lock ends with its process, however that ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.logdir.files import is_locked
from targets.broker.log.lock import LOCK_FILE, DataDirTakenError, held

HOLDER = """
import sys
from pathlib import Path
from targets.broker.log.lock import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_has(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process has the directory, until it is killed or the block ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert "held\n" == holder.stdout.readline()
        yield holder
        holder.kill()


def test_directory_that_another_process_has_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    data = tmp_path / "made" / "for it"
    with another_has(data):
        refusal = pytest.raises(
            DataDirTakenError, match=rf"data_dir {data}: another broker that runs has its \.lock"
        )
        with refusal, held(data):
            pytest.fail("it was let in")
        assert is_locked(data)
    assert [LOCK_FILE] == [path.name for path in data.iterdir()]


def test_directory_of_a_process_that_was_killed_is_free_though_its_file_stands(tmp_path: Path) -> None:
    with another_has(tmp_path) as holder:
        holder.kill()
        holder.wait()
        assert (tmp_path / LOCK_FILE).exists()
        assert not is_locked(tmp_path)
        with held(tmp_path):
            pass
