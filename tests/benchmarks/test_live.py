"""The benchmark of the live check: its run is one in which nothing is wrong, and its table has all figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.live import main, measure, table_of
from benchmarks.long_run import READ_EVERY, events, long_run
from checkers.live.watch import LiveCheck


def test_long_run_is_lawful_and_has_a_read_now_and_then() -> None:
    ops, watch = list(long_run(2 * READ_EVERY)), LiveCheck()
    assert {None} == {watch.step(op) for op in ops}
    assert [*range(len(ops))] == [op.index for op in ops]
    assert 2 == sum(op.f == "read" and op.type == "ok" for op in ops)
    assert len(ops) == len(list(events(2 * READ_EVERY)))


def test_every_figure_is_measured_and_no_history_is_left(tmp_path: Path) -> None:
    found = measure(500, tmp_path)
    assert [] == list(tmp_path.iterdir())
    assert len(list(long_run(500))) == found.ops
    assert found.entries >= 500
    assert min(found.alone_s, found.early, found.late, found.in_memory, found.in_file) > 0


def test_table_has_a_row_for_each_figure(tmp_path: Path) -> None:
    console = Console(width=120, record=True, quiet=True)
    console.print(table := table_of([measure(200, tmp_path)] * 2))
    assert 6 == table.row_count


def test_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["--records", "200", "--repeats", "1"])
    assert "recording into a file, with / without" in capsys.readouterr().out
