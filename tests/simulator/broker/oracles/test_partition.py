"""The oracles report a violation at the step that causes it, and report nothing in correct runs."""

from __future__ import annotations

import pytest

from harness.fabric.core.rules import METADATA
from targets.broker.core import follower
from targets.broker.core.state import Role
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.storage.records import make_batch
from targets.simulator.broker.world import SETTINGS
from tests.simulator.broker.oracles.planted import (
    acknowledged,
    fetch,
    log_of,
    patch,
    post,
    produce,
    replica_of,
    sentence_of,
    tamper,
    watched,
)
from tests.simulator.worlds import TOPIC, TP, WAIT_S, cluster, leads, registered, settled, state


def test_oracles_say_nothing_of_elections_kills_and_returns() -> None:
    world, oracles = watched()
    client = SimClient(world)
    for name in ("B", "A", "B"):
        world.nodes[name].kill()
        world.nodes[name].boot()
        assert world.until(lambda name=name: registered(world, name), WAIT_S)  # type: ignore[misc]
        world.run(0.5)
    client.produce(TOPIC, 0, "m3", ["m3.0"], acks=-1)
    world.run(0.5)
    assert {} == oracles.violations


def test_committed_record_that_an_electable_replica_lost_is_named() -> None:
    world, oracles = watched()
    log_of(world, "B").truncate_to(2, world.rules.leo_after_cut)
    world.run(0.2)
    found = oracles.violations[Rule.COMMITTED, TP]
    assert (("B",), 2) == (found.nodes, found.offset)
    assert "m2.0 was committed at offset 2 and is not on B (follower of A in epoch 0), where its log ends" in (
        found.sentence
    )
    assert found.sentence.startswith(f"Step {found.step}, at ")


def test_committed_record_may_be_missing_where_nobody_can_elect_the_replica() -> None:
    world, oracles = watched()
    world.zookeeper.expire(world.zookeeper.session_of(f"/brokers/ids/{world.ids['B']}"))
    world.links.cut("B", "metadata", close=True)
    assert world.until(lambda: world.ids["B"] not in state(world).isr, WAIT_S)
    log_of(world, "B").truncate_to(2, world.rules.leo_after_cut)
    world.run(0.2)
    assert (Rule.COMMITTED, TP) not in oracles.violations


def test_record_that_a_power_cut_took_is_excused() -> None:
    world, oracles = watched()
    assert "2 batches became 0" in world.nodes["B"].lose_power()
    world.run(0.2)
    world.nodes["B"].boot()
    world.run(0.5)
    assert {} == oracles.violations


def test_member_whose_power_went_while_the_leader_asked_for_it_in_the_isr_is_excused() -> None:
    """Source: KIP-903: the write is of a process that is gone, and adds one without its records."""
    world, oracles = watched()
    world.zookeeper.expire(world.zookeeper.session_of(f"/brokers/ids/{world.ids['B']}"))
    cut = world.links.cut("B", "metadata", close=True)
    assert world.until(lambda: world.ids["B"] not in state(world).isr, WAIT_S)
    world.links.heal(cut)
    assert world.until(lambda: world.ids["B"] in (replica_of(world, "A").isr_asked or ()), WAIT_S)
    assert world.ids["B"] not in state(world).isr
    assert "2 batches became 0" in world.nodes["B"].lose_power()
    world.nodes["B"].boot()
    assert world.until(lambda: world.ids["B"] in state(world).isr, WAIT_S)
    world.run(0.5)
    assert {} == oracles.violations


def test_member_whose_fetch_arrives_after_its_power_went_is_excused() -> None:
    """Source: KIP-903: before it a fetch does not say which process of the follower has sent it."""
    world, oracles = watched()
    world.zookeeper.expire(world.zookeeper.session_of(f"/brokers/ids/{world.ids['B']}"))
    cut = world.links.cut("B", "metadata", close=True)
    assert world.until(lambda: world.ids["B"] not in state(world).isr, WAIT_S)
    hold = world.links.hold("fetch", "B", "A", "request", from_offset=3)
    world.links.heal(cut)
    assert world.until(lambda: bool(hold.held), WAIT_S)
    assert world.ids["B"] not in state(world).isr
    assert "2 batches became 0" in world.nodes["B"].lose_power()
    world.nodes["B"].boot()
    world.links.release(hold)
    assert world.until(lambda: world.ids["B"] in state(world).isr, WAIT_S)
    assert 0 == log_of(world, "B").end_offset
    world.run(0.5)
    assert {} == oracles.violations


