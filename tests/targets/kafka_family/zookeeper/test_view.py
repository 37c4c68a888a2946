"""The view of ZooKeeper: one that does not answer is an error of one line; what was read is recorded."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError
from kazoo.protocol.states import ZnodeStat

from harness import limits
from harness.cleanup.process import until
from harness.events import Done, MetadataState
from harness.history.file import History, read_history
from harness.hosts import HOSTS
from harness.launch import Address
from harness.model import HistoryError, OpType, PreconditionError
from harness.target.metadata import PartitionTruth, Place
from targets.broker.core.messages import TopicPartition
from targets.broker.core.wishes import Wishes, decode_wishes, encode_wishes
from targets.broker.core.zookeeper import ELECTIONS, PartitionState, encode_state
from targets.broker_target import layout
from targets.kafka_family.zookeeper.view import RealZooKeeperView
from targets.zookeeper.metadata import ReadTruth
from tests.clusters import run_of
from tests.needs import needs
from tests.services import zookeeper_on

STATE = PartitionState(leader=1, leader_epoch=0, isr=(1,), controller_epoch=1, zk_version=0)
WAIT_S = 30


def test_zookeeper_that_does_not_answer_is_refused_and_no_client_is_left_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Warnings are errors here: a client left open would fail this test with a ResourceWarning."""
    monkeypatch.setattr(limits, "SERVICE_START_S_MAX", 0.2)
    with socket.socket() as silent, History(tmp_path / "history.jsonl") as history:
        silent.bind(("127.0.0.1", 0))  # without listening: every connection is refused
        address = Address(host="127.0.0.1", port=silent.getsockname()[1])
        with pytest.raises(PreconditionError, match=r"no session within 0.2 s; expected one"):
            view_at(address, history)


@pytest.mark.slow
@needs("java")
def test_zookeeper_that_ends_fails_each_call_instead_of_holding_it_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that stops in mid-run takes ZooKeeper along; the run must end, as unknown."""
    monkeypatch.setattr(limits, "METADATA_LOST_S_MAX", 0.3)
    host = HOSTS["local"](tmp_path / "host", power_tier="watermark")
    with History(tmp_path / "history.jsonl") as history, ExitStack() as stack:
        stack.callback(host.close)
        host.open()
        address = zookeeper_on(host)
        view = view_at(address, history)
        stack.callback(view.close)
        view.watch([("log", 0)])
        assert None is view.truth("log", 0)
        host.kill("zookeeper")
        for _ in range(3):
            with pytest.raises(PreconditionError, match="expected an answer"):
                view.truth("log", 0)
        with pytest.raises(PreconditionError, match="expected an answer"):
            view.update("/y", lambda _there: b"")


@pytest.mark.slow
@needs("java")
def test_state_that_was_read_is_in_the_history_though_its_watch_fires_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ends on what it read would else lack that state: the checkers would miss an ISR."""
    late: list[tuple[PartitionTruth, ZnodeStat]] = []
    fired = threading.Event()

    def watch_state(view: RealZooKeeperView, place: Place, path: str, read: ReadTruth) -> None:
        def changed(data: bytes | None, stat: ZnodeStat | None) -> None:
            if data and stat:
                late.append((read(data, stat), stat))
                fired.set()

        view.client.DataWatch(path, changed)

    monkeypatch.setattr(RealZooKeeperView, "watch_state", watch_state)
    host = HOSTS["local"](tmp_path / "host", power_tier="watermark")
    with History(tmp_path / "history.jsonl") as history, ExitStack() as stack:
        stack.callback(host.close)
        host.open()
        view = view_at(zookeeper_on(host), history)
        stack.callback(view.close)
        view.watch([("log", 0)])
        path = layout.partition_path("log", 0)
        for epoch in (4, 5):
            fired.clear()
            put(view, path, encode_state(replace(STATE, leader_epoch=epoch)))
            assert fired.wait(WAIT_S)
        assert view.truth("log", 0) is not None
        for truth, stat in late:
            view.record_state(("log", 0), truth, stat)
    states = [op.event for op in read_history(history.path) if isinstance(op.event, MetadataState)]
    assert [5] == [state.epoch for state in states]


