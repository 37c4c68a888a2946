"""Elections without a failure, requested in ZooKeeper from a fake controller."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from harness import limits
from harness.model import PreconditionError, TargetError
from targets.kafka.elections import (
    PREFERRED,
    REASSIGN,
    assignment,
    controller_id,
    elect,
    partition_path,
    partition_state,
    registration_path,
    topic_path,
)

STATE = {"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 4, "isr": [1, 2]}


class Controller:
    """ZooKeeper and a controller that ignores requests written to the path `deaf`."""

    def __init__(self, replicas: list[int], *, leader: int, isr: list[int], deaf: str = "") -> None:
        self.nodes: dict[str, Any] = {
            topic_path("log"): {"version": 1, "partitions": {"0": replicas}},
            partition_path("log", 0): {**STATE, "leader": leader, "isr": isr},
        }
        self.deaf = deaf
        self.orders: list[list[int]] = []
        self.keeps_order = False

    def read(self, path: str) -> bytes | None:
        return json.dumps(self.nodes[path]).encode() if path in self.nodes else None

    def update(self, path: str, change: Callable[[bytes | None], bytes]) -> None:
        data = change(self.read(path))
        if path == self.deaf:
            self.nodes[path] = json.loads(data)
            return
        (about,) = json.loads(data)["partitions"]
        assert ("log", 0) == (about["topic"], about["partition"])
        {REASSIGN: self._reorder, PREFERRED: self._elect}[path](about)

    def _reorder(self, about: dict[str, Any]) -> None:
        self.orders.append(about["replicas"])
        if not self.keeps_order:
            self.nodes[topic_path("log")] = {"version": 1, "partitions": {"0": about["replicas"]}}

    def _elect(self, about: dict[str, Any]) -> None:
        assert "replicas" not in about
        first = json.loads(self.read(topic_path("log")) or b"")["partitions"]["0"][0]
        self.nodes[partition_path("log", 0)] = {**self.nodes[partition_path("log", 0)], "leader": first}

    @property
    def leader(self) -> int:
        return int(self.nodes[partition_path("log", 0)]["leader"])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONDITION_WAIT_S_MAX", 0.0)


def test_member_of_the_isr_is_elected_after_it_was_put_first() -> None:
    zookeeper = Controller([1, 2, 3], leader=1, isr=[1, 2, 3])
    asked = elect(zookeeper, "log", 0, 3)
    assert (3, [[3, 1, 2]]) == (zookeeper.leader, zookeeper.orders)
    assert "replicas put in order [3, 1, 2], preferred replica 3 asked for" == asked


def test_order_is_left_alone_when_the_replica_is_first_already() -> None:
    zookeeper = Controller([2, 1, 3], leader=1, isr=[1, 2])
    elect(zookeeper, "log", 0, 2)
    assert (2, []) == (zookeeper.leader, zookeeper.orders)


@pytest.mark.parametrize(
    ("controller", "wanted", "complaint"),
    [
        (
            Controller([1, 2], leader=1, isr=[1, 2]),
            1,
            r"leader 1, ISR \[1, 2\]; expected it in the ISR, and another",
        ),
        (Controller([1, 2], leader=1, isr=[1]), 2, r"leader 1, ISR \[1\]; expected it in the ISR"),
        (Controller([1, 2, 3], leader=1, isr=[1, 2]), 2, r"ISR \[1, 2\] of replicas \[1, 2, 3\]; expected all"),
    ],
)
def test_election_that_cannot_come_about_is_not_asked_for(
    controller: Controller, wanted: int, complaint: str
) -> None:
    with pytest.raises(PreconditionError, match=complaint):
        elect(controller, "log", 0, wanted)
    assert [] == controller.orders


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("deaf", [REASSIGN, PREFERRED])
def test_election_fails_when_the_controller_does_not_take_it(deaf: str) -> None:
    with pytest.raises(PreconditionError, match=f"the controller has not taken {deaf}"):
        elect(Controller([1, 2], leader=1, isr=[1, 2], deaf=deaf), "log", 0, 2)


def test_election_fails_when_the_controller_left_the_order_as_it_was() -> None:
    zookeeper = Controller([1, 2], leader=1, isr=[1, 2])
    zookeeper.keeps_order = True
    with pytest.raises(PreconditionError, match=r"left replicas \[1, 2\]; expected \[2, 1\]"):
        elect(zookeeper, "log", 0, 2)


def test_election_is_not_asked_for_while_another_request_is_under_way() -> None:
    zookeeper = Controller([1, 2], leader=1, isr=[1, 2])
    zookeeper.nodes[REASSIGN] = {}
    with pytest.raises(PreconditionError, match="exists already, with b"):
        elect(zookeeper, "log", 0, 2)


def test_election_of_a_topic_that_is_not_there_is_refused() -> None:
    with pytest.raises(PreconditionError, match=r"/brokers/topics/other: no such node in ZooKeeper"):
        elect(Controller([1, 2], leader=1, isr=[1, 2]), "other", 0, 2)


def test_paths_are_kafkas() -> None:
    assert ("/brokers/ids/7", "/brokers/topics/log/partitions/0/state") == (
        registration_path(7),
        partition_path("log", 0),
    )


def test_truth_is_read_from_the_partition_s_state() -> None:
    found = partition_state(json.dumps({**STATE, "leader_recovery_state": 0}).encode(), 9)
    assert (1, 4, (1, 2), 9) == (found.leader, found.leader_epoch, found.isr, found.version)


def test_truth_has_no_leader_when_the_state_has_none() -> None:
    assert -1 == partition_state(json.dumps({**STATE, "leader": -1}).encode(), 0).leader


def test_assignment_has_the_replicas_of_each_partition() -> None:
    data = json.dumps({"version": 2, "partitions": {"0": [2, 1], "1": [3]}, "topic_id": "x"}).encode()
    assert {0: (2, 1), 1: (3,)} == assignment(data)


@pytest.mark.parametrize("read", [controller_id, assignment, lambda data: partition_state(data, 0)])
def test_node_that_is_no_json_is_kafkas_fault(read: Callable[[bytes], object]) -> None:
    with pytest.raises(TargetError, match=r"b'\{'; expected JSON"):
        read(b"{")


def test_controller_is_read_from_its_node() -> None:
    assert 7 == controller_id(b'{"version":1,"brokerid":7,"timestamp":"0"}')
