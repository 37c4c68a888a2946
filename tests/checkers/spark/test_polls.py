"""Runs with consumers: Spark judges them from their tables as this process does from their lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checkers.judge import check_in_process
from harness.model import Kind, PartOps
from tests.checkers.large import check_together
from tests.checkers.plants import polled, polls
from tests.checkers.plants.plant import plants_of
from tests.checkers.spark.test_large import LIMITS
from tests.kept import exhaustive
from tests.tables.stored import silent, stored

pytestmark = pytest.mark.spark

PLANTS = plants_of(vars(polls)) | plants_of(vars(polled))


@pytest.mark.parametrize("emits", [True, False], ids=["brokers emit events", "brokers emit none"])
@exhaustive
def test_run_with_polls_is_judged_alike_from_its_tables(session: Any, tmp_path: Path, emits: bool) -> None:
    histories = [plant.ops if emits else silent(plant.ops) for plant in PLANTS.values()]
    runs = [(tmp_path / str(n), stored(ops, tmp_path / str(n))) for n, ops in enumerate(histories)]
    found = check_together(session, runs, tmp_path / "all", LIMITS)
    expected = [check_in_process(PartOps(ops)) for ops in histories]
    assert expected == found.anomalies
    kinds = {each.kind for anomalies in expected for each in anomalies}
    assert {Kind.READ_LOST, Kind.POLL_SKIP, Kind.PHANTOM, Kind.DUPLICATE, Kind.INCONSISTENT_OFFSETS} <= kinds
