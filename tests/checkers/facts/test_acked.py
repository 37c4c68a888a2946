"""checkers/facts/acked.py: which leader's append an acknowledged record is."""

from __future__ import annotations

import pytest

from checkers.facts.acked import acked_records, broken_promises, promise_of, written_by
from tests.checkers.story import Story

RECORDS = {"x": ["x-0"], "y": ["y-0"]}


def two_leaders_at_one_offset() -> Story:
    """A leads epoch 0 and B epoch 1; each appends its client's record at offset 0 before either is told so."""
    story = Story(RECORDS, "kip101").leads("A", 0, 0).sends("x", acks=1).sends("y", acks=1)
    return story.append("A", 0, 1, 0, "leader").leads("B", 1, 0).append("B", 0, 1, 1, "leader")


def writer_of(story: Story, value: str) -> str:
    """Return the node whose append wrote this acknowledged record."""
    (acked,) = [each for each in acked_records(story.ops) if each.value == value]
    written = written_by(story.ops, acked)
    assert written is not None
    return written.process


def test_each_of_two_leaders_appends_is_of_the_record_that_its_final_log_holds() -> None:
    story = two_leaders_at_one_offset().acked("x", 0, acks=1).acked("y", 0, acks=1)
    story.log("A", [(0, ["x-0"])]).log("B", [(1, ["y-0"])])
    assert ("A", "B") == (writer_of(story, "x-0"), writer_of(story, "y-0"))


def test_append_that_a_final_log_holds_is_the_records_own_though_another_leader_appended_later() -> None:
    """A leads again, and B copies x in place of y, which no final log has."""
    story = two_leaders_at_one_offset().acked("x", 0, acks=1).acked("y", 0, acks=1).leads("A", 2, 1)
    story.follows("B", "A", 2, 1).cut("B", 1, 0, "epoch-answer", 2).append("B", 0, 1, 0, "follower")
    story.log("A", [(0, ["x-0"])]).log("B", [(0, ["x-0"])])
    assert ("A", "B") == (writer_of(story, "x-0"), writer_of(story, "y-0"))


def test_append_that_a_final_log_shows_to_be_of_another_record_is_not_of_this() -> None:
    """A was cut and copied y, so no final log has x."""
    story = two_leaders_at_one_offset().acked("x", 0, acks=1).acked("y", 0, acks=1)
    story.follows("A", "B", 1, 1).cut("A", 1, 0, "epoch-answer", 1).append("A", 0, 1, 1, "follower")
    story.log("A", [(1, ["y-0"])]).log("B", [(1, ["y-0"])])
    assert ("A", "B") == (writer_of(story, "x-0"), writer_of(story, "y-0"))


def test_append_that_is_reported_after_the_acknowledgement_is_the_records_own_though_another_lies_between() -> (
    None
):
    """A, which does not know of its successor yet, appended something else at that offset in time."""
    story = Story(RECORDS, "kip101").leads("A", 0, 0).leads("B", 1, 0).sends("x", acks=1).sends("y")
    story.append("A", 0, 1, 0, "leader").acked("y", 0).append("B", 0, 1, 1, "leader")
    story.follows("A", "B", 1, 1).cut("A", 1, 0, "epoch-answer", 1).append("A", 0, 1, 1, "follower")
    story.log("A", [(1, ["y-0"])]).log("B", [(1, ["y-0"])])
    assert "B" == writer_of(story, "y-0")


def test_append_that_a_final_log_holds_is_not_the_records_own_if_another_leader_committed_it_there() -> None:
    """A had y at offset 0 and cut it; B had it there once more and committed it; a power loss undid A's cut."""
    story = two_leaders_at_one_offset().passes("B", 1).acked("y", 0).leads("A", 2, 1)
    story.follows("B", "A", 2, 1).cut("B", 1, 0, "epoch-answer", 2).append("B", 0, 1, 0, "follower")
    story.log("A", [(0, ["y-0"])]).log("B", [(0, ["y-0"])])
    assert "B" == writer_of(story, "y-0")


