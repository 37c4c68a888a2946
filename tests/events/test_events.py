"""The table of events is complete, matches what brokers send, and is printed with every key."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import get_type_hints

import pytest

import harness.events
from harness.docs.history_page import history
from harness.docs.pages import ROOT
from harness.events import (
    EVENTS,
    FAILED,
    AddPartitions,
    AlterTopic,
    CreateTopic,
    DeleteTopic,
    Event,
    Heal,
    Injection,
    LinkRule,
    OfLinkAndPartition,
    OfPartition,
    OpType,
    OracleViolation,
    RemovePartitions,
    Setup,
    Source,
)
from harness.events.codec import key_of_kind, keys_of

KINDS = (*EVENTS.values(), *FAILED.values(), Injection)
# Calls by which the broker and its core report what they do; the event's name is their first argument.
REPORTS = frozenset({"observe", "observe_replica", "emit"})


def sent_by_brokers() -> Iterator[str]:
    """Yield the name of every event that the broker's code reports."""
    for path in sorted((ROOT / "targets" / "broker").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in REPORTS:
                yield from (
                    each.value for each in node.args[:1] if isinstance(each, ast.Constant) and str(each.value)
                )


def test_events_that_brokers_send_are_those_of_the_table() -> None:
    known = {f for source, f in EVENTS if source is Source.BROKER}
    # `printed` comes from outside: the harness reads the log lines of brokers that send no events.
    assert known - {"printed"} == set(sent_by_brokers())


def test_class_has_one_source_and_name_only() -> None:
    kinds = [*EVENTS.values(), *FAILED.values()]
    assert len(kinds) == len(set(kinds))
    assert (Source.NEMESIS, None) == key_of_kind(Injection)
    assert FAILED.keys() <= EVENTS.keys()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_event_is_frozen_slotted_and_exported(kind: type[Event]) -> None:
    assert kind.__name__ in harness.events.__all__
    assert "__slots__" in vars(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert all(each.kw_only for each in fields(kind))  # type: ignore[arg-type]
    assert kind.TYPES


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_event_about_a_partition_names_topic_and_partition(kind: type[Event]) -> None:
    """A link's rule, and what comes, goes or changes, name a topic alone; Setup and oracles are exempt."""
    named = {"topic", "partition"} & get_type_hints(kind).keys()
    of_topic = CreateTopic | DeleteTopic | AddPartitions | RemovePartitions | AlterTopic
    if issubclass(kind, LinkRule | Heal | of_topic):
        assert {"topic"} == named
    elif kind not in (Setup, OracleViolation):
        assert issubclass(kind, OfPartition | OfLinkAndPartition) == bool(named)
        assert named in (set(), {"topic", "partition"})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_page_has_every_event_with_its_types_and_keys(kind: type[Event]) -> None:
    source, f = key_of_kind(kind)
    section = history().split(f"## {source}\n")[1].split("\n## ")[0]
    begins = "| the name of a fault |" if f is None else f"| `{f}` |"
    rows = [line for line in section.splitlines() if line.startswith(begins)]
    (row,) = (row for row in rows if f"| {', '.join(kind.TYPES)} |" in row)
    assert all(f"`{each.key}`" in row for each in keys_of(kind))


def test_page_says_that_what_the_collector_cannot_read_is_a_failure_with_an_error() -> None:
    """Regression: the page had type info and key `line`, while the code recorded fail and `error`."""
    section = history().split("## runner\n")[1].split("\n## ")[0]
    (row,) = (line for line in section.splitlines() if line.startswith("| `unreadable` | `collector` |"))
    assert f"| {OpType.FAIL.value} |" in row
    assert "`error`" in row
    assert "`line`" not in row


_RAW = re.compile(r"\.value\s*(\[|\.\s*get\b)")


def looked_up_raw(text: str) -> list[int]:
    """Return the lines that read a key of an attribute `value`: `x.value["k"]`, `x.value.get("k")`."""
    found = []
    for node in ast.walk(ast.parse(text)) if _RAW.search(text) else ():  # to parse all modules takes seconds
        match node:
            case ast.Subscript(value=ast.Attribute(attr="value")):
                found.append(node.lineno)
            case ast.Call(func=ast.Attribute(attr="get", value=ast.Attribute(attr="value"))):
                found.append(node.lineno)
    return found


def test_look_up_in_a_raw_value_is_found() -> None:
    assert [1, 2, 3] == looked_up_raw('op.value["nodes"]\nspan.first.value.get("link")\nops[0].value[key]\n')
    assert [] == looked_up_raw('encode(op.value)\nop.event.value\nkind.value\nvalue["nodes"]\n')


def test_only_the_codec_and_the_store_look_keys_up_in_what_an_op_recorded() -> None:
    """Rules, reports and commands must read events, which are checked and typed."""
    folders = ("harness", "checkers", "nemesis", "workloads", "targets/simulator", "targets/kafka", "benchmarks")
    own = (ROOT / "harness" / "events", ROOT / "harness" / "run" / "store.py")
    assert [] == [
        f"{path.relative_to(ROOT)}:{line}: looks a key up in a raw value; expected the op's event"
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not any(path.is_relative_to(place) for place in own)
        for line in looked_up_raw(path.read_text(encoding="utf-8"))
    ]
