"""
Install the package as a user does, in a new environment, and use it from another folder: `make test-package`.

By hand, since it needs the index and minutes. The folder has packages of our names, as a checkout has: none of
them may be imported. Each command is printed with its exit code and the end of what it said.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.package import building
from tests.package.test_elsewhere import make_decoys

LINES_SHOWN: Final = 6
# The runs that commands after them are given.
OF_RUNS: Final = ("kip101-1-hw", "kip101-2-hw")
# A command, and the code with which it ends; the first in a new environment without any extra.
COMMANDS: Final[tuple[tuple[str, int], ...]] = (
    ("fencepost --version", 0),
    ("fencepost scenarios kip101-1", 0),
    ("fencepost test-kip101 --scenario kip101-1 --protocol hw --protocol kip101 --seed 7", 0),
    ("fencepost test-kip101 --scenario kip101-2 --protocol hw --seed 7", 0),
    ("fencepost play --host sim --scenario kip101-3 --seed 7", 0),
    ("fencepost run --host sim --protocol kip380 --seed 0 --seeds 20", 0),
    ("fencepost run --host sim --protocol hw --seed 0 --seeds 3 --no-shrink", 4),
    ("fencepost run --host local --workload mixed --seed 3 --time 15 --no-fresh", 0),
    ("fencepost shrink {run}", 0),
    ("fencepost check results", 0),
    ("fencepost summary results", 0),
    ("fencepost lineage {data}", 4),
    ("fencepost agree results/latest results/latest", 0),
    # Without -P, Python itself would take what it imports from the current folder.
    ("python -P -m harness.hosts.images", 2),
    ("fencepost kafka list", 0),
    ("fencepost nightly --minutes 1 --host sim --seed 1", 0),
    ("fencepost clean", 2),
    ("fencepost play --host docker --scenario kip101-1", 2),
    ("fencepost run --host ssh", 2),
    ("fencepost run --host local --target kafka:0.10.2.2", 2),
)


def main() -> int:
    """Install, play all commands, and return 0 if each ended as it must."""
    with tempfile.TemporaryDirectory(prefix="fencepost-package-") as made:
        folder = Path(made)
        environment, elsewhere = folder / "environment", folder / "elsewhere"
        (folder / "checkout").mkdir()
        elsewhere.mkdir()
        _run([sys.executable, "-m", "venv", str(environment)], folder)
        pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "-q"]
        _run([*pip, "."], building.copy_to(folder / "checkout"))
        make_decoys(elsewhere)
        wrong = [line for line, code in COMMANDS if not _play(line, code, environment, elsewhere)]
    for line in wrong:
        print(f"ended otherwise: {line}")
    return 1 if wrong else 0


def _run(words: Sequence[str], folder: Path) -> None:
    print("$", *words, flush=True)
    subprocess.run(words, cwd=folder, check=True)


def _play(line: str, code: int, environment: Path, elsewhere: Path) -> bool:
    # Of commands before: a run that lost records, and the logs of one whose replicas end apart (KIP-101,
    # Scenario 2); those of Scenario 1 agree, since both replicas lack what was lost.
    run, apart = (next(iter(sorted(elsewhere.glob(f"results/2*/{name}"))), elsewhere) for name in OF_RUNS)
    data = " ".join(sorted(map(str, apart.glob("logs/*-data"))))
    print(f"\n$ {line}", flush=True)
    path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        line.format(run=run, data=data).split(),
        cwd=elsewhere,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    for said in done.stdout.splitlines()[-LINES_SHOWN:]:
        print(f"  {said}")
    print(f"  -> {done.returncode}{'' if done.returncode == code else f', expected {code}'}", flush=True)
    return done.returncode == code


if __name__ == "__main__":
    sys.exit(main())
