"""
The command `test` on Apache RocketMQ, from jars to a table and a report.

Source:  docs/rocketmq.md: a master that is replaced acknowledges what it alone has.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main
from harness.model import EXIT_CODES
from harness.run.result import Status
from harness.run.suite import Suite
from tests.needs import needs

RELEASE = "5.5.0"
pytestmark = [pytest.mark.slow, pytest.mark.spark, needs(f"rocketmq-{RELEASE}", "java")]


def test_record_that_a_replaced_master_acknowledged_alone_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--scenario", "acknowledged-alone", "--seed", "7", "--results", str(tmp_path)]
    code = main(["test", f"rocketmq:{RELEASE}", *asked])
    printed = capsys.readouterr()
    (run,) = [path for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink()]
    (cell,) = Suite.read(run / "suite.json").results
    assert (RELEASE, "lost x", Status.AS_EXPECTED) == (cell.protocol, cell.found, cell.status), printed.out
    assert (EXIT_CODES["valid"], True) == (code, "as expected" in printed.out)
    assert (run / "report.html").exists()
