"""Run `fencepost lineage` in a process that reports everything that it does to files besides reading them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
TELLS: Final = "touched:"
# Python's own audit events: every open for writing, and every call that changes a file or its metadata.
WATCH: Final = """
import os, sys
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {"os.rename", "os.remove", "os.truncate", "os.mkdir", "os.rmdir", "os.utime", "os.chmod", "os.chown",
           "os.link", "os.symlink", "os.setxattr", "os.removexattr", "os.chflags", "os.lockf", "fcntl.flock",
           "fcntl.lockf", "shutil.rmtree", "shutil.move", "shutil.copyfile"}

def watch(event, args):
    wrote = event == "open" and isinstance(args[2], int) and args[2] & WRITES
    for path in paths(args) if wrote or event in CHANGES else ():
        if path.startswith(sys.argv[1]):
            print("touched:", event, path, file=sys.stderr, flush=True)

def paths(args):
    if args and isinstance(args[0], int):  # a lock names its file by descriptor
        yield os.readlink(f"/proc/self/fd/{args[0]}")
    yield from (os.fsdecode(each) for each in args if isinstance(each, (str, bytes, os.PathLike)))

sys.dont_write_bytecode = True
sys.addaudithook(watch)
import argparse
from harness.cli import lineage
parser = argparse.ArgumentParser()
lineage.configure(parser)
sys.exit(lineage.run(parser.parse_args(sys.argv[2:])))
"""


def lineage_watched(data: Path, *arguments: str | Path) -> tuple[int, str, list[str]]:
    """Run the command, and return its exit code, its output, and its changes to files below `data`."""
    words = [sys.executable, "-c", WATCH, str(data), *map(str, arguments)]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    touched = [line for line in ended.stderr.splitlines() if line.startswith(TELLS)]
    return ended.returncode, ended.stdout + ended.stderr, touched
