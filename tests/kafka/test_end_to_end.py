"""
The command `test-kafka` on the oldest release and on our broker: from jars to a table, exit code and report.

Source: KIP-101, Motivation, Scenario 1, with elections that no failure causes: a killed broker of Apache Kafka is
out of the ISR, or refused, before it can be back.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main
from harness.model import EXIT_CODES
from harness.run.result import Status
from harness.run.suite import Suite
from tests.kept import exhaustive
from tests.needs import needs

# CI runs the same scenario on two releases.
RELEASE = "0.10.2.2"
pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.spark, exhaustive, needs(f"kafka-{RELEASE}")]


def test_release_loses_what_the_protocol_loses_that_it_corresponds_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--release", RELEASE, "--scenario", "kip101-1-elect", "--seed", "7", "--results", str(tmp_path)]
    assert EXIT_CODES["valid"] == main(["test-kafka", *asked])
    printed = capsys.readouterr().out
    (run,) = [path for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink()]
    suite = Suite.read(run / "suite.json")
    assert [(RELEASE, "lost m2"), ("hw", "lost m2")] == [(cell.protocol, cell.found) for cell in suite.results]
    assert {Status.AS_EXPECTED} == {cell.status for cell in suite.results}
    assert "✓ same" in printed
    assert (run / "report.html").exists()
