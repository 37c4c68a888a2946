"""A line that cannot be used is named, with what it has and what was expected; the others are read."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest

from checkers.jepsen import reading
from checkers.jepsen.history import poll_key
from checkers.jepsen.reading import PROBLEMS_MAX, read
from tests.checkers.jepsen.story import Story

SEND = {"index": 0, "time": 0, "process": 0, "type": "invoke", "f": "send", "value": [["send", 0, 1]]}
POLLED = {**SEND, "f": "poll", "type": "ok"}


def problem(*lines: bytes) -> str:
    """Return the only problem of a file."""
    (found,) = read("h.jsonl", enumerate(lines, 1)).problems
    return found


def with_value(mop: Any, of: dict[str, Any] = SEND) -> bytes:
    return json.dumps({**of, "value": [mop]}).encode()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"index": 1}, "index 1; expected 0: 0, 1, 2, … without gaps"),
        ({"index": True}, "index true; expected 0"),
        ({"index": None}, "index null; expected 0"),
        ({"time": -1}, "time -1; expected whole nanoseconds from 0"),
        ({"time": 1.5}, "time 1.5; expected whole nanoseconds"),
        ({"type": "done"}, "type 'done'; expected one of invoke, ok, fail, info"),
        ({"f": "sedn"}, "f 'sedn'; expected one of send, poll, txn, assign, subscribe, crash, "),
        ({"f": ["send"]}, 'f ["send"]; expected one of send'),
        ({"value": None}, "value null; expected a list of micro-operations"),
        ({"value": [["send", 0]]}, 'micro-operation ["send", 0]; expected ["send", KEY, VALUE], '),
        ({"value": [[]]}, "micro-operation []; expected"),
        ({"value": ["send"]}, "micro-operation 'send'; expected"),
        ({"value": [["sned", 0, 1]]}, 'micro-operation ["sned", 0, 1]; expected'),
        ({"f": "assign", "value": [[0]]}, "value of assign [[0]]; expected a list of keys"),
        ({"f": "subscribe", "value": 0}, "value of subscribe 0; expected a list of keys"),
        ({"rebalance-log": [0]}, 'rebalance-log [0]; expected [{"keys": [KEY, …]}, …]'),
        ({"rebalance-log": [{"keys": {}}]}, "keys of rebalance-log {}; expected a list of keys"),
    ],
)
def test_wrong_field_is_named(change: dict[str, Any], says: str) -> None:
    found = problem(json.dumps({**SEND, **change}).encode())
    assert found.startswith(f"h.jsonl:1: {says}")


@pytest.mark.parametrize(
    ("mop", "says"),
    [
        (["send", None, 1], "key null of a send; expected an integer or a string"),
        (["send", 0, None], "value null of a send; expected an integer, a string or [OFFSET, VALUE]"),
        (["send", 0, 1.5], "value 1.5 of a send"),
        (["send", 0, True], "value true of a send"),
        (["send", 0, [-1, 1]], "offset -1; expected a whole number from 0, or null"),
        (["send", 0, [0, [1]]], "value [1] at offset 0; expected an integer or a string"),
        (["send", 0, [0, 1, 2]], "[0, 1, 2]; expected [OFFSET, VALUE]"),
        (["poll", [[0, 1]]], '[[0, 1]] of a poll; expected {"KEY": [[OFFSET, VALUE], …]}'),
        (["poll", {"0": 1}], "1 of key '0' in a poll; expected [[OFFSET, VALUE], …]"),
        (["poll", {"0": [1]}], "1; expected [OFFSET, VALUE]"),
        (["poll", {"0": [[True, 1]]}], "offset true; expected a whole number"),
        (["poll", {"0": [[0, False]]}], "value false at offset 0; expected an integer or a string"),
        (["poll", {"0": [], "00": []}], 'two names of one key in the poll of ["0", "00"]; expected each key once'),
        (["poll", {"9" * 5000: []}], "key '99999"),
    ],
)
def test_wrong_micro_operation_is_named(mop: Any, says: str) -> None:
    assert problem(with_value(mop)).startswith(f"h.jsonl:1: {says}")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "no JSON (Expecting property name"),
        (b"[1]", "[1]; expected one JSON object, an operation"),
        (b'{"index": 0', "no JSON ("),
        (b'{"index": NaN}', "NaN is no JSON; expected a number"),
        (b'{"index": 0, "index": 0}', "'index' is there twice in one object; expected it once"),
        (b"\xff\xfe{}", "byte 0xff is not UTF-8; expected JSON in UTF-8"),
        (b'{"index": ' + b"9" * 5000 + b"}", "no JSON (Exceeds the limit"),
        (b"[" * 100_000, "lists or objects too deep within each other; expected an operation"),
    ],
)
def test_what_is_no_object_is_named(line: bytes, says: str) -> None:
    assert problem(line).startswith(f"h.jsonl:1: {says}")


def test_line_beyond_the_limit_is_named_and_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "JEPSEN_LINE_BYTES_MAX", 200)
    long = with_value(["send", 0, "x" * 200])
    (found,) = read("h", enumerate([long, json.dumps({**SEND, "index": 1}).encode()], 1)).problems
    assert "h:1: a line of more than 200 bytes; expected one operation" == found


def test_lines_beyond_the_limit_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "JEPSEN_LINES_MAX", 2)
    history = read("h", enumerate(Story().filled().encoded(), 1))
    assert ["h:3: more than 2 lines; expected a shorter history"] == history.problems
    assert 2 == len(history.ops)


def test_every_line_is_looked_at_and_the_first_problems_are_kept() -> None:
    lines = [b"x"] * (PROBLEMS_MAX + 5)
    history = read("h", enumerate(lines, 1))
    assert [f"h:{number}:" for number in range(1, PROBLEMS_MAX + 1)] == [
        each.partition(" ")[0] for each in history.problems
    ]
    assert 5 == history.problems_left_out


@pytest.mark.parametrize("lines", [[], [b"\n", b" \n"], Story().line("nemesis", "info", "kill", None).encoded()])
def test_history_without_a_client_proves_nothing(lines: list[bytes]) -> None:
    assert "h.jsonl: no operation of a client; expected a history, one JSON object a line" == problem(*lines)


def test_lines_are_numbered_as_in_the_file() -> None:
    first, second = Story().send(0, (0, 0, 1)).encoded()
    history = read("h", enumerate([b"\n", first, b"\n", second], 1))
    assert [] == history.problems
    assert [(0, 2), (1, 4)] == [(op.index, op.line) for op in history.ops]


@pytest.mark.parametrize(
    ("name", "key"),
    [("0", 0), ("17", 17), ("-3", -3), ("a", "a"), ("", ""), ("1.0", "1.0"), ("²", "²"), ("-", "-")],
)
def test_name_of_a_poll_that_reads_as_an_integer_is_one(name: str, key: Any) -> None:
    assert key == poll_key(name)


def test_sends_and_polls_are_strung_together_by_key() -> None:
    polls = [["poll", {"1": [[0, 9]]}], ["poll", {"1": [[1, 8]]}], ["poll", None], ["poll"]]
    mops = [["send", 0, [1, 5]], *polls, ["send", 0, 6]]
    (op,) = read("h", [(1, json.dumps({**POLLED, "f": "txn", "value": mops}).encode())]).ops
    assert {0: [[1, 5], [None, 6]]} == op.sends
    assert {1: [[0, 9], [1, 8]]} == op.polls


def test_causes_are_those_of_indefinite_transactions_each_once() -> None:
    story = Story()
    for error in ("timeout", ["timeout", 3], "timeout", None):
        story.op(0, "send", [["send", 0, len(story.lines)]], "info", **({"error": error} if error else {}))
    story.op(0, "crash", None, "info", error="not a transaction")
    assert ["timeout", ["timeout", 3], None] == [*story.read().info_causes]


def test_collector_of_garbage_is_as_before() -> None:
    assert gc.isenabled()
    Story().filled().verdict()
    assert gc.isenabled()
