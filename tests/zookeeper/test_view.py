"""The view of ZooKeeper: one that does not answer is an error of one line; what was read is recorded."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kazoo.protocol.states import ZnodeStat

from harness import limits
from harness.cleanup.process import until
from harness.events import Done, LeaderAndIsr
from harness.history.file import History, read_history
from harness.hosts import HOSTS
from harness.launch import Address
from harness.model import HistoryError, OpType, PreconditionError
from harness.zookeeper.view import RealZooKeeperView
from targets.broker.core.zookeeper import PartitionState, encode_state
from targets.broker_target import TARGET

STATE = PartitionState(leader=1, leader_epoch=0, isr=(1,), controller_epoch=1, zk_version=0)
WAIT_S = 30


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


@pytest.mark.slow
def test_state_that_was_read_is_in_the_history_though_its_watch_fires_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ends on what it read would else lack that state: the checkers would miss an ISR."""
    late: list[tuple[bytes, ZnodeStat]] = []
    fired = threading.Event()
    recorder = RealZooKeeperView._recorder

    def recorder_of(view: RealZooKeeperView, topic: str, partition: int) -> Any:
        def changed(data: bytes | None, stat: ZnodeStat | None) -> None:
            if data and stat:
                late.append((data, stat))
                fired.set()

        view_recorders.append(recorder(view, topic, partition))
        return changed

    view_recorders: list[Any] = []
    monkeypatch.setattr(RealZooKeeperView, "_recorder", recorder_of)
    host = HOSTS["local"](tmp_path / "host", power_tier="watermark")
    with History(tmp_path / "history.jsonl") as history, ExitStack() as stack:
        stack.callback(host.close)
        host.open()
        view = RealZooKeeperView(
            zookeeper=host.start_zookeeper(), chroot="/x", target=TARGET, ids={"A": 1}, history=history
        )
        stack.callback(view.close)
        view.watch([("log", 0)])
        path = TARGET.partition_path("log", 0)
        for epoch in (4, 5):
            fired.clear()
            view.write(path, encode_state(replace(STATE, leader_epoch=epoch)))
            assert fired.wait(WAIT_S)
        assert view.truth("log", 0) is not None
        for data, stat in late:
            view_recorders[0](data, stat)
    states = [op.event for op in read_history(history.path) if isinstance(op.event, LeaderAndIsr)]
    assert [5] == [state.epoch for state in states]


@pytest.mark.slow
def test_observation_that_a_watch_loses_is_an_error_of_the_run_and_nothing_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The watches run in kazoo's threads, which print an error and go on."""
    monkeypatch.setattr(TARGET, "controller_id", unreadable)
    host = HOSTS["local"](tmp_path / "host", power_tier="watermark")
    with History(tmp_path / "history.jsonl") as history, ExitStack() as stack:
        stack.callback(host.close)
        host.open()
        view = RealZooKeeperView(
            zookeeper=host.start_zookeeper(), chroot="/x", target=TARGET, ids={"A": 1}, history=history
        )
        stack.callback(view.close)
        view.watch([])
        view.write(TARGET.controller_path(), b"{}")
        assert until(lambda: "ZeroDivisionError: a bug" in refusal(history), WAIT_S)
        view.delete(TARGET.controller_path())  # A watch of a history that has given up is silent, too.
        view.write(TARGET.registration_path(1), b"{}")
        assert not caplog.messages


def unreadable(_data: bytes) -> int:
    raise ZeroDivisionError("a bug")


def refusal(history: History) -> str:
    try:
        history.record("runner", OpType.INFO, Done())
    except HistoryError as error:
        return str(error)
    return ""
