"""What is deleted on purpose: bugs of the core that the oracles name, and a sound world without a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.cluster.disk_error import DiskError
from targets.broker.core import deletions, log_start, retention
from targets.broker.core.messages import DeletePartition, DeleteRecordsRequest
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.world import World
from tests.simulator.broker.oracles.planted import fetch, log_of, patch, post, produce, sentence_of, watched
from tests.simulator.worlds import TOPIC, TP, WAIT_S, boot, settled

Plant = Callable[[pytest.MonkeyPatch], None]


def delete(before: int) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(partitions=(DeletePartition(tp=TP, offset=before),), timeout_ms=5_000)


def nothing(*_args: Any, **_named: Any) -> None:
    """Do nothing."""


def test_sound_deletions_are_silent() -> None:
    world, oracles = watched(settings={"retention_bytes": 10**6, "retention_check_ms": 10})
    assert 2 == SimClient(world).delete_records(TOPIC, 0, 2)
    world.run(0.5)
    assert {2} == {log_of(world, name).start_offset for name in "ABC"}
    assert {} == oracles.violations


def _never_completes(monkeypatch: pytest.MonkeyPatch) -> None:
    patch(monkeypatch, deletions, "complete", nothing)


def _answers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    patch(monkeypatch, deletions, "low_watermark", lambda _, replica, own: replica.log.start_offset)


def _has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(original: Any, core: Any, caller: Any, request: Any) -> None:
        original(core, caller, request)
        for number in core.state.deletions.requests:
            core.state.timers.drop(("delete-records", number))

    patch(monkeypatch, deletions, "on_delete_records", endless)


def _wakes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    patch(monkeypatch, log_start.fetches, "wake", nothing)


@pytest.mark.parametrize(
    ("plant", "says"),
    [
        (_never_completes, "A has not answered a deletion up to 2, which its ISR has followed"),
        (_answers_at_once, "A says that its ISR has deleted up to 2, and the log of"),
        (_has_no_end, "A lets a deletion wait without an end"),
        (_wakes_nobody, "A lets a fetch wait below 2, where its log starts"),
    ],
)
def test_deletion_that_a_leader_gets_wrong_is_named(
    plant: Plant, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, oracles = watched()
    waits = fetch(1)
    post(world, "A", type(waits)(**_fields(waits) | {"max_wait_ms": 5_000, "min_bytes": 10**6}))
    plant(monkeypatch)
    post(world, "A", delete(2))
    world.run(1.0)
    assert says in sentence_of(oracles, Rule.DUE)


def _fields(request: Any) -> dict[str, Any]:
    return {name: getattr(request, name) for name in request.__dataclass_fields__}


def _retaining() -> tuple[World, Oracles]:
    return watched(settings={"retention_bytes": 10**6, "retention_check_ms": 10}, segment_bytes=90)


def test_retention_that_keeps_too_little_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    world, oracles = _retaining()
    patch(monkeypatch, retention, "_too_much", lambda *_: 1)
    world.run(0.1)
    assert "bytes of log-0; expected 1000000 at least" in sentence_of(oracles, Rule.DUE)


def test_retention_that_looks_once_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    world, oracles = _retaining()
    patch(monkeypatch, retention, "begin", nothing)
    world.run(0.1)
    assert "looks no more at the age and size of its logs" in sentence_of(oracles, Rule.DUE)


def test_log_that_forgets_its_start_is_named() -> None:
    world, oracles = watched()
    SimClient(world).delete_records(TOPIC, 0, 2)
    log = log_of(world, "A")
    log._start = 0
    log.changes += 1
    SimClient(world).produce(TOPIC, 0, "m3", ["m3.0"], acks=-1)
    assert "starts at 0, and started at 2 before" in sentence_of(oracles, Rule.LOG_START)


def test_follower_that_deletes_before_its_leader_is_named() -> None:
    world, oracles = watched()
    log_of(world, "B").advance_start(1)
    SimClient(world).produce(TOPIC, 0, "m3", ["m3.0"], acks=-1)
    assert "starts at 1, and no leader's past 0" in sentence_of(oracles, Rule.LOG_START)


def _leader_ends_in_a_deletion(monkeypatch: pytest.MonkeyPatch) -> tuple[World, Oracles]:
    """Have the leader end once the new start of its log is on the disk, and before its epochs are."""
    world, oracles = watched()
    log = log_of(world, "A")
    write = log.write_epochs

    def fail(entries: Any, *, flush: bool) -> None:
        world.nodes["A"].break_disk(DiskError.FLUSH)
        write(entries, flush=flush)

    monkeypatch.setattr(log, "write_epochs", fail)
    post(world, "A", delete(2))
    monkeypatch.undo()
    world.nodes["A"].disk.errors.mend()
    assert world.nodes["A"].process is None and log.start_offset == 2
    return world, oracles


@pytest.mark.parametrize("down_s", [0.0, 1.0])
def test_deletion_in_whose_step_the_leader_ended_is_a_leaders(
    down_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, oracles = _leader_ends_in_a_deletion(monkeypatch)
    world.run(down_s)  # others are looked at meanwhile, or not
    boot(world, "A")
    assert world.until(lambda: settled(world), WAIT_S)
    assert {} == oracles.violations


def test_deletion_past_the_high_watermark_in_whose_step_the_leader_ended_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, oracles = watched()
    log = log_of(world, "A")
    advance = log.advance_start

    def too_far(_offset: int) -> None:
        advance(log.end_offset)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(log, "advance_start", too_far)
    for name in ("B", "C"):
        world.nodes[name].pause()
    post(world, "A", produce("m3.0", acks=1))
    post(world, "A", delete(2))
    assert world.nodes["A"].process is None
    assert "starts at 4, past 3, its high watermark when it ended" in sentence_of(oracles, Rule.LOG_START)


def test_start_that_rises_when_a_leader_starts_again_is_named() -> None:
    world, oracles = watched(segment_bytes=90)
    world.nodes["A"].kill()
    del log_of(world, "A").segments[0]
    boot(world, "A")
    assert "starts at 2, and no leader's past 0" in sentence_of(oracles, Rule.LOG_START)
