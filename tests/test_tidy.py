"""The code follows the house style; each check finds a planted fault of its kind."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import tidy
from tests.needs import needs
from tests.tidy import Tree

LONG = "x = 1\n" * (tidy.LINES_MAX + 1)
CHECKS = (
    tidy.too_long,
    tidy.machine_places,
    tidy.orphans,
    tidy.own_skips,
    tidy.foreign_names,
)
NAMES = (
    *("ZooKeeper", "znode", "zk", "czxid", "zk_version", "chroot", "kazoo", "LeaderAndIsr", "StopReplica"),
    *("UpdateMetadata", "OffsetForLeaderEpoch", "ListOffsets", "__cluster_metadata", "leader-epoch-checkpoint"),
    "replication-offset-checkpoint",
)
SKIPS = (
    "pytestmark = pytest.mark.skipif(True, reason='')\n",
    "pytest.skip('no bash')\n",
    "LOOP = os.geteuid() == 0\n",
    "from shutil import which\n",
    "if Path('/dev/fuse').exists(): pass\n",
    "if os.path.exists('/usr/sbin/sshd'): pass\n",
)


pytestmark = needs("git")


@pytest.fixture(scope="module")
def tree() -> Tree:
    return tidy.tracked()


def test_tree_holds_the_project(tree: Tree) -> None:
    assert {"harness/model.py", "README.md", "pyproject.toml", "tests/test_tidy.py"} <= tree.keys()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_project_is_tidy(tree: Tree, check: Callable[[Tree], list[str]]) -> None:
    assert [] == check(tree)


def test_project_has_no_big_blob(tree: Tree) -> None:
    assert [] == tidy.big_blobs()


@pytest.mark.parametrize(
    ("check", "path", "text", "complaint"),
    [
        (tidy.too_long, "harness/a.py", LONG, "401 lines"),
        (tidy.too_long, "tests/a.py", f'"""Much."""\n{LONG}', "402 lines"),
        (tidy.orphans, "harness/a.py", "x = 1\n", "nothing imports it"),
        (tidy.orphans, "harness/a.py", "from harness import a\n", "nothing imports it"),
        (tidy.foreign_names, "harness/zookeeper.py", "x = 1\n", "harness/zookeeper.py:0: 'zookeeper'"),
        *(
            (tidy.foreign_names, "checkers/a.py", f"x = 1  # {name}\n", f"checkers/a.py:1: '{name}'")
            for name in NAMES
        ),
        *((tidy.own_skips, "tests/a/test_b.py", text, "expected @needs(ROW)") for text in SKIPS),
    ],
)
def test_planted_fault_is_found(check: Callable[[Tree], list[str]], path: str, text: str, complaint: str) -> None:
    found = check({path: text})
    assert 1 == len(found)
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("check", "files"),
    [
        (tidy.too_long, {"harness/a.py": f'"""Much.\n\nLength: one table.\n"""\n{LONG}'}),
        (tidy.orphans, {"harness/a.py": "x = 1\n", "harness/__init__.py": "from harness import a\n"}),
        (tidy.orphans, {"targets/a.py": "x = 1\n", "targets/__init__.py": "T = {'a': 'targets.a'}\n"}),
        (tidy.orphans, {"harness/a.py": "x = 1\n", "pyproject.toml": 'run = "harness.a:main"\n'}),
        (tidy.own_skips, {"tests/a.py": "patch.setattr(os, 'geteuid', lambda: 7)\n"}),
        (tidy.own_skips, {"harness/a.py": "shutil.which('tc')\n", "tests/needs.py": "shutil.which('tc')\n"}),
        (tidy.foreign_names, {"targets/a.py": "zookeeper\n", "harness/a.md": "znode\n", "harness/b.py": "bzk\n"}),
        (tidy.orphans, {"harness/a.py": 'if __name__ == "__main__":\n    pass\n'}),
    ],
)
def test_what_is_allowed_is_no_fault(check: Callable[[Tree], list[str]], files: Tree) -> None:
    assert [] == check(files)


def test_path_of_the_machine_is_found(tmp_path: Path) -> None:
    root, home = tmp_path / "checkout", tmp_path / "me"
    for folder in (root, home, tmp_path / "notes"):
        folder.mkdir()
    places = (f"{root}/x", f"{tmp_path}/y", f"{home}/z", "../notes/n.md")
    tree = {
        "docs/a.md": "".join(f"see {place}\n" for place in places),
        "docs/b.md": "../notesbook, ../docs, x/tmp\n",
    }
    found = tidy.machine_places(tree, root, home)
    assert ["docs/a.md:1", "docs/a.md:2", "docs/a.md:3", "docs/a.md:4"] == [c.split(": ")[0] for c in found]


def test_big_blob_is_found_though_a_later_commit_removed_it(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "core.hooksPath=/dev/null")
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    git("init")
    (tmp_path / "big").write_bytes(b"x" * 2_000)
    git("add", "big")
    git("commit", "-m", "big")
    git("rm", "big")
    git("commit", "-m", "gone")
    assert ["big: 2000 bytes in git; expected at most 1000"] == tidy.big_blobs(tmp_path, 1_000)
    assert [] == tidy.big_blobs(tmp_path, 3_000)
