"""A disk that gets full, a mount that is kept busy: the run is unknown, the command ends with table and report."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from harness.cleanup.ledger import reap
from harness.cleanup.process import until
from harness.run.result import Status
from harness.run.suite import Suite
from tests.endings.command import END_S_MAX, Running, left_of, op, saw, started
from tests.kept import exhaustive
from tests.needs import needs

pytestmark = [pytest.mark.slow, pytest.mark.root, needs("java")]

TWO_RUNS = ("--scenario", "kip101-1", "--protocol", "hw", "--protocol", "kip279", "--seed", "1", "--jobs", "1")


def results_of(running: Running) -> Suite:
    (path,) = running.folder.glob("results/2*/suite.json")
    return Suite.read(path)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a filesystem with little more space than a suite needs to start."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1100m", "none", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(path: Path) -> None:
    """Write to the file until its disk is full."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


@exhaustive
def test_disk_that_gets_full_makes_runs_unknown_and_the_table_is_printed(folder: Path) -> None:
    with small_disk(folder / "results") as disk, started(folder, *TWO_RUNS) as running:
        running.reach(op(40))
        fill(disk / "filler")
        assert 3 == running.end(), running.output()
        output = running.output()
        assert "Traceback" not in output
        # The first run may just get by: its own disks are removed at its end, which makes some space.
        assert re.search(r"kip101-1-kip279: \d+ MiB free; expected 1024 MiB; free some", output)
        assert re.search(r"^2 runs: [01] as expected, [12] unknown, 0 mismatch;", output, re.M)
        assert "again: make test-kip101 SCENARIO=kip101-1 PROTOCOL=kip279" in output
        (disk / "filler").unlink()
        reap()
        assert until(lambda: left_of(folder) == [f"mount {disk}"], END_S_MAX), left_of(folder)


@exhaustive
def test_mount_that_somebody_keeps_busy_makes_its_run_unknown_and_the_next_run_takes_it_down(folder: Path) -> None:
    with started(folder, *TWO_RUNS) as running, ExitStack() as busy:
        # Held from after the scenario's power losses on: a fault must not meet it, only the clean-up.
        running.reach(saw('"f":"healed"'))
        (data,) = folder.glob("results/2*/kip101-1-hw/nodes/A/disk/mount/data")
        busy.enter_context((data / "held").open("wb"))
        assert 3 == running.end(), running.output()
        assert "Traceback" not in running.output()
        hw, kip279 = results_of(running).results
        assert (Status.UNKNOWN, Status.AS_EXPECTED) == (hw.status, kip279.status)
        assert f"{data.parent}: target is busy" in hw.reason
        assert "not all is undone, the next run tries again: " in hw.reason
        assert "1 as expected, 1 unknown" in running.output()
        assert [f"mount {data.parent}"] == [text for text in left_of(folder) if text.startswith("mount ")]
    assert () == reap().left
    assert [] == left_of(folder)
