"""What came since the scenario last did something; and bites, which are remembered to the end."""

from __future__ import annotations

import pytest

from harness.history.file import History
from harness.model import OpType, Source
from harness.scenario.recent_events import News
from tests.events.filled import filled


@pytest.fixture
def news(history: History) -> News:
    made = News()
    history.listeners.append(made.listen)
    return made


def fabric(history: History, f: str, src: str, dst: str, **more: str) -> None:
    history.record_line(
        Source.FABRIC, "fabric", OpType.INFO, f, filled(Source.FABRIC, f, {"link": [src, dst], **more})
    )


def test_turn_forgets_what_came_before(history: History, news: News) -> None:
    fabric(history, "epoch-question", "A", "B")
    history.record_line(Source.BROKER, "A", OpType.INFO, "truncate", filled(Source.BROKER, "truncate", {}))
    assert (1, 1) == (len(news.on_link("epoch-question", "A", "B")), len(news.of_node("truncate", "A")))
    assert ([], []) == (news.on_link("epoch-question", "B", "A"), news.of_node("truncate", "B"))
    news.turn()
    assert ([], []) == (news.on_link("epoch-question", "A", "B"), news.of_node("truncate", "A"))


def test_bite_outlives_a_turn_and_is_counted(history: History, news: News) -> None:
    fabric(history, "doubled", "C", "A", api="LeaderAndIsr")
    news.turn()
    assert 1 == news.bites
    assert news.bit("doubled", "C", "A", api="LeaderAndIsr")
    assert news.bit("doubled", "*", "A")
    assert not news.bit("doubled", "C", "A", api="Fetch")
    assert not news.bit("doubled", "C", "A", since=1)
    assert not news.bit("lost", "C", "A")


def test_what_no_condition_is_about_is_not_kept(history: History, news: News) -> None:
    history.record_line(Source.BROKER, "A", OpType.INFO, "append", filled(Source.BROKER, "append", {}))
    history.record_line(Source.FABRIC, "fabric", OpType.INFO, "held", filled(Source.FABRIC, "held", {}))
    assert ([], []) == (news.of_node("append", "A"), news.on_link("held", "A", "B"))
