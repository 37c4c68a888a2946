"""Stored runs that are damaged: each command says in a line what it cannot read, ends with its code, waits not."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pytest

from checkers.measures.folders import Folders
from checkers.measures.run import facts_of
from checkers.measures.schema import FOLDER, write_schema
from checkers.measures.stored import stored_rows, untabled_rows
from checkers.spark.measured import measures_in
from harness.cli import summary
from harness.cli.main import main
from harness.model import EXIT_CODES
from harness.run.store import Run
from harness.suite.described import describe
from harness.version import PACKAGE
from tests import damages
from tests.cli.test_check import InProcess, run_in, suite_in, use
from tests.kept import keep
from tests.needs import needs
from tests.report.test_summary_page import frames

VALID, USAGE, UNKNOWN, INVALID = (EXIT_CODES[word] for word in ("valid", "usage", "unknown", "invalid"))
# Of the damages, those in `make test`.
KEPT: Final = ("missing", "fifo")
# Damages of a history whose first line is whole.
BEGINS: Final = ("cut", "cut at a line", "without a line", "line of another type")


@pytest.fixture(autouse=True)
def spark(java_found: None, monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """Judge and count in this process, as Spark does in its own."""

    def summarized(found: Folders, out: Path, *_: Any) -> dict[str, pd.DataFrame]:
        (out / FOLDER).mkdir()
        write_schema(out / FOLDER)
        tables = {str(folder): (folder / "suite.json").read_bytes() for folder in found.suites}
        rows = [row for folder, content in tables.items() for row in stored_rows(folder, content)]
        for folder, runs in found.untabled.items():
            described = describe(folder, runs)
            rows += untabled_rows(str(folder), described.suite, described.unread)
        seen = {str(run.path) for run in found.small} | {
            str(at / (name or "")) for at, name, _ in found.unreadable
        }
        reasons = [row["path"] for row in rows if row["what"] == "run" and row["path"] not in seen]
        reasons += [row["reason"] for row in rows if row["what"] == "unreadable"]
        reasons += [why for _, _, why in found.unreadable]
        facts = [row for run in found.small for row in facts_of(measures_in(run.history.read_bytes()))]
        reasons += [row["reason"] for row in facts if row["what"] == "unreadable"]
        unreadable = pd.DataFrame([{"night": None, "suite": "s", "run": None, "reason": why} for why in reasons])
        return {**frames(out), "unreadable": unreadable}

    monkeypatch.setattr(summary, "_summarize", summarized)
    return use(InProcess(), monkeypatch)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    suite = suite_in(tmp_path / "a", one="lost-bad", two="lost-ok")
    table = json.loads((suite / "suite.json").read_text("utf-8"))
    table["started"] = "2026-11-20T22:00:00+00:00"
    (suite / "suite.json").write_text(json.dumps(table), "utf-8")
    shutil.copytree(suite, tmp_path / "sound")
    return suite


def codes(suite: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, int, int]:
    """Return the codes of check, summary and agree; with 2 there is one line that names the place."""
    found = []
    sound = suite.parent / "sound"
    for words in (["check", str(suite)], ["summary", str(suite), "--json"], ["agree", str(suite), str(sound)]):
        code = main(words)
        err = capsys.readouterr().err
        if code == USAGE:
            told = err.splitlines()[-1]
            assert told.startswith(f"{PACKAGE}: {suite}") and "; expected " in told, err
        found.append(code)
    return found[0], found[1], found[2]


@pytest.mark.parametrize("name", keep(damages.OF_HISTORIES, *KEPT, "cut at a line"))
def test_history_that_is_damaged_is_unknown_for_every_command(
    suite: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`agree` said 4 of a history that was cut in the middle, and waited for a FIFO; `shrink` waited too."""
    damages.OF_HISTORIES[name](Run(path=suite / "one").history)
    assert (UNKNOWN, UNKNOWN, UNKNOWN) == codes(suite, capsys)
    assert USAGE == main(["shrink", str(suite / "one")])
    err = capsys.readouterr().err
    assert 1 == err.count("\n") and ("no schedule in its first line" in err) == (name in BEGINS), err


@pytest.mark.parametrize("name", keep(damages.OF_FILES, *KEPT))
def test_table_that_is_damaged_is_no_suite_to_compare_and_its_runs_are_checked(
    suite: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damages.OF_FILES[name](suite / "suite.json")
    # The histories of this suite name another seed than its table, which `agree` refuses.
    expected = (VALID, VALID, USAGE) if name == "missing" else (UNKNOWN, UNKNOWN, USAGE)
    assert expected == codes(suite, capsys)


@pytest.mark.parametrize("name", keep(damages.OF_FILES, *KEPT))
def test_verdict_that_is_damaged_is_unknown_where_it_alone_says_what_was_found(
    suite: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check` held such a run to its expectation (4), although what is stored of it could not be read."""
    (suite / "suite.json").unlink()
    damages.OF_FILES[name](Run(path=suite / "one").anomalies)
    # Without a stored verdict a run is held to its expectation; this one has lost records. Its seed is another.
    assert (INVALID if name == "missing" else UNKNOWN, UNKNOWN, USAGE) == codes(suite, capsys)


@needs("plain-user")
@pytest.mark.parametrize(("path", "expected"), [
    ("one/history.jsonl", (UNKNOWN, UNKNOWN, UNKNOWN)),
    ("one", (UNKNOWN, UNKNOWN, UNKNOWN)),
    ("suite.json", (UNKNOWN, UNKNOWN, USAGE)),
    (".", (USAGE, USAGE, USAGE)),
])  # fmt: skip
def test_what_may_not_be_read_is_one_line_for_every_command(
    suite: Path, capsys: pytest.CaptureFixture[str], path: str, expected: tuple[int, int, int]
) -> None:
    """A folder that may not be searched was a PermissionError's traceback."""
    damages.unreadable(suite / path)
    try:
        assert expected == codes(suite, capsys)
        assert USAGE == main(["shrink", str(suite / "one")])
        assert path == "suite.json" or os.strerror(13) in capsys.readouterr().err
    finally:
        (suite / path).chmod(0o700)


def test_check_says_on_stderr_how_far_it_is_where_no_terminal_is(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It printed nothing until all was judged: minutes, on a busy machine."""
    run_in(suite, "three", "lost-ok")
    main(["check", str(suite)])
    assert [
        "checking 3 runs of 1 suite; Spark starts first, which takes some seconds",
        "checked 3 of 3 runs",
    ] == capsys.readouterr().err.splitlines()
