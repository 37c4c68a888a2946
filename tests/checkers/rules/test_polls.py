"""Polls of consumers: what leaders lawfully answered is never held against them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from checkers.judge import check_in_process
from harness.model import Anomaly, Kind, Op, OpType, PartOps, Source
from tests.checkers.plants.edit import RUNS
from tests.checkers.polling import answers, consumed
from tests.checkers.story import TOPIC, Story

# Runs of brokers that report what they do; of one partition, as polls are made up for the first that is found.
_OTHERS = ("kafka", "made-group", "sim-churned")
REPORTED = sorted(path.stem for path in RUNS.glob("*.jsonl") if not path.stem.startswith(_OTHERS))


def _run(name: str) -> list[Op]:
    lines = (RUNS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Op.from_json(line) for line in lines]


@pytest.mark.parametrize("anew", [False, True], ids=["reads on", "seeks"])
@pytest.mark.parametrize("name", REPORTED)
def test_polls_that_leaders_answer_lawfully_change_nothing(name: str, anew: bool) -> None:
    """Two readers see two records at an offset where one was lost for no lawful reason: that alone is added."""
    ops = _run(name)
    assert next(answers(ops)).node
    before, found = check_in_process(ops), check_in_process(consumed(ops, anew=anew))
    differ = [each for each in found if each.kind is Kind.INCONSISTENT_OFFSETS]
    lost = {offset for each in before if each.kind is Kind.LOST for offset in _offsets(each)}
    assert {offset for each in differ for offset in _offsets(each)} <= lost
    assert _kinds(before) == _kinds(each for each in found if each not in differ), found


@pytest.mark.parametrize("told", [True, False], ids=["high watermark", "no high watermark"])
@pytest.mark.parametrize("name", REPORTED[:3])
def test_poll_of_a_client_that_does_not_tell_whom_it_asked_is_whole_and_proves_no_leadership(
    name: str, told: bool
) -> None:
    """librdkafka fetches by itself, before its poll, and tells neither the node nor always the high watermark."""
    ops = _run(name)
    untold = [_untold(op, told) if op.f == "poll" else op for op in consumed(ops, anew=False)]
    assert {op.value["node"] for op in untold if op.f == "poll"} == {""}
    found = [each for each in check_in_process(untold) if each.kind is not Kind.INCONSISTENT_OFFSETS]
    assert _kinds(check_in_process(ops)) == _kinds(found), found


@pytest.mark.parametrize("name", REPORTED)
def test_loss_of_what_was_read_is_judged_alike_where_the_client_does_not_tell_whom_it_asked(name: str) -> None:
    """Regression: of an untold node no copy was found, so that a lawful loss was unknown."""
    ops = [_unanswered(op) for op in consumed(_run(name), anew=False)]
    untold = [_untold(op, True) if op.f == "poll" else op for op in ops]
    assert _kinds(check_in_process(ops)) == _kinds(check_in_process(untold))


def _unanswered(op: Op) -> Op:
    """Return the op; of an acknowledgement, that the answer was lost."""
    if op.f != "produce" or op.type is not OpType.OK:
        return op
    kept = {key: value for key, value in op.value.items() if key != "offset"}
    return replace(op, type=OpType.INFO, value={**kept, "error": "no answer"})


def _untold(op: Op, told: bool) -> Op:
    kept = {key: value for key, value in op.value.items() if told or key != "high_watermark"}
    return replace(op, value={**kept, "node": ""})


def _offsets(anomaly: Anomaly) -> set[int]:
    return {offset for first, end in anomaly.ranges for offset in range(first, end)}


def _kinds(anomalies: Iterable[Anomaly]) -> Counter[tuple[object, ...]]:
    return Counter((each.kind, each.ranges, each.checker) for each in anomalies)


# --- one consumer ------------------------------------------------------------------------------------------------
VALUES = tuple(f"m1-{offset}" for offset in range(10))


class _Run:
    """A run in which A and B hold ten records, and consumers poll A; each call adds a poll."""

    def __init__(self) -> None:
        self.story = _replicated()

    def poll(
        self, position: int, *offsets: int, sought: bool = False, ok: bool = True, process: str = "client-7"
    ) -> _Run:
        asked = {**TOPIC, "node": "A", "position": position, **({"sought": True} if sought else {})}
        self.story.add(Source.CLIENT, process, OpType.INVOKE, "poll", **asked)
        answer = {"records": [[offset, VALUES[offset]] for offset in offsets], "high_watermark": 10}
        if ok:
            self.story.add(Source.CLIENT, process, OpType.OK, "poll", **asked, **answer)
        else:
            self.story.add(Source.CLIENT, process, OpType.FAIL, "poll", **asked, error="OFFSET_OUT_OF_RANGE")
        return self

    def found(self) -> list[tuple[Kind, tuple[tuple[int, int], ...]]]:
        """Return the kinds and ranges that are found once the logs are read."""
        log = [(0, VALUES)]
        story = self.story.healed().log("A", log, [(0, 0)]).log("B", log, [(0, 0)]).read(*VALUES).done()
        return [(each.kind, each.ranges) for each in check_in_process(story.ops)]


def _replicated() -> Story:
    story = Story({"m1": VALUES}, "kip101").started("A", "B", "C").elected("A", 0)
    story.leads("A", 0, 0).follows("B", "A", 0, 0).sends("m1")
    story.append("A", 0, 10, 0, "leader").append("B", 0, 10, 0, "follower")
    return story.passes("A", 10).acked("m1", 0)


def test_consumer_that_reads_on_is_lawful_also_where_nothing_comes() -> None:
    assert [] == _Run().poll(0, 0, 1, 2).poll(3).poll(3, 3, 4).found()


def test_consumers_do_not_share_a_position() -> None:
    assert [] == _Run().poll(0, 0, 1, 2).poll(1, 1, 2, process="client-8").poll(3, 3).found()


@pytest.mark.parametrize("ok", [True, False], ids=["answered", "refused"])
def test_position_that_was_assigned_holds_for_the_polls_after_it(ok: bool) -> None:
    empty = _Run().poll(0, 0, 1, 2, 3).poll(1, sought=True, ok=ok)
    assert [] == empty.poll(1, 1, 2).found()


def test_consumer_goes_back_that_asks_for_what_it_was_shown() -> None:
    assert [(Kind.NONMONOTONIC_POLL, ((1, 3),))] == _Run().poll(0, 0, 1, 2).poll(1, 1, 2).found()


def test_failed_poll_moves_no_position() -> None:
    found = _Run().poll(0, 0, 1, 2).poll(6, ok=False).poll(6, 6, 7).found()
    assert [(Kind.POLL_SKIP, ((3, 6),))] == found


def test_gap_within_a_poll_is_a_skip() -> None:
    assert [(Kind.POLL_SKIP, ((1, 3), (5, 6)))] == _Run().poll(0, 0, 3, 4, 6).found()


def test_each_consumer_is_told_once_what_it_skipped() -> None:
    run = _Run().poll(0, 1).poll(2, 3).poll(0, 2, process="client-8")
    assert [(Kind.POLL_SKIP, ((0, 1), (2, 3))), (Kind.POLL_SKIP, ((0, 2),))] == run.found()


def test_four_times_the_records_take_about_four_times_the_calls() -> None:
    def calls(consumers: int) -> int:
        run = _Run()
        for consumer in range(consumers):
            for position in range(10):
                run.poll(position, position, process=f"client-{100 + consumer}")
        ops = PartOps(run.story.ops)
        return _calls_of(lambda: check_in_process(ops))

    few, many = calls(50), calls(200)
    assert many < 5 * few


def _calls_of(judge: Callable[[], object]) -> int:
    """Return how many functions were called."""
    called = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal called
        called += event == "call"

    sys.setprofile(count)
    try:
        judge()
    finally:
        sys.setprofile(None)
    return called
