from __future__ import annotations

import logging
import resource

import pytest

from targets.broker.files import KEPT_BACK, share_files
from targets.broker.limits import Limits

INFINITE = resource.RLIM_INFINITY


@pytest.fixture
def limits_of(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, int]]:
    """The limit of open files of a process that is not this one: (soft, hard) under "now"."""
    found = {"now": (1_024, 1 << 20)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: found["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: found.update(now=wanted))
    return found


def test_soft_limit_is_raised_as_far_as_it_is_needed(limits_of: dict[str, tuple[int, int]]) -> None:
    asked = Limits(connections_max=2_000, internal_connections_max=100, log_files_open_max=300)
    assert asked == share_files(asked)
    assert (2_000 + 100 + 300 + KEPT_BACK, 1 << 20) == limits_of["now"]


@pytest.mark.parametrize("enough", [(1 << 20, 1 << 20), (INFINITE, INFINITE)])
def test_limit_that_is_high_enough_stays(limits_of: dict[str, tuple[int, int]], enough: tuple[int, int]) -> None:
    limits_of["now"] = enough
    assert Limits() == share_files(Limits())
    assert enough == limits_of["now"]


@pytest.mark.parametrize("files", [64, 256, 1_024, 4_096])
def test_few_files_are_shared_and_told(
    limits_of: dict[str, tuple[int, int]], caplog: pytest.LogCaptureFixture, files: int
) -> None:
    caplog.set_level(logging.WARNING)
    limits_of["now"] = (files, files)
    shared = share_files(Limits())
    parts = (shared.log_files_open_max, shared.internal_connections_max, shared.connections_max)
    assert all(part >= 1 for part in parts)
    assert files < 256 or sum(parts) + KEPT_BACK <= files
    assert f"{files} files may be open" in caplog.text
