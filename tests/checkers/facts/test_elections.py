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
    assert "leaderAndISR" == story.ops[takeover.elected].f


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