def test_of_several_appends_that_are_reported_after_the_acknowledgement_the_final_logs_tell_the_records_own() -> (
    None
):
    story = Story(RECORDS, "kip101").leads("A", 0, 0).leads("B", 1, 0).sends("x", acks=1).sends("y").acked("y", 0)
    story.append("A", 0, 1, 0, "leader").append("B", 0, 1, 1, "leader")
    story.follows("A", "B", 1, 1).cut("A", 1, 0, "epoch-answer", 1).append("A", 0, 1, 1, "follower")
    story.log("A", [(1, ["y-0"])]).log("B", [(1, ["y-0"])])
    assert "B" == writer_of(story, "y-0")


def test_of_two_appends_of_one_record_that_are_reported_after_its_acknowledgement_the_first_wrote_it() -> None:
    """A wrongly says that it appended what B led and it copied: the record was B's all the same."""
    story = Story(RECORDS, "kip101").leads("B", 0, 0).follows("A", "B", 0, 0).sends("y").acked("y", 0)
    story.append("B", 0, 1, 0, "leader").append("A", 0, 1, 0, "leader")
    story.log("A", [(0, ["y-0"])]).log("B", [(0, ["y-0"])])
    assert "B" == writer_of(story, "y-0")


def test_isr_under_which_a_leader_committed_counts_though_it_is_reported_after_the_acknowledgement() -> None:
    """Brokers' events race to the collector with what clients hear."""
    story = Story(RECORDS, "kip101").leads("A", 0, 0).sends("x").append("A", 0, 1, 0, "leader")
    story.acked("x", 0).leads("A", 1, 1, isr="A").passes("A", 1)
    (acked,) = acked_records(story.ops)
    written = written_by(story.ops, acked)
    promise = promise_of(story.ops, 0, written, acked.index, acknowledged=True)
    assert (("A", "B"), ("A",)) == promise.isrs
    assert acked.index == promise.index


def test_acknowledgement_is_the_writers_promise_and_a_commit_alone_that_of_whoever_committed() -> None:
    """A was replaced and does not know: B commits x alone, then A does and acknowledges it, as B has copied it."""
    story = Story(RECORDS, "kip101").leads("A", 0, 0).follows("B", "A", 0, 0).sends("x")
    story.append("A", 0, 1, 0, "leader").append("B", 0, 1, 0, "follower").leads("B", 1, 1, isr="B")
    story.passes("B", 1).passes("A", 1).acked("x", 0)
    (acked,) = acked_records(story.ops)
    written = written_by(story.ops, acked)
    promises = [promise_of(story.ops, 0, written, acked.index, acknowledged=each) for each in (True, False)]
    assert [("A", "B"), ("B",)] == [promise.isr for promise in promises]
    assert promises[0].committed is promises[1].committed is not None
    assert promises[0].index < acked.index


@pytest.mark.parametrize("idempotent", [False, True])
def test_idempotent_producer_that_asks_again_is_answered_by_whoever_leads_by_then(idempotent: bool) -> None:
    """A committed it alone, below min ISR, and said so; B, with C in its ISR, knows what was sent (KIP-98)."""
    story = Story(RECORDS, "kip380", "ABC", min_isr=2, **({"idempotent": ["p"]} if idempotent else {}))
    story.leads("A", 0, 0, isr="ABC").sends("x").append("A", 0, 1, 0, "leader").leads("A", 1, 1, isr="A")
    story.passes("A", 1).append("B", 0, 1, 0, "follower").append("C", 0, 1, 0, "follower")
    story.leads("B", 2, 1, isr="B").leads("B", 2, 1, isr="BC").acked("x", 0)
    (acked,) = acked_records(story.ops)
    written = written_by(story.ops, acked)
    assert written is not None
    promise = promise_of(story.ops, 0, written, acked.index, acknowledged=True)
    assert (("A",), *([("B",), ("B", "C")] if idempotent else [])) == promise.isrs
    small = [text for text, _ in broken_promises(story.ops, acked, written, promise) if "min ISR" in text]
    assert ([] if idempotent else ["the ISR (A) was smaller than min ISR, 2"]) == small
