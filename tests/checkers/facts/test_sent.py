"""What clients sent, and its digest where the history tells it or it follows from the client."""

from __future__ import annotations

from typing import Any

from checkers.facts.sent import sent_digests, sent_values
from harness.logs.record import sent_digest
from harness.model import OpType, Source
from tests.checkers.plants.edit import Edit
from tests.checkers.story import TOPIC, Story


def sends(story: Story, type_: OpType, **more: Any) -> Story:
    about = {"name": "m1", "value": "a", "acks": -1, "codec": "none"}
    return story.add(Source.CLIENT, "client-1", type_, "produce", **TOPIC, **about, **more)


def test_value_may_be_in_a_log_as_often_as_it_was_sent_and_did_not_surely_fail() -> None:
    story = Story({"m1": ["a"]})
    for expected, type_ in ((1, OpType.INVOKE), (1, OpType.INFO), (2, OpType.INVOKE), (1, OpType.FAIL)):
        sends(story, type_)
        assert expected == sent_values(story.ops)["a"].appends_max


def test_value_whose_invoke_is_missing_was_sent() -> None:
    assert 1 == sent_values(sends(Story({"m1": ["a"]}), OpType.OK, offset=0).ops)["a"].appends_max


def test_digests_are_those_that_the_client_told() -> None:
    story = sends(Story({"m1": ["a"]}), OpType.INVOKE, digest="d1")
    sends(story, OpType.INVOKE, digest="d2")
    assert {"a": {"d1", "d2"}} == dict(sent_digests(story.ops))


def test_digests_of_the_raw_client_follow_from_the_values_if_a_log_confirms_it() -> None:
    edit = Edit("local-kip101-1")
    assert sent_digest("m2.0") in sent_digests(edit.ops)["m2.0"]
    for node in "AB":
        for offset in range(5):
            edit.redigest(offset, "c0ffee00c0ffee00", node)
    assert {} == sent_digests(edit.ops)


def test_digests_of_another_client_do_not_follow_from_the_values() -> None:
    edit = Edit("local-kip101-1")
    assert {} == sent_digests(edit.change(edit.lines[0], sends_once=False).ops)
    assert {} == sent_digests(Edit("sim-clean").ops)
