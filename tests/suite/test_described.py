"""A folder of judged runs without a suite.json, as a search leaves it, is what its runs say of themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.measures.folders import find_folders
from checkers.measures.stored import untabled_rows
from harness.cli.main import main
from harness.model import EXIT_CODES, UsageError
from harness.run.store import Run, SuiteDir, write_anomalies
from harness.suite.described import describe, suite_in
from tests.cli.test_check import run_in
from tests.cli.test_check import suite_in as store_suite_in

NAME = "20261120T131415-search-0"


def folder_of(parent: Path, **stories: str) -> Path:
    """Keep runs as a search does: each judged, and no table."""
    for name, story in stories.items():
        run_in(parent / NAME, name, story)
    return parent / NAME


def runs_of(folder: Path) -> list[Run]:
    return SuiteDir(path=folder).runs()


def test_runs_without_a_table_have_the_results_that_they_were_judged_with(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    judged = {name: run_in(folder, name, story) for name, story in (("one", "lost-bad"), ("two", "lost-ok"))}
    found = describe(folder, runs_of(folder))
    assert {} == found.unread
    assert "2026-11-20T13:14:15+00:00" == found.suite.started
    for result in found.suite.results:
        same = judged[result.run]
        assert (same.found, same.status, same.reason, same.verdict, same.anomalies) == (
            *(result.found, result.status, result.reason, result.verdict, result.anomalies),
        )


def test_run_that_was_not_judged_or_cannot_be_read_is_named_and_no_other(tmp_path: Path) -> None:
    """A suite that was killed has runs, and none of them was judged."""
    folder = folder_of(tmp_path, a="lost-bad", b="lost-ok", c="lost-ok", d="lost-ok")
    Run(path=folder / "b").anomalies.unlink()
    Run(path=folder / "c").anomalies.write_text("{", encoding="utf-8")
    Run(path=folder / "d").history.write_bytes(b"\n")
    found = describe(folder, runs_of(folder))
    assert ["a"] == [result.run for result in found.suite.results]
    parts = {
        "b": "anomalies.json: No such file or directory; expected what was found when the run was judged; "
        "`fencepost check --store` judges it",
        "c": "anomalies.json: JSONDecodeError",
        "d": "history.jsonl: no line with the run's set-up",
    }
    assert parts.keys() == found.unread.keys()
    assert [] == [(name, found.unread[name]) for name, part in parts.items() if part not in found.unread[name]]


@pytest.mark.parametrize("path", ["20261120T131415-search-0", "20261120T131415-3/findings/kip380-hw", "play-1"])
def test_suite_began_when_its_folder_or_that_of_its_night_says(tmp_path: Path, path: str) -> None:
    folder = tmp_path / path
    run_in(folder, "one", "lost-ok")
    started = describe(folder, runs_of(folder)).suite.started
    assert started.endswith("+00:00")
    assert path == "play-1" or "2026-11-20T13:14:15+00:00" == started


def test_rows_of_a_summary_have_no_time_that_nothing_tells(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, one="lost-bad")
    found = find_folders([tmp_path])
    ((path, runs),) = found.untabled.items()
    described = describe(path, runs)
    row, *anomalies = untabled_rows(str(path), described.suite, {"two": "cut"})
    assert ("run", "one", "invalid", None, None) == (
        *(row["what"], row["run"], row["verdict"], row["seconds"], row["elections"]),
    )
    assert ("unreadable", "two", f"{folder}/two", "cut") == (
        *(anomalies[-1][key] for key in ("what", "run", "path", "reason")),
    )


def test_searches_are_compared_run_by_run_whatever_their_first_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = folder_of(tmp_path / "a", one="lost-bad"), folder_of(tmp_path / "b", one="lost-bad")
    assert EXIT_CODES["valid"] == main(["agree", str(one), str(other)])
    assert "1 agree in anomalies and in every record of every log, 0 differ" in capsys.readouterr().out
    Run(path=other / "one").anomalies.write_text("[]", encoding="utf-8")
    assert EXIT_CODES["invalid"] == main(["agree", str(one), str(other)])
    assert "only the first found lost" in capsys.readouterr().out
    run_in(other, "two", "lost-ok")
    Run(path=other / "two").anomalies.unlink()
    write_anomalies(Run(path=other / "one"), describe(one, runs_of(one)).suite.results[0].anomalies)
    assert EXIT_CODES["unknown"] == main(["agree", str(one), str(other)])
    assert f"{other / 'two'}: not compared: " in capsys.readouterr().out


def test_table_that_is_there_is_the_suite_and_one_that_is_broken_is_refused(tmp_path: Path) -> None:
    suite = store_suite_in(tmp_path, one="lost-ok")
    assert ["one"] == [result.run for result in suite_in(suite).suite.results]
    (suite / "suite.json").write_bytes(b"")
    with pytest.raises(UsageError, match=r"suite\.json: JSONDecodeError"):
        suite_in(suite)
    (suite / "suite.json").unlink()
    (suite / "one" / "anomalies.json").unlink()
    with pytest.raises(UsageError, match=r"no suite\.json, and no run that was judged; of one: "):
        suite_in(suite)
