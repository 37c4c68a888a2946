"""checkers/rules/lost.py: lost, permitted and unpromised records, and the sentences about them."""

from __future__ import annotations

import pytest

from checkers.rules.lost import lost
from harness.model import Kind, OpType, Source
from tests.checkers.golden import M1, M2, M3, RECORDS, replicated, scenario_1, scenario_2, scenario_3
from tests.checkers.story import TOPIC, Story
from tests.checkers.without_m2 import ends_without_m2, fails_over, kinds


def test_lost_tells_who_wrote_cut_and_led_in_scenario_1() -> None:
    """Source: KIP-101, Scenario 1."""
    (found,) = lost(scenario_1("hw").ops)
    for part in (
        "m2 (offsets 3-4), written by B in epoch 0, acknowledged (acks=all) at 0.290 s, is gone",
        "A truncated it at 0.380 s to its high watermark (3)",
        "was elected leader in epoch 1 at 0.420 s without it",
        "not permitted, as A truncated it at 0.380 s to its high watermark (3)",
    ):
        assert part in found.sentence


@pytest.mark.parametrize("protocol", ["hw", "kip101"])
def test_lost_permits_when_the_only_other_holder_is_down_in_scenario_2(protocol: str) -> None:
    """Source: KIP-101, Scenario 2."""
    (found,) = lost(scenario_2(protocol).ops)
    assert (Kind.PERMITTED, ((3, 5),), ("B",)) == kinds([found])[0]
    fates = "permitted, as A was down since 0.350 s and B lost it unflushed with its power at 0.350 s"
    assert fates in found.sentence


@pytest.mark.parametrize("protocol", ["hw", "kip101"])
def test_lost_permits_when_the_old_leader_returns_first_in_scenario_3(protocol: str) -> None:
    """Source: KIP-101, returning leaders."""
    (found,) = lost(scenario_3(protocol).ops)
    assert (Kind.PERMITTED, ((3, 5),), ("A",)) == kinds([found])[0]
    verb = "resumed leading epoch 0" if protocol == "hw" else "was elected leader in epoch 1"
    assert verb in found.sentence


def test_lost_is_not_permitted_when_a_killed_holder_keeps_its_page_cache() -> None:
    story = replicated("kip101").fault("kill", "A").fault("restart", "A").started("A").recovered("A", 5)
    story.cut("A", 5, 3, "epoch-answer")
    assert [(Kind.LOST, ((3, 5),), ("A",))] == kinds(ends_without_m2(fails_over(story)))


def test_lost_is_not_permitted_when_the_power_loss_spared_the_record() -> None:
    story = replicated("kip101").fault("power-loss", "A").fault("restart", "A").started("A").recovered("A", 5)
    story.cut("A", 5, 3, "high-watermark")
    assert [Kind.LOST] == [anomaly.kind for anomaly in ends_without_m2(fails_over(story))]


def test_lost_is_permitted_when_every_holder_lost_unflushed_bytes() -> None:
    story = replicated("kip101").fault("power-loss", "A").fault("restart", "A").started("A").recovered("A", 3)
    assert [Kind.PERMITTED] == [anomaly.kind for anomaly in ends_without_m2(fails_over(story))]


def test_lost_is_not_permitted_when_power_was_lost_before_the_acknowledgement() -> None:
    story = Story(RECORDS).fault("power-loss", "A").fault("restart", "A")
    for op in replicated("kip101").ops[1:]:
        story.add(op.source, op.process, op.type, op.f, **op.value)
    story.cut("A", 5, 3, "high-watermark")
    assert [Kind.LOST] == [anomaly.kind for anomaly in ends_without_m2(fails_over(story))]


def test_lost_is_not_permitted_when_a_member_of_the_isr_never_had_it() -> None:
    """The acknowledgement is false: B counted A, which was up and had not copied m2."""
    story = Story(RECORDS).started("A", "B").elected("B", 0).leads("B", 0, 0).follows("A", "B", 0, 0)
    story.sends("m1").append("B", 0, 3, 0, "leader").append("A", 0, 3, 0, "follower").acked("m1", 0)
    story.sends("m2").append("B", 3, 5, 0, "leader").passes("B", 5).acked("m2", 3)
    (found,) = ends_without_m2(fails_over(story))
    assert Kind.LOST == found.kind
    assert "A had not copied it" in found.sentence


