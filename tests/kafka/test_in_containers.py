"""A release of Apache Kafka in containers gets the same verdict for a scenario as on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main
from harness.model import EXIT_CODES
from harness.run.result import Status
from harness.run.suite import Suite
from tests.kept import exhaustive
from tests.needs import needs

RELEASE = "3.9.1"

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.spark,
    exhaustive,
    needs(f"kafka-{RELEASE}"),
]


def test_release_in_containers_is_as_it_is_on_this_machine(tmp_path: Path) -> None:
    """Source: KIP-101, Motivation, Scenario 2."""
    asked = ["--host", "docker", "--release", RELEASE, "--scenario", "kip101-2", "--seed", "7"]
    assert EXIT_CODES["valid"] == main(["test-kafka", *asked, "--results", str(tmp_path)])
    (run,) = [path for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink()]
    suite = Suite.read(run / "suite.json")
    assert [(RELEASE, "permitted m2"), ("kip380", "permitted m2")] == [
        (cell.protocol, cell.found) for cell in suite.results
    ]
    assert {Status.AS_EXPECTED} == {cell.status for cell in suite.results}
