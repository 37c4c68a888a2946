"""A closed site or ledger creates nothing more, even if the site is closed while it is being opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cleanup.ledger import Ledger, runs_dir
from harness.hosts import site as module
from harness.hosts.site import Site
from harness.model import UsageError


def test_close_during_open_leaves_no_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path / "run", power_tier="watermark", drain=None)
    monkeypatch.setattr(module, "require_free_space", lambda _folder: site.close())
    with pytest.raises(UsageError, match="closed while it was being opened"):
        site.open()
    assert [] == [path for path in runs_dir().iterdir() if path.is_dir()]


def test_nothing_is_made_in_a_ledger_that_was_closed(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    ledger.close()
    with pytest.raises(UsageError, match="closed; expected no call after close"):
        ledger.run("touch", str(tmp_path / "made"))
    assert False is (tmp_path / "made").exists()
