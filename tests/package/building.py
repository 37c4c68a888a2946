"""A copy of the sources from which the package is built: a build leaves files beside what it builds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.package import sources

# Builds without pip, and so without a network.
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


def copy_to(folder: Path) -> Path:
    """Copy what a checkout has, tests included, without what is made in it; return the copy."""
    made = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist", "data", "results")
    for path in sources.ROOT.iterdir():
        if path.name.startswith(".") or path.name in ("build", "results", "dist"):
            continue
        if path.is_dir():
            shutil.copytree(path, folder / path.name, ignore=made)
        else:
            shutil.copy2(path, folder)
    return folder


def build_wheel(folder: Path) -> Path:
    """Build the wheel in the folder, and return its path."""
    (folder / "checkout").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)],
        cwd=copy_to(folder / "checkout"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return folder / done.stdout.split()[-1]
