"""The runs of the warm-up take every path of a check, and leave nothing behind."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from checkers import CHECKERS
from checkers.checker import check
from checkers.spark.warm import _ops, warm_up
from harness.model import Kind


def test_one_run_kept_its_record_and_one_lost_it() -> None:
    kinds = {kept: [anomaly.kind for anomaly in check(_ops(kept), CHECKERS)] for kept in (True, False)}
    assert Kind.LOST not in kinds[True]
    assert Kind.LOST in kinds[False]


@pytest.mark.spark
def test_warm_spark_keeps_nothing_of_it(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    warm_up(session)
    assert [] == list(tmp_path.iterdir())
