"""The epoch checkpoint agrees with its log at every step, where the rules promise it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from targets.broker.core import leader
from targets.broker.core.rules import PROTOCOLS, with_rule
from targets.broker.core.state import Config
from targets.broker.core.zookeeper import broker_path
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.oracles import Rule
from targets.simulator.broker.oracles.checkpoint import contradiction, is_promised
from targets.simulator.broker.storage.records import make_batch, placed
from targets.simulator.broker.world import registration
from tests.simulator.broker.oracles.planted import log_of, patch, sentence_of, watched
from tests.simulator.worlds import TOPIC, TP, WAIT_S, kill, leads

Entries = tuple[tuple[int, int], ...]


def batch(base: int, epoch: int) -> Any:
    return placed(make_batch(["x", "y"], timestamp_ms=1), base, epoch)


@pytest.mark.parametrize("entries", [
    ((0, 0), (2, 2)),
    ((0, 0), (1, 2), (2, 2)),
    ((0, 0), (2, 2), (3, 4)),
])  # fmt: skip
def test_entries_that_agree_with_their_batches_are_sound(entries: Entries) -> None:
    assert contradiction(entries, [batch(0, 0), batch(2, 2)], 0, 4) is None


@pytest.mark.parametrize(("entries", "offset", "says"), [
    ((), 0, "has no epoch at 0, where a batch of 0 is"),
    (((0, 0),), 2, "has epoch 0 at 2, where a batch of 2 is"),
    (((0, 0), (2, 3)), 2, "has epoch 0 at 2, where a batch of 2 is"),
    (((0, 0), (3, 2)), 2, "has epoch 3 at 2, where a batch of 2 is"),
    (((2, 0), (2, 2)), 2, "does not rise: 2@2 follows 2@0"),
    (((0, 2), (2, 1)), 1, "does not rise: 2@1 follows 0@2"),
    (((0, 0), (2, 2), (3, 5)), 4, "has 3@5, past the end of its log, 4"),
])  # fmt: skip
def test_entries_that_contradict_each_other_a_batch_or_the_end_are_named(
    entries: Entries, offset: int, says: str
) -> None:
    assert (offset, says) == contradiction(entries, [batch(0, 0), batch(2, 2)], 0, 4)


def test_epoch_without_a_record_stays_only_where_the_rules_let_it() -> None:
    entries = ((0, 0), (1, 2), (2, 2))
    assert contradiction(entries, [], 0, 4) is None
    assert contradiction(entries, [], 0, 4, strictly=True) == (2, "does not rise: 2@2 follows 1@2")


def test_checkpoint_may_begin_anew_where_brokers_write_epochs_one_after_another() -> None:
    """Source: KAFKA-7897: a batch without an epoch clears it."""
    batches = [batch(0, 0), batch(2, -1), batch(4, 3)]
    assert contradiction(((3, 4),), batches, 0, 6, mixed=True) is None
    assert contradiction((), batches, 0, 6, mixed=True) is None
    assert contradiction(((3, 4),), batches, 0, 6) == (0, "has no epoch at 0, where a batch of 0 is")
    says = "has epoch 0 at 2, where a batch without one is"
    assert contradiction(((0, 0), (3, 4)), batches, 0, 6, mixed=True) == (2, says)
    says = "has epoch 2 at 4, where a batch of 3 is"
    assert contradiction(((2, 4),), batches, 0, 6, mixed=True) == (4, says)


def test_batches_without_an_epoch_need_no_entry() -> None:
    assert contradiction((), [batch(0, -1)], 0, 2) is None


@pytest.mark.parametrize(("protocol", "promised"), [
    ("hw", False), ("kip101", True), ("kip101-text", False), ("kip279", True), ("kip320", True), ("kip380", True),
])  # fmt: skip
def test_rules_decide_what_is_promised(protocol: str, promised: bool) -> None:
    config = Config(broker_id=1, registration=registration("A"), protocol=protocol, rules=PROTOCOLS[protocol])
    assert promised == is_promised(config)
    assert not is_promised(replace(config, message_format=1))


@pytest.mark.parametrize("change", ["newest_epoch_wins=no", "epoch_trim=up_to_start"])
def test_rule_that_ignores_or_removes_entries_takes_the_promise_back(change: str) -> None:
    rules = with_rule(PROTOCOLS["kip380"], change)
    assert not is_promised(Config(broker_id=1, registration=registration("A"), protocol="kip380", rules=rules))


def elect_b(protocol: str = "kip380") -> str:
    """Kill the leader, append in the next epoch, and return what the oracles say of checkpoints."""
    world, oracles = watched(protocol)
    kill(world, "A")
    world.zookeeper.expire(world.zookeeper.session_of(broker_path(world.ids["A"])))
    assert world.until(lambda: leads(world, "B") or leads(world, "C"), WAIT_S)
    SimClient(world).produce(TOPIC, 0, "m3", ["m3.0"], acks=1)
    world.run(0.3)
    return sentence_of(oracles, Rule.CHECKPOINT)


def test_epoch_that_is_not_recorded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_only(original: Any, core: Any, replica: Any, epoch: int, start: int) -> None:
        if not epoch:
            original(core, replica, epoch, start)

    assert "" == elect_b()
    patch(monkeypatch, leader, "note_epoch", first_only)
    assert "has epoch 0 at 3, where a batch of" in elect_b()
    assert "" == elect_b("kip101-text")


def test_checkpoint_that_is_written_wrong_is_named_when_the_log_has_not_changed() -> None:
    world, oracles = watched()
    log_of(world, "B").write_epochs([(0, 0), (5, 9)], flush=False)
    world.run(0.3)
    found = oracles.violations[Rule.CHECKPOINT, TP]
    assert (("B",), 3) == (found.nodes, found.offset)
    assert (
        "the epoch checkpoint of B (follower of A in epoch 0) has 5@9, past the end of its log, 3"
        in found.sentence
    )


def test_batch_in_the_middle_that_was_replaced_is_seen_when_the_log_is_truncated() -> None:
    world, oracles = watched()
    log = log_of(world, "B")
    log.segments[0].batches[0] = replace(log.segments[0].batches[0], leader_epoch=7)
    log.truncate_to(2, world.rules.leo_after_cut)
    world.run(0.2)
    assert "has epoch 0 at 0, where a batch of 7 is" in sentence_of(oracles, Rule.CHECKPOINT)