def test_record_that_went_without_a_power_cut_is_not_excused_by_one_elsewhere() -> None:
    world, oracles = watched()
    log_of(world, "C").flush()
    world.nodes["C"].lose_power()
    log_of(world, "B").truncate_to(2, world.rules.leo_after_cut)
    world.run(0.2)
    assert ("B",) == oracles.violations[Rule.COMMITTED, TP].nodes


def test_leader_that_commits_another_record_in_place_of_a_committed_one_is_named() -> None:
    world, oracles = watched()
    tamper(world, "A", "other")
    world.run(0.2)
    found = oracles.violations[Rule.COMMITTED, TP]
    assert (("A",), 0) == (found.nodes, found.offset)
    assert "commits other at offset 0, where m1.0 was committed before" in found.sentence


def test_record_that_was_sent_twice_is_there_again_when_each_of_its_copies_is() -> None:
    world, oracles = watched()
    SimClient(world).produce(TOPIC, 0, "again", ["m1.0"], acks=-1)
    world.run(0.5)
    oracle = oracles._partitions[TP]
    (number,) = {oracle.records.number_of("m1.0")}
    assert [0, 3] == [offset for offset, each in enumerate(oracle.committed) if each == number]
    log = log_of(world, "C")
    world.nodes["C"].kill()
    log.truncate_to(2, world.rules.leo_after_cut)
    log.flush()
    oracle.replicas.look_at_dead()
    assert number in oracle.replicas.taken["C"]
    world.nodes["C"].boot()
    assert world.until(lambda: log_of(world, "C").end_offset == 4, WAIT_S)
    world.run(0.1)
    assert number not in oracle.replicas.taken["C"]


def test_record_that_an_undone_cut_brought_back_elsewhere_is_not_there_again() -> None:
    """C cut a tail with m2.0, copied m2.0 at offset 2 when it was sent again, and lost that with its power."""
    world, oracles = watched()
    replicas, log = oracles._partitions[TP].replicas, log_of(world, "C")
    (number,) = {oracles._partitions[TP].records.number_of("m2.0")}
    assert [2] == [offset for offset, each in enumerate(replicas.seen["C"].records) if each == number]
    world.nodes["C"].kill()
    batch = log.batches[-1]
    log.truncate_to(2, world.rules.leo_after_cut)
    log.append_as_leader([make_batch(["m9.0"], timestamp_ms=1), batch], 0)
    replicas.look_at_dead()
    assert number in replicas.taken["C"]
    log.truncate_to(2, world.rules.leo_after_cut)
    log.flush()
    world.nodes["C"].boot()
    assert world.until(lambda: log_of(world, "C").end_offset == 3, WAIT_S)
    world.run(0.1)
    assert number not in replicas.taken["C"]


@pytest.mark.parametrize(("epoch", "gone"), [(0, False), (9, True)])
def test_record_that_an_undone_cut_brought_back_is_not_there_again_if_another_leader_appended_it(
    epoch: int, gone: bool
) -> None:
    """C had m2.0 at offset 2 of two leaders, each in its own epoch: what comes back nobody committed."""
    world, oracles = watched()
    replicas, log = oracles._partitions[TP].replicas, log_of(world, "C")
    (number,) = {oracles._partitions[TP].records.number_of("m2.0")}
    world.nodes["C"].kill()
    batch = log.batches[-1]
    log.truncate_to(2, world.rules.leo_after_cut)
    log.append_as_leader([batch], epoch)
    replicas.look_at_dead()
    assert gone == (number in replicas.taken["C"])


