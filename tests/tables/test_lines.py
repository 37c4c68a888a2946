"""Lines that are read the short way have the rows of their ops; what differs in the least goes the long way."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.history.sequence import Breaks
from harness.model import Op
from harness.tables.lines import Lines
from harness.tables.rows import Rows
from tests.checkers.golden import M1, RECORDS, replicated
from tests.checkers.plants.edit import RUNS
from tests.checkers.plants.histories import HISTORIES
from tests.checkers.story import Story
from tests.tables.stored import silent


class LongWay(Lines):
    """Takes every line by its op."""

    def _add_quickly(self, line: str) -> bool:
        return False


class Counting(Lines):
    """Counts what goes the short way."""

    quick = 0

    def _add_quickly(self, line: str) -> bool:
        found = super()._add_quickly(line)
        self.quick += found
        return found


def _added(kind: type[Lines], lines: bytes) -> tuple[Any, Lines]:
    """Return all that came of lines, and who read them."""
    rows = Rows()
    reader = kind(rows, "history")
    reader.add(lines)
    reader.end(0)
    events = [(*row[:-1], json.dumps(json.loads(row[-1]))) for row in rows.rows.pop("events")]
    return (rows.rows, events, rows.irregular, rows.parts, rows.logs, rows.reach, _told(reader.breaks)), reader


def _told(breaks: Breaks) -> Any:
    return breaks.count, breaks.skips, breaks.falls


def _lines(ops: Iterable[Op]) -> bytes:
    return "".join(op.to_json() + "\n" for op in ops).encode()


def _digests(ops: Iterable[Op]) -> list[Op]:
    """Return ops in which clients say what they send, as ours do."""
    return [
        replace(op, value={**op.value, "digest": f"{number:016x}"})
        if (op.f, op.type) == ("produce", "invoke")
        else op
        for number, op in enumerate(ops)
    ]


@pytest.mark.slow
def test_lines_of_every_golden_and_plant_have_the_rows_of_their_ops() -> None:
    quick = total = 0
    changes = [list, silent, _digests]
    # One plant of three has every sort of op.
    for number, ops in enumerate(HISTORIES[name] for name in [*HISTORIES][::3]):
        lines = _lines(changes[number % 3](ops))
        found, reader = _added(Counting, lines)
        assert _added(LongWay, lines)[0] == found
        quick, total = quick + reader.quick, total + lines.count(b"\n")
    assert 0.9 * total < quick < total


@pytest.mark.parametrize("run", ["local-kip101-1", "sim-hw-66"])
def test_lines_with_older_names_have_the_rows_of_the_names_of_today(run: str) -> None:
    older = (RUNS / f"{run}.jsonl").read_bytes()
    today = _lines(map(Op.from_json, older.decode().splitlines()))
    assert older != today
    found, reader = _added(Counting, older)
    assert _added(Lines, today)[0] == found
    assert 0 < reader.quick < older.count(b"\n")


_SCRAPS = (
    *(b'"', b"\\", b"]", b"[", b"{", b"}", b",", b":", b" ", b"\t", b"\x00", b"\xc3\xa9", b"\xff", b"\r"),
    *(b"0", b"-", b"-1", b"1.0", b"1e3", b"99999999999999999999", b"true", b"null", b"NaN", b'"x"'),
    *(b"\\u0041", b"\\ud83d\\ude00", b'"records":[', b'"records":[],', b'"offset":3,', b"[3,4]", b"]],"),
)
_VALUES: Sequence[Any] = (
    0,
    -1,
    2**63,
    2**70,
    1.0,
    True,
    None,
    "",
    "x",
    "0" * 16,
    [],
    [3],
    [[]],
    {},
    {"a": 1},
    "é",
)


def _with_a_scrap(line: bytes, rng: random.Random) -> bytes:
    """Return a line with some bytes in place of others, anywhere."""
    begin = rng.randrange(len(line))
    return line[:begin] + rng.choice(_SCRAPS) + line[begin + rng.choice((0, 0, 1, 1, 2, 5)) :]


def _with_a_value(line: bytes, rng: random.Random) -> bytes:
    """Return a line of JSON with one value another, or away, or more."""
    raw = json.loads(line)
    places = [raw, raw["value"], raw["value"], raw["value"]]
    for record in raw["value"]["records"] if raw["f"] in ("batch", "read") and "records" in raw["value"] else ():
        places += [raw["value"]["records"], record]
    place = rng.choice(places)
    key = rng.choice([*(place if isinstance(place, dict) else range(len(place)))] or ["more"])
    if rng.random() < 0.1:
        del place[key]
    else:
        place["more" if isinstance(place, dict) and rng.random() < 0.1 else key] = rng.choice(_VALUES)
    return json.dumps(raw, separators=(",", ":")).encode()


@pytest.mark.parametrize("alter", [_with_a_scrap, _with_a_value])
def test_lines_that_are_altered_anywhere_have_the_rows_of_their_ops(alter: Any) -> None:
    story = replicated("kip101").log("A", [(0, M1), (3, ["m2-0", "m2-1"])])
    lines = _lines(_digests(story.read("client-9", [*M1, "m2-0"]).ops)).splitlines(keepends=True)
    bulk = [number for number, line in enumerate(lines) if b'"produce"' in line or b'"records":[[' in line]
    rng, strange = random.Random(8), 0
    for _ in range(600):
        number = rng.choice((rng.randrange(len(lines)), rng.choice(bulk)))
        altered = alter(lines[number][:-1], rng)
        every = b"".join((*lines[:number], altered, b"\n", *lines[number + 1 :]))
        found, _ = _added(Lines, every)
        assert _added(LongWay, every)[0] == found, altered
        strange += bool(found[2]) or any(event[3] == "unreadable" for event in found[1])
    assert 100 < strange < 600


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"index":7', b'"index":07'),
        (b'"time_ns":', b'"time_ns":0'),
        (b',"value":{', b',"value":{},"more":{'),
        (b"}}\n", b'},"more":{}}\n'),
        (b"}}\n", b"}}}\n"),
        (b"}}\n", b"}} \n"),
        (b'"process":', b'"process":"x","process":'),
        (b'"topic":', b'"topic":"x","topic":'),
    ],
)
def test_line_that_is_written_otherwise_has_the_rows_of_its_op(old: bytes, new: bytes) -> None:
    lines = _lines(replicated("kip101").ops).splitlines(keepends=True)
    assert old in lines[7]
    every = b"".join((*lines[:7], lines[7].replace(old, new, 1), *lines[8:]))
    assert _added(LongWay, every)[0] == _added(Lines, every)[0]


def _read(records: str, more: str = ',"high_watermark":3') -> bytes:
    """Return the line of a read that showed these records."""
    return (
        '{"index":0,"time_ns":1,"source":"client","process":"c","type":"ok","f":"read","value":{"topic":"t",'
        f'"partition":0,"records":[{records}]{more}}}}}\n'
    ).encode()


@pytest.mark.parametrize(
    ("line", "rows", "irregular"),
    [
        (_read('[0,"a"],[2,"b"]'), 2, ""),
        (_read(""), 0, ""),
        (_read('[0,"a"],[0,"b"]'), 0, "goes back"),
        (_read('[0,"a"],[3,"b"]'), 0, "not below its high watermark"),
        (_read('[-1,"a"]'), 0, "below offset 0"),
        (_read('[0,"]],"],[1,"[["]'), 2, ""),
        (_read('[0,"\\u00e9"]'), 1, ""),
        (_read('[0,"a"]', ""), 0, "not below its high watermark"),
        (_read('[0,"a"]', ',"records":[],"high_watermark":3'), 0, ""),
        (_read('[0,"a"]', ',"records":[[1,"b"]],"high_watermark":3'), 1, ""),
        (_read('[0,"a"]', ',"error":"]]"'), 0, "not below its high watermark"),
        (_read('[0,"a"],[1,"b"'), 0, ""),
        (_read('[0,"a"]],[[1,"b"]'), 0, ""),
        (_read('[0,"a"]][1,"b"]'), 0, ""),
        (_read('[0,"a"],[1,"b"],'), 0, ""),
    ],
)
def test_records_that_a_read_showed(line: bytes, rows: int, irregular: str) -> None:
    found, _ = _added(Lines, line)
    assert _added(LongWay, line)[0] == found
    assert rows == len(found[0]["reads"])
    assert irregular in found[2].get("t-0", "")
    assert bool(irregular) is bool(found[2])


def test_rows_of_one_long_read_are_taken_while_it_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.tables.rows.ROWS", 2)
    rows, taken = Rows(), []

    def take() -> None:
        taken.append(len(rows.rows["reads"]))
        rows.rows["reads"] = []

    rows.on_rows = take
    Lines(rows, "history").add(_read('[0,"a"],[1,"b"],[2,"c"],[3,"d"],[4,"e"]', ',"high_watermark":5'))
    assert ([2, 2], 1) == (taken, len(rows.rows["reads"]))


def test_client_with_a_new_name_for_each_call_is_remembered_no_longer_than_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.tables.lines._ABOUTS_MAX", 2)
    ops = Story(RECORDS).sends("m1").acked("m1", 0).ops
    lines = _lines(ops)
    assert _added(LongWay, lines)[0] == _added(Lines, lines)[0]


@pytest.mark.parametrize("partition", [2**31, -2, 2**70])
def test_number_that_no_column_holds_makes_its_partition_irregular(partition: int) -> None:
    line = _read('[0,"a"]').replace(b'"partition":0', b'"partition":%d' % partition)
    found, _ = _added(Lines, line)
    assert _added(LongWay, line)[0] == found
    assert {"--1": f"op 0: client 'read' has partition {partition}; expected 32 bits"} == found[2]
