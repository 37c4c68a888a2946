"""A broker whose write or flush failed ends in that step and says why; one that goes on is named."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from harness.cluster.disk_error import DiskError
from targets.broker.core import leader
from targets.broker.core.broker import Broker
from targets.broker.core.log_port import LeoAfterCut
from targets.simulator.broker.node import Node
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.world import World
from tests.simulator.broker.oracles.planted import log_of, patch, post, produce, sentence_of, watched
from tests.simulator.worlds import TP, WAIT_S, Ops, boot, settled


@pytest.mark.parametrize(("error", "text"), [(DiskError.FULL, "28, 'No space"), (DiskError.FLUSH, "5, 'Input")])
def test_sound_broker_ends_at_once_with_the_reason_and_tells_nobody(error: DiskError, text: str) -> None:
    world, oracles = watched(settings={"flush_messages": 1})
    sink = Ops()
    world.record_into(sink)
    node = world.nodes["A"]
    node.break_disk(error)
    ended = log_of(world, "A").end_offset
    post(world, "A", produce("late", acks=1))
    assert node.process is None
    assert node.ended.startswith(f"OSError({text}")
    assert [{"reason": node.ended}] == sink.of("ended", "A")
    assert [] == sink.of("append", "A") if error is DiskError.FULL else sink.of("append", "A")
    node.disk.errors.mend()
    boot(world, "A")
    assert ended == log_of(world, "A").end_offset, "neither error leaves a record that is not durable"
    assert world.until(lambda: settled(world), WAIT_S)
    assert {} == oracles.violations


def swallowed(original: Any, core: Any, replica: Any, batches: Any) -> Any:
    """Append, and go on as if it had succeeded."""
    with suppress(OSError):
        return original(core, replica, batches)
    return replica.log.end_offset, replica.log.end_offset


def test_broker_that_goes_on_after_a_failed_append_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    world, oracles = watched()
    patch(monkeypatch, leader, "append_as_leader", swallowed)
    world.nodes["A"].break_disk(DiskError.FULL)
    post(world, "A", produce("late", acks=1))
    said = sentence_of(oracles, Rule.FAIL_STOP)
    assert "A met ENOSPC at an append to log-0 and goes on: its step after Received had the effects Answer" in said


def test_broker_that_goes_on_after_a_failed_flush_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    world, oracles = watched(settings={"flush_messages": 1})
    disk: Any = world.nodes["A"].disk
    original = disk.flush_log

    def flush(tp: Any, upto: int) -> bool:
        with suppress(OSError):
            return bool(original(tp, upto))
        return True

    monkeypatch.setattr(disk, "flush_log", flush)
    world.nodes["A"].break_disk(DiskError.FLUSH)
    post(world, "A", produce("late", acks=1))
    assert "A met EIO at a flush of log-0 and goes on" in sentence_of(oracles, Rule.FAIL_STOP)


def test_end_that_does_not_say_what_failed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    world, oracles = watched()
    original = Node.end
    monkeypatch.setattr(Node, "end", lambda self, process, _reason: original(self, process, "something"))
    world.nodes["A"].break_disk(DiskError.FULL)
    post(world, "A", produce("late", acks=1))
    boot(world, "A")
    assert "A met ENOSPC at an append to log-0, and the reason of its end is 'something'" in (
        sentence_of(oracles, Rule.FAIL_STOP)
    )


def test_end_for_another_reason_is_no_failure_of_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    world, oracles = watched()

    def bug(*_: Any) -> Any:
        raise ValueError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(Broker, "step", bug)
        post(world, "A", produce("late", acks=1))
    boot(world, "A")
    assert world.until(lambda: settled(world), WAIT_S)
    assert "" == sentence_of(oracles, Rule.FAIL_STOP)


def broken(error: DiskError, *, flush_messages: int = 0) -> World:
    world, _ = watched(settings={"flush_messages": flush_messages})
    world.nodes["B"].break_disk(error)
    return world


def test_disk_that_is_mended_in_time_fails_nothing() -> None:
    world = broken(DiskError.FULL)
    assert "" == world.nodes["B"].disk.errors.mend()
    post(world, "A", produce("late", acks=-1))
    assert world.until(lambda: settled(world) and log_of(world, "B").end_offset == 4, WAIT_S)


def test_oracles_begin_with_what_failed_before_them() -> None:
    world = broken(DiskError.FULL)
    post(world, "A", produce("late", acks=1))
    assert world.until(lambda: world.nodes["B"].process is None, WAIT_S)
    # The oracles learn what was committed before from the leader's next step: C's must not come first.
    assert world.until(lambda: log_of(world, "C").end_offset == 4, WAIT_S)
    oracles = Oracles(world, [TP])
    world.nodes["B"].disk.errors.mend()
    boot(world, "B")
    assert world.until(lambda: settled(world), WAIT_S)
    assert {} == oracles.violations


@pytest.mark.parametrize(("met", "named"), [(DiskError.WRITE, True), (DiskError.FLUSH, False)])
def test_committed_records_that_a_step_cut_before_it_failed_are_named(
    met: DiskError, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that fails takes nothing that was there; a flush that fails does."""
    world, oracles = watched()
    log = log_of(world, "B")

    def cut_and_fail(_batches: Any) -> Any:
        log.truncate_to(1, LeoAfterCut.PHYSICAL)
        world.nodes["B"].disk.errors.arm(met, None)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(log, "append_as_follower", cut_and_fail)
    post(world, "A", produce("m3.0"))
    assert world.until(lambda: world.nodes["B"].process is None, WAIT_S)
    assert named is ("m1.0 was committed at offset 0 and is not on B" in sentence_of(oracles, Rule.COMMITTED))


def test_end_of_a_process_by_an_error_of_a_step_is_seen_in_that_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the next process's first step would be held against the error of the one before."""
    world, oracles = watched()
    patch(monkeypatch, leader, "append_as_leader", failing)
    post(world, "A", produce("late", acks=1))
    assert world.nodes["A"].process is None
    assert "A met ENOSPC at a test, and the reason of its end is" in sentence_of(oracles, Rule.FAIL_STOP)


def failing(_original: Any, core: Any, _replica: Any, _batches: Any) -> Any:
    """Meet an error, and end for another reason."""
    errors = core.disk._node.disk.errors
    errors.arm(DiskError.FULL, None)
    errors.error("a test")
    raise ZeroDivisionError("a bug")
