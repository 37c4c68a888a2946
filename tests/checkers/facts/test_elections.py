"""checkers/facts/elections.py: which node started to lead, and when it was elected."""

from __future__ import annotations

from checkers.facts.elections import elections, takeovers
from tests.checkers.golden import RECORDS, scenario_3
from tests.checkers.story import Story


def test_takeover_is_counted_once_when_the_same_process_is_told_again() -> None:
    story = Story(RECORDS).started("A").elected("A", 0).leads("A", 0, 0).leads("A", 0, 4)
    assert [("A", 0, 0)] == [(t.node, t.epoch, t.log_end) for t in takeovers(story.ops)]


def test_takeover_is_elected_when_zookeeper_says_so() -> None:
    story = Story(RECORDS).started("A").elected("A", 0).started("B").leads("A", 0, 0)
    (takeover,) = takeovers(story.ops)
    assert "state" == story.ops[takeover.elected].f


def test_takeover_is_its_own_election_when_the_leader_resumes() -> None:
    first, second = takeovers(scenario_3("hw").ops)
    assert first.elected < first.op.index
    assert second.elected == second.op.index
    assert (False, True) == (first.resumed, second.resumed)


def test_takeover_is_its_own_election_when_zookeepers_op_comes_later() -> None:
    story = Story(RECORDS).started("A").leads("A", 0, 0).elected("A", 0)
    (takeover,) = takeovers(story.ops)
    assert takeover.op.index == takeover.elected


def test_takeovers_come_from_zookeeper_when_brokers_tell_nothing() -> None:
    story = Story(RECORDS).elected("A", 0).elected(None, 1).elected("B", 2, isr="B")
    assert [("A", 0, None), ("B", 2, None)] == [(t.node, t.epoch, t.log_end) for t in takeovers(story.ops)]


def test_election_is_outside_when_the_isr_before_lacked_the_leader() -> None:
    story = Story(RECORDS).elected("A", 0).elected("A", 0, isr="A").elected(None, 1, isr="A")
    story.elected("B", 2, isr="B")
    assert [("A", False), ("B", True)] == [(e.node, e.outside) for e in elections(story.ops)]


def test_leader_from_the_isr_of_an_unclean_election_is_elected_uncleanly_if_nobody_led_in_between() -> None:
    """The broker that was elected may be gone before it leads, and its controller before it reports that."""
    story = Story(RECORDS).started("A", "B").elected("A", 0).elected("A", 0, isr="A").leads("A", 0, 4, isr="A")
    story.elected("B", 1, isr="B").elected(None, 2, isr="B").elected("B", 3, isr="B").leads("B", 3, 0, isr="B")
    story.elected("B", 4, isr="B").leads("B", 4, 5, isr="B")
    first, second, third = takeovers(story.ops)
    assert [(False, -1), (True, 1), (False, -1)] == [(t.unclean, t.unclean_in) for t in (first, second, third)]
    assert 1 == story.ops[second.elected].value["epoch"]


def test_leader_of_an_unclean_election_of_its_own_is_unclean_in_its_own_epoch() -> None:
    story = Story(RECORDS).started("A", "B").elected("A", 0, isr="A").leads("A", 0, 4, isr="A")
    story.elected("B", 1, isr="B").leads("B", 1, 0, isr="B")
    assert [-1, 1] == [takeover.unclean_in for takeover in takeovers(story.ops)]
