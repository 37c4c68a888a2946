"""
The command `test` on NATS JetStream, from the program that was built to a table and a report.

Source:  docs/nats.md: three servers lose their power at once, and with it what all had acknowledged in memory.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main
from harness.model import EXIT_CODES
from harness.run.result import Status
from harness.run.suite import Suite
from tests.needs import needs

RELEASE = "2.15.3"
pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.root, needs(f"nats-{RELEASE}", "loop")]


def test_power_loss_of_all_takes_what_was_acknowledged_in_memory_and_is_permitted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--scenario", "all-lose-power", "--seed", "7", "--results", str(tmp_path)]
    code = main(["test", f"nats:{RELEASE}", *asked])
    printed = capsys.readouterr()
    (run,) = [path for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink()]
    (cell,) = Suite.read(run / "suite.json").results
    found = (RELEASE, "permitted m2", Status.AS_EXPECTED)
    assert found == (cell.protocol, cell.found, cell.status), printed.out
    assert (EXIT_CODES["valid"], True) == (code, "as expected" in printed.out)
    assert (run / "report.html").exists()
