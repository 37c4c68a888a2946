"""A node's container retries a pause that the engine refuses, and reports other refusals in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from docker.errors import APIError
from requests.exceptions import ConnectionError

from harness import limits
from harness.hosts.container import NodeContainer
from harness.model import PreconditionError

UNABLE = "OCI runtime pause failed: unable to freeze: unknown"


class Engine:
    """A running container that refuses the first `refusals` calls."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.paused = False

    @property
    def attrs(self) -> dict[str, Any]:
        return {"State": {"Running": True, "Paused": self.paused, "ExitCode": 0}}

    def reload(self) -> None:
        """Do nothing: attrs is computed on each access."""

    def pause(self) -> None:
        self._refuse()
        self.paused = True

    def unpause(self) -> None:
        self._refuse()
        self.paused = False

    def kill(self, _signal: str) -> None:
        self._refuse()

    def _refuse(self) -> None:
        self.refusals -= 1
        if self.refusals >= 0:
            raise APIError("500 Server Error", explanation=UNABLE)


class Answering:
    """A watch of an engine that was never gone."""

    lost = ""

    def require(self, _what: str) -> None:
        """Raise nothing."""

    require_now = require


def container(engine: Engine, tmp_path: Path) -> NodeContainer:
    """Return a node's container, backed by the engine."""
    anything: Any = None
    watch: Any = Answering()
    log = tmp_path / "A.log"
    made = NodeContainer(name="A", client=anything, watch=watch, ledger=anything, shape=anything, log=log)
    made._container = engine
    return made


def test_pause_is_asked_for_until_the_engine_has_frozen_the_container(tmp_path: Path) -> None:
    engine = Engine(refusals=2)
    assert "container frozen" == container(engine, tmp_path).pause()
    assert (True, -1) == (engine.paused, engine.refusals)


def test_pause_that_never_comes_about_is_told_with_what_the_engine_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PROCESS_END_S_MAX", 0.05)
    with pytest.raises(PreconditionError, match=f"pause A: the engine reports that it is not paused: {UNABLE}"):
        container(Engine(refusals=1_000_000), tmp_path).pause()


@pytest.mark.parametrize("what", ["resume", "kill", "stop"])
def test_other_refusals_are_told_at_once(what: str, tmp_path: Path) -> None:
    engine = Engine(refusals=1)
    engine.paused = what == "resume"
    with pytest.raises(PreconditionError, match=rf"{what} A: the engine \S+ refuses: {UNABLE}; expected"):
        getattr(container(engine, tmp_path), what)()


@pytest.mark.parametrize("what", ["alive", "kill", "pause", "resume"])
def test_engine_that_has_stopped_is_told_in_one_sentence(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(refusals=0)

    def gone() -> None:
        raise ConnectionError("('Connection aborted.', FileNotFoundError(2, 'No such file or directory'))")

    monkeypatch.setattr(engine, "reload", gone)
    with pytest.raises(PreconditionError, match=r"look at A: the engine \S+ does not answer: .* aborted"):
        getattr(container(engine, tmp_path), what)()


def test_printed_lines_are_saved_and_read_through_no_link(tmp_path: Path) -> None:
    class Printing(Engine):
        def logs(self) -> bytes:
            return b"printed\n"

    (tmp_path / "ours").write_text("ours\n")
    log = tmp_path / "A.log"
    log.symlink_to("ours")
    linked = container(Printing(refusals=0), tmp_path)
    for call in (linked.log_text, linked.save_log):
        with pytest.raises(PreconditionError, match=r"log of A: .*: a link; expected a regular file"):
            call()
    assert "ours\n" == (tmp_path / "ours").read_text()
    log.unlink()
    linked.save_log()
    assert "printed\n" == log.read_text() == linked.log_text()
