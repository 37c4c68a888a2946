"""The pipe to a Java client: to a thread in place of its process, and to processes that misbehave."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness import limits
from harness.cleanup.ledger import Ledger
from harness.cleanup.process import Identity, identity_of, is_alive
from harness.clients import jvm as module
from harness.clients.children import Children
from harness.clients.jvm import READY, Jvm
from harness.model import HistoryError, PreconditionError
from tests.clients.java_child import Child, starting

# What each planted process does first.
_READY = f"import os, sys, time; told = int(sys.argv[2]); os.write(told, b'{READY}\\n'); "


@pytest.fixture
def started() -> Iterator[Callable[..., tuple[Child, Jvm]]]:
    """Start children that are closed when the test ends."""
    with starting() as start:
        yield start


def soon() -> float:
    return time.monotonic() + limits.CONDITION_WAIT_S_MAX


# --- the pipe ---------------------------------------------------------------------------------------------------
def test_lines_go_both_ways_however_they_are_cut(started: Any) -> None:
    child, jvm = started(lambda words: ("so", "me wo", "rds\nnext \n"))
    jvm.ask("poll", "40")
    assert [["some", "words"], ["next", ""]] == [jvm.hear(soon()), jvm.hear(soon())]
    assert jvm.hear(time.monotonic()) is None
    assert ["poll 40"] == child.asked


@pytest.mark.parametrize(("is_closed", "kind"), [(False, PreconditionError), (True, HistoryError)])
def test_process_that_ends_makes_the_run_unknown_unless_the_run_is_taken_down(
    started: Any, is_closed: bool, kind: type[Exception]
) -> None:
    child, jvm = started(lambda words: ("END",))
    child.ledger.is_closed = is_closed
    jvm.ask("poll")
    with pytest.raises(kind, match=r"client p1: (its process ended with exit code 1; expected|taken down)"):
        jvm.hear(soon())
    with pytest.raises(kind):
        jvm.ask("poll")


def test_process_that_begins_with_something_else_is_refused(started: Any) -> None:
    _, jvm = started(lambda words: (), first="Picked up\n")
    with pytest.raises(PreconditionError, match=r"client p1: it told \['Picked', 'up'\] first; expected ready"):
        jvm.ask("poll")


def test_process_that_tells_nothing_in_time_is_named(started: Any) -> None:
    _, jvm = started(lambda words: ())
    jvm.ask("poll")
    with pytest.raises(PreconditionError, match="client p1: its process, pid 7, tells nothing; expected a line"):
        jvm.must_hear(time.monotonic())


# --- processes that misbehave ------------------------------------------------------------------------------------
@contextmanager
def planted(folder: Path, does: str) -> Iterator[tuple[Jvm, Ledger]]:
    """Start a process of Python in place of Java's."""
    ledger = Ledger.open(folder, root=folder / "ledgers")
    with closing(ledger):
        children = Children(ledger=ledger, folder=folder / "clients")
        program = (sys.executable, "-c", does)
        with closing(Jvm("p1", children, lambda asked, told: (*program, str(asked), str(told)))) as jvm:
            yield jvm, ledger


def process_in(ledger: Ledger) -> Identity:
    """Return the only process that the ledger has."""
    (entry,) = ledger._entries.values()
    found = identity_of(entry["pid"])
    assert found is not None
    return found


def test_line_that_never_ends_is_refused_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_BYTES_MAX", 1_000_000)
    with planted(tmp_path, _READY + "[os.write(told, b'x' * 65536) for _ in range(10**9)]") as (jvm, _):
        jvm.ask("poll")
        with pytest.raises(PreconditionError, match=r"client p1: .* tells a line of more than 1000000 bytes"):
            jvm.hear(soon())
        assert len(jvm._told) < 1_200_000


def test_line_that_is_no_text_has_words_all_the_same(tmp_path: Path) -> None:
    with planted(tmp_path, _READY + "os.write(told, b'1 \\xff\\xfe\\n'); time.sleep(1)") as (
        jvm,
        _,
    ):
        jvm.ask("poll")
        assert ["1", "\ufffd\ufffd"] == jvm.hear(soon())


def test_process_that_reads_nothing_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLIENT_OPERATION_S_MAX", 0.3)
    monkeypatch.setattr(limits, "PROCESS_END_S_MAX", 0.5)
    with (
        planted(tmp_path, _READY + "time.sleep(60)") as (jvm, _),
        pytest.raises(PreconditionError, match=r"client p1: .* reads nothing; expected it to read a line"),
    ):
        jvm.ask("x" * 1_000_000)


def test_process_that_does_not_end_is_killed_and_leaves_its_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with planted(tmp_path, _READY + "time.sleep(60)") as (jvm, ledger):
        jvm.ask("poll")
        process = process_in(ledger)
        assert is_alive(process)
        monkeypatch.setattr(limits, "PROCESS_END_S_MAX", 0.5)
        began = time.monotonic()
        assert "signal 9" == jvm._child.wait(limits.PROCESS_END_S_MAX)
        assert time.monotonic() - began < 20
        assert not is_alive(process)
        assert {} == ledger._entries


def test_process_that_dies_is_said_to_have_with_what_it_printed(tmp_path: Path) -> None:
    with planted(tmp_path, _READY + "time.sleep(0.3); print('no heap', flush=True); sys.exit(3)") as (jvm, _):
        jvm.ask("poll")
        with pytest.raises(PreconditionError, match=r"(?s)its process ended with exit code 3; .*no heap"):
            jvm.hear(soon())