def test_what_a_leader_shows_in_place_of_what_its_power_loss_took_is_promised_by_nobody() -> None:
    """The power loss undid a cut: followers have what the leader had before, and cut it later."""
    world, oracles = watched()
    oracle = oracles._partitions[TP]
    oracle.replicas.taken["A"].update(oracle.committed)
    tamper(world, "A", "other")
    SimClient(world).produce(TOPIC, 0, "m3", ["m3.0"], acks=1)
    world.run(0.5)
    assert (Rule.COMMITTED, TP) not in oracles.violations


def test_follower_that_fetches_and_differs_is_named_with_both_records() -> None:
    world, oracles = watched()
    tamper(world, "C", "stray")
    world.run(0.2)
    found = oracles.violations[Rule.PREFIX, TP]
    assert (("A", "C"), 0) == (found.nodes, found.offset)
    assert "C fetches from A" in found.sentence
    assert "stray against m1.0" in found.sentence


def test_follower_that_has_not_cut_its_log_yet_may_differ() -> None:
    """Its OffsetForLeaderEpoch request is held: it is still truncating, and does not fetch."""
    world, oracles = watched()
    world.links.hold("epoch-question", "C", "*", "request")
    world.nodes["C"].kill()
    tamper(world, "C", "stray")
    world.nodes["C"].boot()
    world.run(0.3)
    assert (Rule.PREFIX, TP) not in oracles.violations


@pytest.mark.parametrize(("offset", "value", "sentence"), [
    (0, "m2.0", "m2.0 was acknowledged at offset 0, where m1.0 is committed"),
    (9, "m2.0", "m2.0 was acknowledged at offset 9, where nothing is committed"),
    (1, "ghost", "ghost was acknowledged at offset 1, where m1.1 is committed"),
])  # fmt: skip
def test_acknowledgement_of_what_is_not_committed_there_is_named(offset: int, value: str, sentence: str) -> None:
    _, oracles = watched()
    oracles.listen(acknowledged(2, "m2.0"))
    assert {} == oracles.violations
    oracles.listen(acknowledged(offset, value))
    assert sentence in oracles.violations[Rule.ACKNOWLEDGED, TP].sentence


def test_acknowledgement_with_acks_1_promises_nothing() -> None:
    _, oracles = watched()
    oracles.listen(acknowledged(9, "ghost", acks=1))
    assert {} == oracles.violations


def test_leader_whose_high_watermark_falls_within_its_epoch_is_named() -> None:
    world, oracles = watched()
    replica_of(world, "A").high_watermark = 2
    world.run(0.2)
    found = oracles.violations[Rule.HIGH_WATERMARK, TP]
    assert (("A",), 2) == (found.nodes, found.offset)
    assert "the high watermark of A, leader in epoch 0, is 2, and was 3 before" in found.sentence


def test_leader_whose_high_watermark_is_above_its_log_is_named() -> None:
    world, oracles = watched()
    replica_of(world, "A").high_watermark = 7
    world.run(0.2)
    assert "is 7, above the end of its log, 3" in oracles.violations[Rule.HIGH_WATERMARK, TP].sentence


def test_follower_may_have_a_lower_high_watermark_than_before() -> None:
    world, oracles = watched()
    replica_of(world, "B").high_watermark = 0
    world.run(0.2)
    assert {} == oracles.violations


def test_leader_whose_high_watermark_is_below_its_log_is_named() -> None:
    world, oracles = watched()
    world.nodes["A"].disk.logs[TP]._start = 4
    replica_of(world, "A").leader_epoch = 1
    world.run(0.2)
    assert "is 3, below the start of its log, 4" in sentence_of(oracles, Rule.HIGH_WATERMARK)


@pytest.mark.parametrize("role", [Role.FOLLOWER, Role.NONE])
@pytest.mark.parametrize("high", [7, -1])
def test_replica_whose_high_watermark_is_outside_its_log_is_named_whatever_its_role(role: Role, high: int) -> None:
    world, oracles = watched()
    replica_of(world, "B").role = role
    replica_of(world, "B").high_watermark = high
    post(world, "B", fetch(0))
    assert f"is {high}, outside its log, which spans 0 to 3" in sentence_of(oracles, Rule.FOLLOWER_HIGH_WATERMARK)
    assert ("B",) == oracles.violations[Rule.FOLLOWER_HIGH_WATERMARK, TP].nodes


