"""
Keep Spark's classes in an archive, so that its Java is up in half the time: `python -m checkers.spark.archive`.

Starting Spark and checking once makes Java find, read, verify and link twenty thousand classes out of 280 files.
A Java that ends can write what it has loaded to one file, which the next one maps into its memory. The file is
made once for each Python environment and Java, 180 MB in half a minute. Nothing needs it: without it, and when
Java or PySpark is not what it was made with, all is the same and only slower, since Java itself compares both.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from checkers.spark.process import KEEP_CLASSES
from checkers.spark.session import ROOT, archive_path
from harness.java import executable_of, find_java
from harness.model import FencepostError, UsageError


def make_archive(java_home: Path) -> Path | None:
    """
    Start Spark, check something, and keep the classes that it took.

    Returns:
        The archive; None when this Java keeps none (one that came without an archive of its own).

    Raises:
        UsageError: the Python environment cannot be written.
    """
    path = archive_path(executable_of(java_home))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f"{path.name}.*"):
            left.unlink()
    except OSError as error:
        raise UsageError(
            f"class archive {path}: {error.strerror}; expected a Python environment that can be written, or do "
            "without the archive"
        ) from error
    # Whole or not at all: a file that is being written must not be taken for an archive.
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    _have_spark_write(java_home, fresh)
    return fresh.replace(path) if fresh.exists() else None


def _have_spark_write(java_home: Path, archive: Path) -> None:
    """Have Spark start, warm up and end: its Java leaves the archive, or does not start when it can keep none."""
    process = [sys.executable, "-P", "-m", "checkers.spark.process", str(java_home)]
    with tempfile.TemporaryDirectory(prefix="fencepost-archive-", ignore_cleanup_errors=True) as folder:
        subprocess.run(
            [*process, folder, KEEP_CLASSES, str(archive)],
            input=b"null\n",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
        )


def main() -> int:
    """Make the archive where there is none, and say where it is."""
    try:
        java = find_java()
        path = archive_path(executable_of(java.home))
        made = path if path.exists() else make_archive(java.home)
    except FencepostError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"Spark's classes: {made}" if made else f"Spark's classes: Java at {java.home} keeps no archive")
    return 0


if __name__ == "__main__":
    sys.exit(main())