def test_lost_asks_only_the_isr_that_acknowledged() -> None:
    """
    The last replica standing loses its unflushed bytes.

    Source:  KIP-966.
    """
    story = Story(RECORDS).started("A", "B").elected("B", 0).leads("B", 0, 0).follows("A", "B", 0, 0)
    story.sends("m1").append("B", 0, 3, 0, "leader").append("A", 0, 3, 0, "follower").acked("m1", 0)
    story.shrinks("B", "B", 0).sends("m2").append("B", 3, 5, 0, "leader").passes("B", 5).acked("m2", 3)
    story.fault("power-loss", "B").fault("restart", "B").started("B").recovered("B", 3)
    story.elected("B", 1, isr="B").leads("B", 1, 3, isr="B")
    assert [Kind.PERMITTED] == [anomaly.kind for anomaly in ends_without_m2(story, leader="B")]


def test_lost_counts_the_isr_as_the_writer_saw_it_when_collectors_race() -> None:
    """The shrink after the acknowledgement does not excuse A."""
    story = replicated("kip101").shrinks("B", "B", 0).cut("A", 5, 3, "high-watermark")
    assert [Kind.LOST] == [anomaly.kind for anomaly in ends_without_m2(fails_over(story))]


@pytest.mark.parametrize(("acks", "offset", "ranges"), [(1, 3, ((3, 5),)), (0, 3, ((3, 5),)), (0, -4, ())])
def test_lost_is_unpromised_when_acks_is_not_all(
    acks: int, offset: int, ranges: tuple[tuple[int, int], ...]
) -> None:
    story = Story(RECORDS).started("A", "B").elected("B", 0).leads("B", 0, 0).sends("m2")
    story.append("B", 0, 5, 0, "leader").acked("m2", offset, acks=acks)
    assert [(Kind.UNPROMISED, ranges)] == [a[:2] for a in kinds(ends_without_m2(fails_over(story)))]


def test_lost_finds_nothing_when_an_unoffset_record_is_in_the_log() -> None:
    story = Story(RECORDS).elected("A", 0).sends("m1").acked("m1", -9, acks=0)
    assert [] == lost(story.log("A", [(0, M1)]).done().ops)


def test_lost_names_the_losing_leader_when_only_zookeeper_tells() -> None:
    story = Story(RECORDS).elected("B", 0).sends("m1").acked("m1", 0).sends("m2").acked("m2", 3)
    story.fault("kill", "B").elected("A", 1, isr="A").healed().log("A", [(0, M1)]).log("B", [(0, M1)])
    assert [(Kind.LOST, ((3, 5),), ("A",))] == kinds(lost(story.read(*M1).done().ops))


def test_lost_permits_when_only_zookeeper_tells_and_all_lost_power() -> None:
    story = Story(RECORDS).elected("B", 0).sends("m1").acked("m1", 0).sends("m2").acked("m2", 3)
    story.fault("power-loss", "A", "B").fault("restart", "A").elected("A", 1, isr="A").healed()
    assert [Kind.PERMITTED] == [a.kind for a in lost(story.log("A", [(0, M1)]).read(*M1).done().ops)]


def test_lost_finds_a_record_replaced_by_another_at_its_offset() -> None:
    story = replicated("kip101").healed().log("B", [(0, M1), (0, M3[:2])])
    (found,) = lost(story.done().ops)
    assert (Kind.LOST, ((3, 5),), ()) == kinds([found])[0]
    assert "B's final log holds 'm3-0' there, in epoch 0, though no leader was seen" in found.sentence


def test_lost_finds_what_the_client_cannot_read_though_the_log_holds_it() -> None:
    story = replicated("kip101").healed().log("B", [(0, M1), (0, M2)])
    assert [(Kind.LOST, ((4, 5),), ())] == kinds(lost(story.read(*M1, M2[0], "other").done().ops))


def test_lost_does_not_count_what_lies_beyond_the_readers_high_watermark() -> None:
    story = replicated("kip101").healed().log("B", [(0, M1), (0, M2)])
    assert [] == lost(story.read(*M1).done().ops)


def test_lost_judges_by_the_client_when_the_leaders_log_was_not_read() -> None:
    story = replicated("kip101").healed()
    story.add(Source.LOG, "B", OpType.FAIL, "snapshot", **TOPIC, error="no such folder")
    assert [(Kind.LOST, ((3, 5),), ())] == kinds(lost(story.read(*M1, "a", "b").done().ops))


def test_lost_blames_the_last_losing_when_an_earlier_leader_only_lacked_it_for_a_while() -> None:
    """A leads without m2, B leads with it again, then A leads without it once more."""
    story = fails_over(replicated("kip101").cut("A", 5, 3, "high-watermark"))
    story.elected("B", 2).leads("B", 2, 5).elected("A", 3).leads("A", 3, 3)
    (found,) = ends_without_m2(story)
    assert 3 == found.epoch


