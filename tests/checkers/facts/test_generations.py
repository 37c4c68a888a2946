"""What is certain of the newest generation of a topic follows from every state that the answers allow."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from checkers.facts.generations import END, UNANSWERED_MAX, newest_generation
from harness.model import HistoryError, Op, OpType, PartOps, Source
from tests.checkers.story import Story

ANSWERS = {
    "ok": (OpType.OK, ""),
    "lost": (OpType.INFO, "no answer"),
    "there": (OpType.FAIL, "TOPIC_ALREADY_EXISTS topic 't' is there already"),
    "absent": (OpType.FAIL, "UNKNOWN_TOPIC_OR_PARTITION"),
    "refused": (OpType.FAIL, "A: connection refused"),
}


def story(asks: Sequence[str], *, later: bool = False) -> list[Op]:
    """
    Return the history of creates (+) and deletes (-), each with its answer: `+ok`, `-lost`.

    Args:
        later: whether deletes may take effect after they were acknowledged.
    """
    found = Story({}, deletes_later=True) if later else Story({})
    for ask in asks:
        f = "create-topic" if ask[0] == "+" else "delete-topic"
        about = {"topic": "t", **({"assignments": [["A"]]} if ask[0] == "+" else {})}
        found.add(Source.CLIENT, "client-1", OpType.INVOKE, f, **about)
        if ask[1:]:
            type_, error = ANSWERS[ask[1:]]
            found.add(Source.CLIENT, "client-1", type_, f, **about, error=error)
    return found.ops


# Invokes have the indexes 1, 3, 5 and so on, and completions those that follow.
@pytest.mark.parametrize(
    ("asks", "may_be_there", "is_there", "old_before", "new_after"),
    [
        ((), False, False, END, -1),
        (("+ok",), True, True, -1, -1),
        (("+ok", "-ok"), False, False, END, 4),
        (("+ok", "-ok", "+ok"), True, True, 3, 4),
        (("+ok", "-ok", "+lost"), True, False, 3, 4),
        (("+ok", "-ok", "+refused"), False, False, END, 4),
        (("+ok", "-lost"), True, False, -1, END),
        # The next create succeeds, so that the delete has happened before, and happens no more.
        (("+ok", "-lost", "+ok"), True, True, 3, 6),
        (("+ok", "-lost", "+there"), True, False, -1, END),
        (("+ok", "-lost", "-absent", "+ok"), True, True, 3, 6),
        # A create without an answer may still happen after the delete that succeeds, unless it was absent before.
        (("+lost", "-ok"), False, False, END, 4),
        (("+lost", "+ok", "-ok"), True, False, 5, 6),
        (("+lost", "+there", "-ok"), False, False, END, 6),
        (("+ok", "-"), True, False, -1, END),
        (("+ok", "-ok", "+ok", "-lost", "+ok", "-lost", "+ok"), True, True, 11, 14),
    ],
)
def test_what_is_certain(
    asks: Sequence[str], may_be_there: bool, is_there: bool, old_before: int, new_after: int
) -> None:
    found = newest_generation(PartOps(story(asks)))
    assert found.contradicted is None
    assert (may_be_there, is_there) == (found.may_be_there, found.is_there)
    assert (old_before, new_after) == (found.old_before, found.new_after)


@pytest.mark.parametrize(
    ("asks", "done"),
    [
        (("+ok", "+ok"), 4),
        (("-ok",), 2),
        (("+ok", "-absent"), 4),
        (("+ok", "-ok", "+there"), 6),
        (("+lost", "+there", "-ok", "-ok"), 8),
    ],
)
def test_answer_that_contradicts_those_before_it_is_named(asks: Sequence[str], done: int) -> None:
    found = newest_generation(PartOps(story(asks)))
    assert found.contradicted is not None
    assert done == found.contradicted.done


@pytest.mark.parametrize(
    ("asks", "may_be_there", "is_there", "old_before", "new_after"),
    [
        (("+ok",), True, True, -1, -1),
        # The topic is marked, and may be there still.
        (("+ok", "-ok"), True, False, -1, END),
        (("+ok", "-ok", "+there"), True, False, -1, END),
        (("+ok", "-ok", "-absent"), True, False, -1, END),
        # It is there again, so that what was there is gone: since its delete was asked for, and not before.
        (("+ok", "-ok", "+there", "+ok"), True, True, 3, 8),
        # A broker that was not told yet acknowledges the delete of what is gone: it may end the next generation.
        (("+ok", "-ok", "-ok", "+ok"), True, False, 3, END),
        (("+ok", "-lost", "-ok", "+ok"), True, False, 3, END),
        # It refuses the delete of a topic that it does not know yet.
        (("+ok", "-absent", "+there"), True, True, -1, -1),
        (("+ok", "-ok", "+ok", "-ok", "+lost"), True, False, 3, END),
        (("-ok", "+ok"), True, False, -1, END),
    ],
)
def test_what_is_certain_where_deletes_take_effect_later(
    asks: Sequence[str], may_be_there: bool, is_there: bool, old_before: int, new_after: int
) -> None:
    """Source: Apache Kafka, ZkAdminManager.deleteTopics, which waits for the broker's metadata alone."""
    found = newest_generation(PartOps(story(asks, later=True)))
    assert found.contradicted is None
    assert (may_be_there, is_there) == (found.may_be_there, found.is_there)
    assert (old_before, new_after) == (found.old_before, found.new_after)


def test_topic_that_was_not_deleted_is_not_created_again_though_deletes_take_effect_later() -> None:
    found = newest_generation(PartOps(story(["+ok", "+there", "+ok"], later=True)))
    assert found.contradicted is not None
    assert found.contradicted.done == 6


def test_with_many_unanswered_requests_nothing_is_certain() -> None:
    found = newest_generation(PartOps(story(["+ok", *["-lost"] * (UNANSWERED_MAX + 1)])))
    assert (True, False, -1, END) == (found.may_be_there, found.is_there, found.old_before, found.new_after)


def test_history_in_which_a_client_asks_twice_at_once_cannot_be_read() -> None:
    with pytest.raises(HistoryError, match="op 2: delete-topic of t before the outcome of op 1"):
        newest_generation(PartOps(story(["+", "-ok"])))
