"""Operations are paired with their completions, and incomplete histories are readable."""

from __future__ import annotations

from typing import Any

from harness.model import Op, OpType, Source
from harness.report.reading import Reading
from tests.events.filled import filled
from tests.report.samples import scenario1


def _op(index: int, kind: OpType, process: str = "client-0", f: str = "produce", **value: Any) -> Op:
    source = Source.CLIENT if process.startswith("client") else Source.NEMESIS
    return Op(
        index=index,
        time_ns=index * 10,
        source=source,
        process=process,
        type=kind,
        f=f,
        value=filled(source, f, value),
    )


def test_answers_out_of_order_find_their_questions() -> None:
    ops = [
        _op(0, OpType.INVOKE, value="a"),
        _op(1, OpType.INVOKE, value="b"),
        _op(2, OpType.OK, value="b", offset=0),
        _op(3, OpType.INFO, value="a", error="timed out"),
    ]
    spans = Reading(ops=ops).spans
    assert [(s.first.index, s.last.index if s.last else None, s.outcome) for s in spans] == [
        (0, 3, "info"),
        (1, 2, "ok"),
    ]


def test_operation_without_an_end_is_open() -> None:
    (span,) = Reading(ops=[_op(0, OpType.INVOKE, value="a")]).spans
    assert (span.last, span.outcome) == (None, "open")


def test_end_of_another_node_does_not_end_a_fault() -> None:
    ops = [
        _op(0, OpType.INVOKE, "nemesis", "kill", nodes=["A"]),
        _op(1, OpType.OK, "nemesis", "kill", nodes=["B"]),
    ]
    assert [s.outcome for s in Reading(ops=ops).spans] == ["open", "ok"]


def test_end_without_a_question_stands_for_itself() -> None:
    (span,) = Reading(ops=[_op(0, OpType.OK, "nemesis", "flush", nodes=["A"])]).spans
    assert span.first is span.last


def test_empty_history_is_readable() -> None:
    reading = Reading(ops=[])
    assert (
        reading.setup,
        reading.nodes,
        reading.partition,
        reading.spans,
        reading.record_names,
    ) == (None, (), ("", 0), (), {})


def test_set_up_names_nodes_partition_and_records() -> None:
    reading = Reading(ops=scenario1("hw")[1])
    assert reading.nodes == ("A", "B", "C")
    assert reading.partition == ("fencepost", 0)
    assert reading.record_names["m2-e1"] == "m2"
    assert (reading.node_of(7), reading.node_of(99)) == ("A", "99")
