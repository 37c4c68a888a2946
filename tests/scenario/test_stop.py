"""What the runner does once a watch of its history saw a violation: it ends the schedule, and the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.events import ScheduleStopped
from harness.history.file import History, read_history
from harness.model import Op, OpType, Source
from harness.scenario.file import Draw, parse
from harness.scenario.runner import Play
from harness.scenario.stop import Stop
from tests.scenario.fakes import FakeClient, FakeCluster
from tests.scenario.test_runner import FAULTS, HEAD

SEEN = ScheduleStopped(
    rule="read-goes-back", topic="log", partition=0, offsets=((1, 2),), sentence="It goes back.", proof=(3,)
)


class Sees:
    """A watch that sees a violation in each op that the condition holds for."""

    def __init__(self, condition: Callable[[Op], bool]) -> None:
        self.condition = condition

    def step(self, op: Op) -> ScheduleStopped | None:
        return replace(SEEN, proof=(op.index,)) if self.condition(op) else None


class Fails:
    """A watch with a bug."""

    def step(self, op: Op) -> ScheduleStopped | None:
        raise KeyError(op.index)


def begins(text: str) -> Callable[[Op], bool]:
    """Return a condition that holds for the beginning of a step."""
    return lambda op: op.f == "step" and op.type is OpType.INVOKE and op.value["text"] == text


def play(history: History, watch: Sees | Fails, *steps: str) -> list[Op]:
    scenario = parse("s", HEAD + "\n".join(steps) + "\nexpect hw: none\n", "s.txt", FAULTS)
    cluster, stop = FakeCluster(history), Stop(watch)
    history.listeners.append(stop.listen)
    counts = {"m1": 2, "m2": 3}
    Play(
        scenario=scenario,
        draw=Draw(seed=1, ids=cluster.ids, counts=counts),
        cluster=cluster,
        client=FakeClient(),
        faults=FAULTS,
        stop=stop,
    ).run()
    return read_history(history.path)


def texts(ops: list[Op]) -> list[tuple[str, str]]:
    return [
        (op.type.value, str(op.value["text"])) for op in ops if op.f == "step" and op.type is not OpType.INVOKE
    ]


def test_schedule_ends_after_the_step_in_which_a_violation_was_seen_and_the_run_is_healed_and_read(
    history: History,
) -> None:
    ops = play(
        history, Sees(begins("produce m1 acks=all")), "produce m1 acks=all", "kill A", "produce m2 acks=all"
    )
    assert [("ok", "set up"), ("ok", "produce m1 acks=all")] == texts(ops)
    (stop,) = (op for op in ops if op.f == "stopped")
    assert (Source.RUNNER, "runner", OpType.INFO) == (stop.source, stop.process, stop.type)
    seen = next(op for op in ops if begins("produce m1 acks=all")(op))
    assert replace(SEEN, proof=(seen.index,)) == stop.event
    assert ["stopped", "healed", "done"] == [op.f for op in ops if op.f in ("stopped", "healed", "done")]
    assert [op.process for op in ops if op.f == "snapshot"] == ["B", "A"]


def test_first_violation_is_the_one_that_is_recorded(history: History) -> None:
    ops = play(history, Sees(lambda op: op.f == "step"), "produce m1 acks=all")
    (stop,) = (op for op in ops if op.f == "stopped")
    assert (0,) == stop.event.proof  # type: ignore[attr-defined]
    assert [("ok", "set up")] == texts(ops)


def test_wait_ends_as_soon_as_a_violation_is_seen_and_its_step_did_not_fail(history: History) -> None:
    ops = play(history, Sees(begins("await leader = A")), "await leader = A", "produce m1 acks=all")
    assert [("ok", "set up"), ("info", "await leader = A")] == texts(ops)
    (step,) = (op for op in ops if op.f == "step" and op.type is OpType.INFO)
    assert "ended early: a violation was seen" == step.value["error"]


def test_pass_ends_as_soon_as_a_violation_is_seen(history: History) -> None:
    """The time would be longer than any test."""
    ops = play(history, Sees(begins("pass 3000000ms")), "pass 3000000ms", "kill A")
    assert [("ok", "set up"), ("ok", "pass 3000000ms")] == texts(ops)


def test_rules_of_links_that_nothing_reached_need_no_proof_when_the_schedule_ended(history: History) -> None:
    ops = play(history, Sees(begins("kill A")), "cut A -> B", "kill A", "restart A")
    assert "every rule of a link bit" not in [text for _, text in texts(ops)]


def test_violation_that_is_seen_after_the_schedule_ends_nothing_and_is_not_recorded(history: History) -> None:
    ops = play(history, Sees(lambda op: op.f in ("healed", "snapshot")), "produce m1 acks=all")
    assert [] == [op for op in ops if op.f == "stopped"]
    assert [("ok", "set up"), ("ok", "produce m1 acks=all")] == texts(ops)


def test_bug_of_a_watch_is_raised_by_the_runner_and_not_by_who_records(history: History) -> None:
    with pytest.raises(KeyError):
        play(history, Fails(), "produce m1 acks=all")
