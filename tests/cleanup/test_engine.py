"""An engine that does not answer raises an error and leaves no socket open."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path

import pytest

from harness.cleanup.engine import connect
from harness.model import UsageError


def test_engine_that_is_not_there_leaves_no_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(UsageError, match=r"no engine answers at unix:///.*/none.sock \(.*No such file"):
            connect()
        gc.collect()
    assert [] == [str(warning.message) for warning in caught]
