"""A view of a ZooKeeper that does not answer raises a one-line error and leaves nothing open."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from harness import limits
from harness.history.file import History
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
