"""Commands work in a folder that has packages of the same names: an older checkout, or anything else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from checkers.spark import session
from tests.checkers.golden import FOLDER
from tests.kept import exhaustive
from tests.package import sources


def make_decoys(folder: Path) -> None:
    """Make packages that end whatever imports them."""
    for name in sources.PACKAGES:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"raise SystemExit('imported {name} of the current folder')\n")


def test_executors_of_this_machine_import_nothing_of_the_current_folder(tmp_path: Path) -> None:
    assert "1" == session._local_settings(tmp_path, None, large=False)["spark.executorEnv.PYTHONSAFEPATH"]


@exhaustive
@pytest.mark.slow
@pytest.mark.spark
def test_spark_imports_nothing_of_the_current_folder(tmp_path: Path) -> None:
    """Seen with an installed package in a checkout: `summary` ended with Spark's traceback, `check` fell back."""
    make_decoys(tmp_path)
    run = tmp_path / "results" / "20260101T000000-1" / "kip101-1-hw"
    run.mkdir(parents=True)
    shutil.copy(FOLDER / "caught-up-ok.jsonl", run / "history.jsonl")
    command = Path(sys.executable).with_name("fencepost")
    done = subprocess.run(
        [str(command), "summary", "results"],
        cwd=tmp_path,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "current folder" not in done.stdout + done.stderr
    assert "page: results/summary/summary.html" in done.stdout, done.stderr[-2000:]
