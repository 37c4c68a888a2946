"""The commit that a suite records."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.suite import version


def test_commit_is_that_of_this_checkout_or_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert version.commit()
    monkeypatch.setattr(version, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert "unknown" == version.commit()