def test_lost_claims_nothing_of_a_log_that_never_healed_when_no_leader_took_over_without_it() -> None:
    """B was elected but never started to lead: its short log proves no loss."""
    story = replicated("kip101").fault("power-loss", "A", "B").fault("restart", "B").started("B").recovered("B", 3)
    story.elected("B", 1, isr="B").log("B", [(0, M1)])
    healed = story.add(Source.RUNNER, "runner", OpType.FAIL, "healed", missing="A is behind")
    assert [] == lost(healed.done().ops)


def test_lost_is_permitted_when_power_went_between_the_commit_and_the_clients_answer() -> None:
    """A committed record is promised, even if the client is answered after its broker lost power."""
    story = Story(RECORDS).started("A", "B").elected("B", 0).leads("B", 0, 0).follows("A", "B", 0, 0)
    story.sends("m1").append("B", 0, 3, 0, "leader").append("A", 0, 3, 0, "follower").acked("m1", 0)
    story.sends("m2").append("B", 3, 5, 0, "leader").append("A", 3, 5, 0, "follower").passes("B", 5)
    story.fault("power-loss", "A", "B").acked("m2", 3)
    story.fault("restart", "A").started("A").recovered("A", 3).elected("A", 1, isr="A").leads("A", 1, 3, isr="A")
    assert [Kind.PERMITTED] == [a.kind for a in ends_without_m2(story)]


@pytest.mark.parametrize(("new_controller", "kind"), [(True, Kind.RETURNED), (False, Kind.LOST)])
def test_lost_by_a_leader_that_followed_another_is_excused_as_the_loss_of_that_other(
    new_controller: bool, kind: Kind
) -> None:
    """B returned unseen and led without m2, A cut its log to B's; C, which had m2, led before A led without it."""
    story = Story(RECORDS, "kip101", "ABC").started("A", "B", "C").elected("A", 0, isr="ABC")
    story.leads("A", 0, 0, isr="ABC").follows("B", "A", 0, 0).follows("C", "A", 0, 0).sends("m1").sends("m2")
    story.append("A", 0, 5, 0, "leader").append("B", 0, 5, 0, "follower").append("C", 0, 5, 0, "follower")
    story.passes("A", 5).acked("m1", 0).acked("m2", 3)
    story.fault("power-loss", "B").fault("restart", "B").started("B").recovered("B", 3)
    if new_controller:
        story.broker("C", "controller", epoch=2, active=True)
    story.elected("B", 1, isr="ABC").leads("B", 1, 3, isr="ABC")
    story.follows("A", "B", 1, 5).cut("A", 5, 3, "epoch-answer", 1)
    story.elected("C", 2, isr="ABC").leads("C", 2, 5, isr="ABC")
    story.elected("A", 3, isr="AC").leads("A", 3, 3, isr="AC")
    assert [kind] == [anomaly.kind for anomaly in ends_without_m2(story)]


@pytest.mark.parametrize(("epochs", "kind"), [([], Kind.UNCHECKED), ([(0, 0), (1, 3)], Kind.PERMITTED)])
def test_lost_is_judged_where_a_batch_that_nobody_reported_is_of_another_epoch_than_the_record(
    epochs: list[tuple[int, int]], kind: Kind
) -> None:
    """B led in epoch 1 and ended before it reported its append; A wrote m2 there in epoch 2 and lost its power."""
    rules = {"epochs": "yes", "newest_epoch_wins": "yes"}
    story = Story(RECORDS, "kip101", rules=rules).started("A", "B").elected("A", 0).leads("A", 0, 0)
    story.follows("B", "A", 0, 0).sends("m1").append("A", 0, 3, 0, "leader").append(
        "B", 0, 3, 0, "follower"
    ).passes("A", 3).acked("m1", 0)
    story.elected("B", 1).leads("B", 1, 3).follows("A", "B", 1, 3)
    story.fault("kill", "B").started("B").recovered("B", 5, epochs)
    story.elected("A", 2, isr="A").leads("A", 2, 3, isr="A").sends("m2").append("A", 3, 5, 2, "leader")
    story.passes("A", 5).acked("m2", 3).fault("power-loss", "A").fault("restart", "A")
    story.started("A").recovered("A", 3).elected("A", 3, isr="A").leads("A", 3, 3, isr="A")
    assert [kind] == [found.kind for found in ends_without_m2(story)]