@pytest.mark.slow
@needs("java")
def test_observation_that_a_watch_loses_is_an_error_of_the_run_and_nothing_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The watches run in kazoo's threads, which print an error and go on."""
    monkeypatch.setattr(layout, "controller_id", unreadable)
    host = HOSTS["local"](tmp_path / "host", power_tier="watermark")
    with History(tmp_path / "history.jsonl") as history, ExitStack() as stack:
        stack.callback(host.close)
        host.open()
        view = view_at(zookeeper_on(host), history)
        stack.callback(view.close)
        view.watch([])
        put(view, layout.controller_path(), b"{}")
        assert until(lambda: "ZeroDivisionError: a bug" in refusal(history), WAIT_S)
        view.delete(layout.controller_path())  # A watch of a history that has given up is silent, too.
        put(view, layout.registration_path(1), b"{}")
        assert not caplog.messages


def view_at(address: Address, history: History) -> RealZooKeeperView:
    return RealZooKeeperView(run=run_of(history, address, ids={"A": 1}), layout=layout)


def put(view: RealZooKeeperView, path: str, data: bytes) -> None:
    view.update(path, lambda _there: data)


class Nodes:
    """A client of ZooKeeper; another one writes after each read, as long as it has something to write."""

    def __init__(self, others: Iterator[bytes]) -> None:
        self.nodes: dict[str, tuple[bytes, int]] = {}
        self._others = others

    def get(self, path: str) -> tuple[bytes, Any]:
        found = self.nodes.get(path)
        for other in islice(self._others, 1):
            self.nodes[path] = (other, 0 if found is None else found[1] + 1)
        if found is None:
            raise NoNodeError
        return found[0], SimpleNamespace(version=found[1])

    def create(self, path: str, data: bytes, makepath: bool) -> None:
        assert makepath
        if path in self.nodes:
            raise NodeExistsError
        self.nodes[path] = data, 0

    def set(self, path: str, data: bytes, version: int = -1) -> None:
        if version not in (-1, self.nodes[path][1]):
            raise BadVersionError
        self.nodes[path] = data, self.nodes[path][1] + 1


def view_of(client: Nodes) -> RealZooKeeperView:
    """Return a view of these nodes, with all that it needs to read and to write."""
    view = RealZooKeeperView.__new__(RealZooKeeperView)
    vars(view).update(client=client, _silent="", _address="zk:2181", _layout=layout, _ids={"A": 1, "B": 2})
    return view


def test_request_keeps_what_another_operator_has_written_since_it_was_read() -> None:
    first, then = Wishes(moves={TopicPartition("u", 0): (2,)}), Wishes(moves={TopicPartition("u", 1): (1,)})
    client = Nodes(iter((encode_wishes(first), then.beside(encode_wishes(first)))))
    view_of(client).move("t", 0, ["A", "B"])
    (data, _) = client.nodes[ELECTIONS]
    assert {("t", 0): (1, 2), ("u", 0): (2,), ("u", 1): (1,)} == decode_wishes(data).moves


def test_request_that_others_write_over_again_and_again_says_what_was_there() -> None:
    client = Nodes(b"%d" % number for number in count())
    said = r"/x: written by others 100 times .* the last time over b'98' of version 98; expected to write it once"
    with pytest.raises(PreconditionError, match=said):
        view_of(client).update("/x", lambda _there: b"mine")


def unreadable(_data: bytes) -> int:
    raise ZeroDivisionError("a bug")


def refusal(history: History) -> str:
    try:
        history.record("runner", OpType.INFO, Done())
    except HistoryError as error:
        return str(error)
    return ""
