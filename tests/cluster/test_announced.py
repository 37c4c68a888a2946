"""Who is named anew by ZooKeeper and has not said so is awaited, and nobody where nodes never say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cluster.announced import Announced
from harness.events import Event, Member, Members
from harness.history.file import History
from harness.model import OpType

Told = tuple[str, Event]


def zookeeper(*nodes: str | None) -> Told:
    return "metadata", Members(nodes=nodes)


def says(node: str, *, taken_over: bool = False) -> Told:
    return node, Member(taken_over=taken_over, incarnation=1)


@pytest.mark.parametrize(
    ("told", "awaited"),
    [
        ([zookeeper("A", "B")], ()),  # as brokers of Apache Kafka, which never say it
        ([says("A"), zookeeper("A", "B")], ("B",)),
        ([says("A"), zookeeper("A", "B"), says("B")], ()),
        ([says("A"), says("B"), zookeeper("A", "B", None)], ()),  # the watch was late, and a stranger is named
        ([says("A"), zookeeper("A"), zookeeper(), zookeeper("A")], ("A",)),
        ([says("A"), zookeeper("A"), zookeeper()], ()),
        ([says("A"), zookeeper("A"), zookeeper(), zookeeper("A"), says("A", taken_over=True)], ()),
        ([says("A"), zookeeper("A"), zookeeper(), says("A"), zookeeper("A")], ()),
    ],
)
def test_who_is_named_anew_is_awaited_until_it_says_so(
    told: list[Told], awaited: tuple[str, ...], tmp_path: Path
) -> None:
    announced = Announced()
    with History(tmp_path / "history.jsonl") as history:
        history.listeners.append(announced.listen)
        for process, event in told:
            history.record(process, OpType.INFO, event)
    assert awaited == announced.awaited()
