"""The facts of a history are those that were counted by hand; what cannot be read is one fact that says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkers.facts.activity import activity_of
from checkers.measures.latency import bounds_of
from checkers.measures.run import facts_of
from checkers.spark.measured import measures_in
from harness.model import OpType, PartOps
from tests.checkers.golden import STORIES, ops_of
from tests.checkers.measures.histories import MS, Timed, golden


def _facts(content: bytes, what: str) -> list[dict[str, Any]]:
    return [fact for fact in facts_of(measures_in(content)) if fact["what"] == what]


def test_facts_of_a_history_are_those_counted_by_hand() -> None:
    (run,) = _facts(golden().lines(), "run")
    assert {
        "what": "run",
        "release": "broker",
        "lasted_s": 10.0,
        "ok": 4,
        "fail": 1,
        "info": 1,
        "open": 1,
        "window_s": 1.0,
        "windows": 8,
        "available": 3,
        "unavailable_s": 5.0,
        "unavailable_from_s": 2.0,
        # The pause had no effect; the restart only undoes.
        "around": ["kill"],
    } == run


def test_faults_of_a_history_are_those_counted_by_hand() -> None:
    faults = [(fact["kind"], fact["asked"], fact["bit"]) for fact in _facts(golden().lines(), "fault")]
    assert [("kill", 1, 1), ("pause", 1, 0), ("restart", 1, 1)] == faults


def test_latencies_of_a_history_are_those_counted_by_hand() -> None:
    found = {(fact["outcome"], fact["acks"], fact["max_ns"]): fact for fact in _facts(golden().lines(), "latency")}
    assert {
        ("ok", -1, 5 * MS),
        ("ok", -1, 300 * MS),
        ("ok", 0, 1_000),
        ("ok", 1, 1_400 * MS),
        ("fail", -1, 40 * MS),
        ("info", -1, 2_000 * MS),
    } == found.keys()
    for (_, _, ns), fact in found.items():
        assert 1 == fact["count"]
        assert fact["from_ns"] <= ns <= fact["to_ns"]
        assert (fact["from_ns"], fact["to_ns"]) == bounds_of(fact["bucket"])


def test_virtual_time_has_shorter_windows() -> None:
    (run,) = _facts(golden("sim").lines(), "run")
    # From 2.0 s to 7.89 s nothing was acknowledged, and from 9 s on.
    assert (0.01, 5.9, 2.0) == (run["window_s"], run["unavailable_s"], run["unavailable_from_s"])


def test_release_of_another_system_is_named() -> None:
    (run,) = _facts(Timed(target="kafka", protocol="3.9.1").done(1).lines(), "run")
    assert "kafka:3.9.1" == run["release"]


def test_fault_that_was_healed_long_before_is_not_around() -> None:
    story = Timed()
    story.fault(0, "kill", OpType.OK, "down").fault(500, "restart", OpType.OK, heals=("down",))
    story.fault(2_500, "expire", OpType.OK, "session-ended").fault(
        3_100, "zombie", OpType.OK, "cut-off-from-metadata"
    )
    story.sent(3_000, "a").ended(3_500, "a", OpType.INFO)
    (run,) = _facts(story.done(4_000).lines(), "run")
    assert ["expire", "zombie"] == run["around"]


@pytest.mark.parametrize("name", sorted(STORIES))
def test_faults_are_counted_as_a_suite_counts_them(name: str) -> None:
    ops = ops_of(name)
    lines = "".join(op.to_json() + "\n" for op in ops).encode()
    counted = activity_of(PartOps(ops))
    found = {fact["kind"]: (fact["asked"], fact["bit"]) for fact in _facts(lines, "fault")}
    if not found:  # it may be no whole history
        assert _facts(lines, "unreadable") or not any(counted.asked.values())
        return
    kinds = {kind for kind in {*counted.asked, *counted.bit} if counted.asked.get(kind) or counted.bit.get(kind)}
    assert {kind: (counted.asked.get(kind, 0), counted.bit.get(kind, 0)) for kind in kinds} == found


def _without(place: int) -> bytes:
    return b"".join(
        golden().lines().splitlines(keepends=True)[:place]
        + golden().lines().splitlines(keepends=True)[place + 1 :]
    )


def _changed(f: str, **value: Any) -> bytes:
    raw = [json.loads(line) for line in golden().lines().splitlines()]
    for line in raw:
        if line["f"] == f:
            line["value"] |= value
    return "".join(json.dumps(line) + "\n" for line in raw).encode()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (golden().lines()[:-9], "the last line is torn"),
        (golden().lines().replace(b'"f":"produce"', b'"f":produce', 1), "line 2: "),
        (golden().lines().replace(b'"f":"produce"', b'"f":"pr\xffduce"', 1), "line 2: "),
        (_without(7), "op 8 follows op 6; expected no op to be missing"),
        (_without(0), "no set-up; expected one in the first line"),
        (_without(len(golden().ops) - 1), "ends without `done`"),
        (b"\n", "line 1: "),
        (_changed("produce", acks="all"), "acks"),
        (_changed("kill", effect="moon"), "moon"),
        (golden().broken(10_001, "A sent 'x'; expected an op").lines(), "A sent 'x'; expected an op"),
    ],
)
def test_history_that_cannot_be_read_is_one_fact_that_says_why(content: bytes, reason: str) -> None:
    (found,) = facts_of(measures_in(content))
    assert "unreadable" == found["what"]
    assert reason in found["reason"]


def test_nothing_measured_is_unreadable() -> None:
    assert [{"what": "unreadable", "reason": "no set-up; expected one in the first line"}] == facts_of([])
