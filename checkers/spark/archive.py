"""
Archive Spark's classes, so that its Java starts in half the time: `python -m checkers.spark.archive`.

To start Spark and check once, Java finds, reads, verifies and links twenty thousand classes from 280 files. When
it ends, Java can write the loaded classes to one file, which the next Java maps into memory. The file is made once
for each Python environment and Java: 180 MB, half a minute. It is optional: without it, or with another Java or
PySpark than it was made with (Java itself checks that), everything works, only slower.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from checkers.spark.process import KEEP_CLASSES
from checkers.spark.session import ROOT, archive_path
from harness.ending import end
from harness.java import executable_of, find_java
from harness.model import UsageError


def make_archive(java_home: Path) -> Path | None:
    """
    Start Spark, check two tiny runs, and archive the classes that it loaded.

    Returns:
        The archive; None if this Java cannot write one (a Java that came without an archive of its own).

    Raises:
        UsageError: the Python environment is not writable.
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
    # Write elsewhere, then rename: a partly written file must not be used as an archive.
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    _have_spark_write(java_home, fresh)
    return fresh.replace(path) if fresh.exists() else None


def _have_spark_write(java_home: Path, archive: Path) -> None:
    """Start Spark, warm it up and end it; its Java writes the archive, or fails to start if it cannot."""
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


def main(arguments: Sequence[str] = ()) -> int:
    """Make the archive if there is none, and print its path."""
    return end("checkers.spark.archive", lambda: _make(arguments))


def _make(arguments: Sequence[str]) -> int:
    if arguments:
        raise UsageError(f"arguments {' '.join(arguments)!r}; expected none")
    java = find_java()
    path = archive_path(executable_of(java.home))
    made = path if path.exists() else make_archive(java.home)
    print(f"Spark's classes: {made}" if made else f"Spark's classes: Java at {java.home} keeps no archive")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
