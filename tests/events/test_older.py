"""Histories that were written with older names are read as what they are called now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from harness.events import (
    Event,
    IsrChanged,
    Learned,
    Member,
    Members,
    MetadataState,
    MetadataUnreadable,
    Unknown,
)
from harness.events.older import counted, renamed
from harness.model import Op
from tests.checkers.plants.edit import RUNS

_PLACE = {"topic": "t", "partition": 0}
_LED = {"leader": "A", "epoch": 1, "isr": ["A"]}


def _line(source: str, process: str, f: str, value: Mapping[str, Any]) -> str:
    head = {"index": 3, "time_ns": 9, "source": source, "process": process, "type": "info", "f": f}
    return json.dumps({**head, "value": value})


OLD: list[tuple[str, str, str, dict[str, Any], Event]] = [
    (
        "zookeeper",
        "zookeeper",
        "leaderAndISR",
        {**_PLACE, **_LED, "zk_version": 4},
        MetadataState(topic="t", partition=0, leader="A", epoch=1, isr=("A",), version=4),
    ),
    ("zookeeper", "zookeeper", "registered", {"nodes": ["A"]}, Members(nodes=("A",))),
    ("broker", "A", "registered", {"taken_over": True, "czxid": 7}, Member(taken_over=True, incarnation=7)),
    (
        "broker",
        "A",
        "isr",
        {**_PLACE, "isr": [1], "zk_version": 4, "epoch": 1},
        IsrChanged(topic="t", partition=0, isr=(1,), version=4, epoch=1),
    ),
    ("broker", "A", "unreadable-node", {"path": "/x", "error": "E"}, MetadataUnreadable(path="/x", error="E")),
    (
        "fabric",
        "fabric",
        "commanded",
        {**_PLACE, **_LED, "link": ["C", "A"], "error": 0},
        Learned(topic="t", partition=0, link=("C", "A"), leader="A", epoch=1, isr=("A",), error=0),
    ),
]


@pytest.mark.parametrize(("source", "process", "f", "value", "event"), OLD, ids=lambda each: str(each)[:20])
def test_line_with_older_names_has_the_event_of_today(
    source: str, process: str, f: str, value: dict[str, Any], event: Event
) -> None:
    op = Op.from_json(_line(source, process, f, value))
    assert event == op.event
    assert "metadata" == op.process if process == "zookeeper" else op.process == process
    again = Op.of(event, index=op.index, time_ns=op.time_ns, process=op.process, type=op.type)
    assert (again.source, again.f, again.value) == (op.source, op.f, op.value)


def test_end_of_a_link_has_its_name_of_today_and_a_value_elsewhere_keeps_its_own() -> None:
    assert ["B", "metadata"] == Op.from_json(
        _line("fabric", "fabric", "lost", {"link": ["B", "zookeeper"]})
    ).value["link"]
    note = Op.from_json(_line("broker", "A", "note", {"text": "zookeeper"}))
    assert {"text": "zookeeper"} == note.value


def test_names_of_today_are_read_as_they_are() -> None:
    line = _line("metadata", "metadata", "state", {**_PLACE, **_LED, "version": 4})
    assert json.loads(line) == json.loads(Op.from_json(line).to_json())


@pytest.mark.parametrize("name", ["local-kip101-1", "kafka-kip101-1", "sim-hw-66"])
def test_every_line_of_an_older_run_is_known(name: str) -> None:
    lines = (RUNS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    raw = [json.loads(line) for line in lines]
    assert "zookeeper" in {each["source"] for each in raw}
    assert any(renamed(each["source"], each["f"]) for each in raw)
    assert not [op for op in map(Op.from_json, lines) if isinstance(op.event, Unknown)]


def test_effect_of_a_fault_has_its_name_of_today() -> None:
    line = _line("nemesis", "nemesis", "return", {"nodes": ["A"], "heals": ["cut-off-from-zookeeper", "down"]})
    assert {"nodes": ["A"], "heals": ["cut-off-from-metadata", "down"]} == Op.from_json(line).value
    line = _line("nemesis", "nemesis", "zombie", {"nodes": ["A"], "effect": "zookeeper-weak"})
    assert "metadata-weak" == Op.from_json(line).value["effect"]


def test_count_of_a_stored_suite_has_its_name_of_today() -> None:
    assert {"metadata": 2, "kill": 1} == counted({"zookeeper": 2, "kill": 1})
