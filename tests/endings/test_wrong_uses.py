"""Every use of the list ends with one line and a documented exit code, has started nothing, and leaves nothing."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.cli.commands import commands
from harness.cli.main import main
from tests.endings.command import ROOT, left_of
from tests.endings.wrong_uses import FENCEPOST, MODULES, Use, make_things
from tests.kept import keep

END_S_MAX = 180.0
COMMAND = "harness.cli.main"
DOCUMENTED = set(map(int, re.findall(r"^\| (\d+) \| \w+", (ROOT / "docs/exit-codes.md").read_text("utf-8"), re.M)))


@pytest.fixture
def things(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the paths of things that no command needs; no jar is in the cache of this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    return make_things(folder / "things")


def test_list_has_every_command_and_sixty_uses_or_more() -> None:
    assert len({each.words for each in (*FENCEPOST, *MODULES)}) == len(FENCEPOST) + len(MODULES) >= 60
    assert set(commands()) <= {each.words[0] for each in FENCEPOST if each.words}
    assert {0, 1, 2, 3, 4, 5, 130, 141} == DOCUMENTED


@pytest.mark.parametrize("each", FENCEPOST, ids=str)
def test_wrong_use_is_one_line_and_the_code_for_it(
    each: Use, folder: Path, things: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = with_results(each, folder, things)
    assert 2 == main(words)
    printed = capsys.readouterr()
    check_line(printed.err, each.says)
    assert printed.err.startswith("fencepost: ")
    assert "Traceback" not in printed.out
    assert False is (folder / "results").exists()
    assert [] == left_of(folder)


@pytest.mark.slow
@pytest.mark.parametrize("every", keep([6, 1], 6))
def test_wrong_use_of_every_program_is_one_line_of_a_process(
    folder: Path, things: dict[str, str], every: int
) -> None:
    """These take the time of an interpreter's start each, so they run side by side in one test."""
    # Of the command itself some that its own process could spoil: it may have started threads, or imported less.
    shown = {"plaay", "play --seed -1", "run --schedule {binary}", "agree {s_deep} {s_one}", "lineage {folder}"}
    some = [Use((COMMAND, *each.words), each.says) for each in FENCEPOST if " ".join(each.words) in shown]

    def ended(each: Use) -> subprocess.CompletedProcess[str]:
        return python("-m", *(word.format(**things) for word in each.words), folder=folder)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        uses = (*MODULES[::every], *some)
        for each, process in zip(uses, pool.map(ended, uses), strict=True):
            assert (2, "") == (process.returncode, process.stdout), (each, process.stderr)
            check_line(process.stderr, each.says)
    assert len(shown) == len(some)
    assert [] == left_of(folder)


# --- the surroundings ----------------------------------------------------------------------------------------
OPENS = """
import os
from harness.ending import end
end("x", lambda: print(os.readlink("/proc/self/fd/0")) or 0)
"""
SCENARIOS = ("-m", COMMAND, "scenarios", "kip101-1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shell", "says"),
    [
        (
            "{run} > /dev/full",
            "fencepost: stdout: No space left on device; expected a place that can be written\n",
        ),
        (
            "{run} >&-",
            "fencepost: stdout: closed; expected an open one, such as a terminal, a file or /dev/null\n",
        ),
        ("{run} --help > /dev/full", "fencepost: stdout: No space left on device; expected a place"),
        ("{run} nope <&- >&-", "fencepost: stdout: closed; expected an open one"),
        (
            "mkdir gone && cd gone && rmdir ../gone && {run}",
            "fencepost: current folder: No such file or directory; expected one that exists; go to another\n",
        ),
    ],
)
def test_surroundings_that_a_command_cannot_do_without_are_told(shell: str, says: str, folder: Path) -> None:
    ended = in_shell(shell, folder)
    assert (2, "") == (ended.returncode, ended.stdout), ended.stderr
    check_line(ended.stderr, says.removesuffix("\n"))


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["{run} nope 2>&-", "{run} nope 2>/dev/full", "{run} <&- >&- 2>&-"])
def test_without_a_place_for_the_line_the_code_says_it(shell: str, folder: Path) -> None:
    ended = in_shell(shell, folder)
    assert (2, "", "") == (ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.slow
def test_reader_that_ends_early_is_no_error(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as stdout:
        ended = subprocess.run(
            [sys.executable, *SCENARIOS],
            cwd=ROOT,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=END_S_MAX,
            check=False,
        )
    assert (141, b"") == (ended.returncode, ended.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"TERM": "no-such-terminal", "COLUMNS": "wide", "LINES": "-1"},
        {"HOME": "/nonexistent", "PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=str,
)
def test_surroundings_that_a_command_can_do_without_change_nothing(
    variables: dict[str, str], folder: Path
) -> None:
    ended = python(*SCENARIOS, folder=folder, only=variables)
    assert (0, "") == (ended.returncode, ended.stderr)
    assert ended.stdout.startswith("kip101-1  A follower restarts with a lagging high watermark")


@pytest.mark.slow
def test_closed_standard_files_are_never_those_of_a_run(folder: Path) -> None:
    """Without stdin the first file that a run opens would be its stdin, and so its nodes' stdin."""
    ended = in_shell(f"{{python}} -c '{OPENS}' <&-", folder)
    assert (0, "/dev/null\n") == (ended.returncode, ended.stdout), ended.stderr


@pytest.mark.slow
def test_name_that_is_not_utf_8_is_shown_with_what_can_be_shown_of_it(folder: Path) -> None:
    ended = in_shell("{run} $'m\\xff\\e[31m'", folder)
    assert 2 == ended.returncode
    check_line(ended.stderr, "unknown scenario 'm\\udcff\\x1b[31m': expected one of ")


# --- pieces --------------------------------------------------------------------------------------------------
def with_results(each: Use, folder: Path, things: dict[str, str]) -> list[str]:
    """Return the words of a use, with things in place of their names, and results within the test's folder."""
    words = [word.format(**things) if "{" in word else word for word in each.words]
    plays = words and words[0] in ("test-kip101", "play", "run", "test-kafka") and "--results" not in words
    return [words[0], "--results", str(folder / "results"), *words[1:]] if plays else words


def check_line(error: str, says: str) -> None:
    """Check that an error is one line of bounded length, which says this and where to look."""
    assert "Traceback" not in error, error
    assert 1 == error.count("\n") and error.endswith("\n"), error
    assert error[:-1].isprintable(), error
    assert says in error
    assert len(error) < 4_100


def python(*words: str, folder: Path, only: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python in the project's folder, with the test's state; `only`: with no other variable."""
    variables = {**os.environ} if only is None else {"PATH": os.defpath, **only}
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**variables, "XDG_STATE_HOME": str(folder / "state"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=END_S_MAX,
        check=False,
    )


def in_shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in the test's folder; {run} is a command that lists a scenario."""
    words: Sequence[str] = (sys.executable, *SCENARIOS)
    text = line.replace("{run}", shlex.join(words)).replace("{python}", shlex.quote(sys.executable))
    return subprocess.run(
        ["bash", "-c", text],
        cwd=folder,
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=END_S_MAX,
        check=False,
    )
