"""A loss or a divergence where brokers report nothing says who led, after which fault, and who holds what."""

from __future__ import annotations

from checkers.rules.diverged import diverged
from checkers.rules.lost import lost
from harness.model import Kind
from tests.checkers.golden import M1, M2, M3, RECORDS, replicated
from tests.checkers.story import Story

OTHER = (*M3, "other")[:2]


def sent() -> Story:
    return Story(RECORDS).elected("B", 0).sends("m1").acked("m1", 0).sends("m2")


def test_loss_under_a_leader_that_was_elected_before_names_it_and_the_fault_before_it() -> None:
    story = sent().fault("kill", "A").fault("pause", "B").fault("resume", "B").elected("A", 1, isr="A")
    story = story.acked("m2", 3).healed().log("A", [(0, M1), (1, OTHER)]).log("B", [(0, M1), (0, M2)])
    (found,) = lost(story.done().ops)
    assert Kind.LOST is found.kind
    assert "A's final log holds" in found.sentence
    assert "; B has it; A had been elected in epoch 1 at " in found.sentence
    assert " after pause B at " in found.sentence
    assert ", before it was acknowledged, though no leader was seen to take over" in found.sentence


def test_loss_under_a_leader_that_was_elected_since_names_the_last_fault_before_it() -> None:
    story = sent().acked("m2", 3).fault("elect", "A").elected("A", 1, isr="A").fault("kill", "B")
    (found,) = lost(story.healed().log("A", [(0, M1)]).log("B", [(0, M1)]).done().ops)
    assert "in which A was elected at " in found.sentence
    assert " after elect A at " in found.sentence
    assert "; B ends at 3" in found.sentence


def test_loss_without_a_fault_names_none() -> None:
    story = sent().elected("A", 1, isr="A").acked("m2", 3).healed().log("A", [(0, M1)])
    (found,) = lost(story.done().ops)
    assert "A had been elected in epoch 1" in found.sentence
    assert " after " not in found.sentence


def test_permitted_loss_says_no_more_than_before() -> None:
    story = sent().acked("m2", 3).fault("power-loss", "A", "B").elected("A", 1, isr="A")
    (found,) = lost(story.healed().log("A", [(0, M1)]).log("B", [(0, M1)]).done().ops)
    assert Kind.PERMITTED is found.kind
    assert "B ends" not in found.sentence and " after " not in found.sentence


def test_divergence_says_of_each_acknowledged_record_whether_the_other_led_since() -> None:
    story = sent().acked("m2", 3).fault("elect", "A").elected("A", 1, isr="A").healed()
    (found,) = diverged(story.log("A", [(0, M1), (1, OTHER)]).log("B", [(0, M1), (0, M2)]).done().ops)
    assert f"; {M2[0]!r} was acknowledged at " in found.sentence
    assert ", and A was elected since, in epoch 1 at " in found.sentence
    assert " after elect A at " in found.sentence


def test_divergence_names_who_led_then_if_the_other_never_did() -> None:
    story = sent().acked("m2", 3).healed().log("A", [(0, M1), (0, OTHER)]).log("B", [(0, M1), (0, M2)])
    (found,) = diverged(story.done().ops)
    assert ", and A was not elected since; B had been, in epoch 0 at " in found.sentence


def test_brokers_that_report_what_they_do_are_told_by_that() -> None:
    story = replicated("kip101").healed().log("B", [(0, M1), (0, OTHER)]).log("A", [(0, M1), (0, M2)])
    (found,) = diverged(story.done().ops)
    assert "was acknowledged" not in found.sentence
    (gone,) = lost(story.ops)
    assert "A has it" not in gone.sentence
