"""
The command `test` on Apache Fluss, from its jar to a table, a report, and the lineage of what its servers left.

Source:  docs/fluss.md: the only replica is killed and started again, and cuts what it acknowledged.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main
from harness.model import EXIT_CODES
from harness.run.result import Status
from harness.run.suite import Suite
from tests.needs import needs

RELEASE = "0.9.1"
pytestmark = [pytest.mark.slow, pytest.mark.spark, needs(f"fluss-{RELEASE}")]


def test_restart_cuts_what_was_acknowledged_and_the_cut_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--scenario", "restart-cuts", "--seed", "7", "--results", str(tmp_path)]
    assert EXIT_CODES["valid"] == main(["test", "fluss", *asked])
    assert "as expected" in capsys.readouterr().out
    (run,) = [path for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink()]
    (cell,) = Suite.read(run / "suite.json").results
    assert (RELEASE, "lost m2", Status.AS_EXPECTED) == (cell.protocol, cell.found, cell.status)
    (loss,) = cell.anomalies
    assert "as it printed, A cut its log to" in loss.sentence
    assert (run / "report.html").exists()


def test_lineage_reads_what_tablet_servers_left(capsys: pytest.CaptureFixture[str]) -> None:
    data = Path(__file__).parents[1] / "targets" / "fluss" / "data" / RELEASE
    code = main(["lineage", "--target", "fluss", str(data / "0"), str(data / "1")])
    printed = capsys.readouterr()
    assert code in (EXIT_CODES["valid"], EXIT_CODES["unknown"]), printed.err
    assert "no epoch" in printed.out
