"""The failure of a run is one line, and its traceback a file."""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path

import pytest

from harness.model import FencepostError, UsageError
from harness.run.failure import REASON_CHARACTERS_MAX, failure_of, reason_of
from harness.run.store import Run


def raised_while_handling(first: Exception, second: Exception) -> Exception:
    """Return the second error as it is raised while the first is handled, as by a clean-up."""
    with suppress(type(second)):
        try:
            raise first
        finally:
            raise second
    return second


def test_error_of_ours_is_said_without_its_class_and_any_other_with_it() -> None:
    assert "disk: full" == reason_of(UsageError("disk: full"))
    assert "KeyError: 'x'" == reason_of(KeyError("x"))
    assert "TimeoutError" == reason_of(TimeoutError())


def test_reason_is_one_line_of_bounded_length() -> None:
    assert "start A: ended; it said: | boom" == reason_of(UsageError("start A: ended; it said:\n\n  boom\n"))
    assert REASON_CHARACTERS_MAX + 1 == len(reason_of(UsageError("x" * 100_000)))


def test_failed_clean_up_is_said_after_what_failed_first() -> None:
    error = raised_while_handling(KeyError("x"), FencepostError("mount: busy"))
    assert "KeyError: 'x'; then mount: busy" == reason_of(error)
    same = raised_while_handling(FencepostError("mount: busy"), FencepostError("mount: busy"))
    assert "mount: busy" == reason_of(same)


def test_cause_is_left_to_what_it_caused() -> None:
    error = UsageError("no engine answers")
    error.__cause__ = OSError(errno.ECONNREFUSED, "Connection refused")
    assert "no engine answers" == reason_of(error)


def test_traceback_is_stored_in_the_runs_folder(tmp_path: Path) -> None:
    run = Run(path=tmp_path / "run")
    error = raised_while_handling(KeyError("x"), FencepostError("mount: busy"))
    assert "KeyError: 'x'; then mount: busy (traceback in traceback.txt)" == failure_of(run, error)
    text = run.traceback.read_text(encoding="utf-8")
    assert "KeyError: 'x'" in text
    assert "FencepostError: mount: busy" in text


def test_traceback_that_cannot_be_stored_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    said = failure_of(Run(path=tmp_path), KeyError("x"))
    assert "KeyError: 'x' (its traceback could not be written: No space left on device)" == said
