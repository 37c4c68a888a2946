"""A view of a ZooKeeper that does not answer raises a one-line error and leaves nothing open."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness import limits
from harness.history.file import History
from harness.hosts import HOSTS
from harness.launch import Address
from harness.model import PreconditionError
from harness.zookeeper.view import RealZooKeeperView
from targets.broker_target import TARGET


def test_zookeeper_that_does_not_answer_is_refused_and_no_client_is_left_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Warnings are errors here: a client left open would fail this test with a ResourceWarning."""
    monkeypatch.setattr(limits, "ZOOKEEPER_START_S_MAX", 0.2)
    with socket.socket() as silent, History(tmp_path / "history.jsonl") as history:
        silent.bind(("127.0.0.1", 0))  # without listening: every connection is refused
        address = Address(host="127.0.0.1", port=silent.getsockname()[1])
        with pytest.raises(PreconditionError, match=r"no session within 0.2 s; expected one"):
            RealZooKeeperView(zookeeper=address, chroot="/x", target=TARGET, ids={"A": 1}, history=history)


@pytest.mark.slow
def test_zookeeper_that_ends_fails_each_call_instead_of_holding_it_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that stops in mid-run takes ZooKeeper along; the run must end, as unknown."""
    monkeypatch.setattr(limits, "ZOOKEEPER_LOST_S_MAX", 0.3)
    host = HOSTS["local"](tmp_path / "host", power_tier="watermark")
    with History(tmp_path / "history.jsonl") as history, ExitStack() as stack:
        stack.callback(host.close)
        host.open()
        address = host.start_zookeeper()
        view = RealZooKeeperView(zookeeper=address, chroot="/x", target=TARGET, ids={"A": 1}, history=history)
        stack.callback(view.close)
        view.watch([("log", 0)])
        assert None is view.truth("log", 0)
        host.kill("zookeeper")
        for _ in range(3):
            with pytest.raises(PreconditionError, match="expected an answer"):
                view.truth("log", 0)
        with pytest.raises(PreconditionError, match="on writing /y"):
            view.write("/y", b"")