def test_follower_that_takes_the_leaders_high_watermark_past_its_own_log_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_original: object, _core: object, replica: object, leaders: int) -> None:
        replica.high_watermark = leaders  # type: ignore[attr-defined]

    world, oracles = watched()
    patch(monkeypatch, follower, "_follow_high_watermark", broken)
    log_of(world, "C").truncate_to(2, world.rules.leo_after_cut)
    world.run(0.6)
    assert "is 3, outside its log, which spans 0 to 2" in sentence_of(oracles, Rule.FOLLOWER_HIGH_WATERMARK)


def test_follower_with_another_record_below_its_high_watermark_is_named() -> None:
    world, oracles = watched()
    tamper(world, "C", "stray")
    world.run(0.2)
    found = oracles.violations[Rule.FOLLOWER_HIGH_WATERMARK, TP]
    assert (("C",), 0) == (found.nodes, found.offset)
    assert "is 3; it holds stray at offset 0, where m1.0 was committed" in found.sentence


def test_follower_whose_power_loss_brought_an_old_record_back_is_excused() -> None:
    world, oracles = watched()
    world.nodes["C"].lose_power()
    world.nodes["C"].disk.high_watermarks[TP] = 3
    world.nodes["C"].boot()
    world.run(0.5)
    assert {} == oracles.violations


def test_second_leader_of_an_epoch_is_named_with_the_first() -> None:
    world, oracles = watched()
    replica_of(world, "B").role = Role.LEADER
    world.run(0.2)
    found = oracles.violations[Rule.LEADERS, TP]
    assert ("A", "B") == found.nodes
    assert "B leads in epoch 0, in which A led" in found.sentence


def test_first_violation_of_a_rule_is_the_one_that_is_kept() -> None:
    world, oracles = watched()
    log_of(world, "B").truncate_to(2, world.rules.leo_after_cut)
    world.run(0.2)
    first = oracles.violations[Rule.COMMITTED, TP]
    log_of(world, "C").truncate_to(0, world.rules.leo_after_cut)
    world.run(0.2)
    assert first is oracles.violations[Rule.COMMITTED, TP]


def test_hw_cuts_a_committed_record_and_is_found_at_that_step() -> None:
    """Source: KIP-101, Scenario 1: the follower restarts while its high watermark lags."""
    world = cluster("hw", replicas=("A", "B"))
    oracles = Oracles(world, [TP])
    client = SimClient(world)
    client.produce(TOPIC, 0, "m1", ["m1.0"], acks=-1)
    world.run(0.3)
    world.links.hold("fetch", "B", "A", "answer", from_offset=2)
    client.produce(TOPIC, 0, "m2", ["m2.0"], acks=-1)
    assert {} == oracles.violations
    world.nodes["B"].kill()
    world.nodes["B"].boot()
    assert world.until(lambda: bool(oracles.violations), WAIT_S)
    assert "m2.0 was committed at offset 1 and is not on B" in oracles.violations[Rule.COMMITTED, TP].sentence
    assert leads(world, "A")


def test_rules_hold_while_consumers_and_producers_of_all_kinds_work() -> None:
    world, oracles = watched()
    for acks in (1, -1):
        post(world, "A", produce(f"n{acks}.0", f"n{acks}.1", acks=acks))
        world.run(0.1)
        for offset in range(6):
            post(world, "A", fetch(offset))
            post(world, "B", fetch(offset))
    assert {} == oracles.violations


def test_record_that_a_producer_sent_twice_is_excused_until_both_copies_are_back() -> None:
    """After a power loss B copies batch by batch, and is in the ISR until a controller hears of its return."""
    world, oracles = watched(settings={**SETTINGS, "fetch_bytes_max": 1})
    client = SimClient(world)
    for number in range(9):
        client.produce(TOPIC, 0, f"m{number + 3}", ["twice" if number in (0, 8) else f"m{number}.0"], acks=-1)
    world.run(0.2)
    world.links.cut("C", METADATA, both_ways=True)
    node = world.nodes["B"]
    node.lose_power()
    node.boot()
    assert world.until(lambda: settled(world), WAIT_S)
    assert {} == oracles.violations
