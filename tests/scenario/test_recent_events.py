"""Recent events are forgotten at the next acting step; frames that a rule affected are kept to the end."""

from __future__ import annotations

import pytest

from harness.history.file import History
from harness.model import OpType, Source
from harness.scenario.recent_events import RecentEvents
from tests.events.filled import filled


@pytest.fixture
def recent(history: History) -> RecentEvents:
    made = RecentEvents()
    history.listeners.append(made.listen)
    return made


def fabric(history: History, f: str, src: str, dst: str, **more: str) -> None:
    history.record_line(
        Source.FABRIC, "fabric", OpType.INFO, f, filled(Source.FABRIC, f, {"link": [src, dst], **more})
    )


def test_turn_forgets_what_came_before(history: History, recent: RecentEvents) -> None:
    fabric(history, "epoch-question", "A", "B")
    history.record_line(Source.BROKER, "A", OpType.INFO, "truncate", filled(Source.BROKER, "truncate", {}))
    assert (1, 1) == (len(recent.on_link("epoch-question", "A", "B")), len(recent.of_node("truncate", "A")))
    assert ([], []) == (recent.on_link("epoch-question", "B", "A"), recent.of_node("truncate", "B"))
    recent.turn()
    assert ([], []) == (recent.on_link("epoch-question", "A", "B"), recent.of_node("truncate", "A"))


def test_bite_outlives_a_turn_and_is_counted(history: History, recent: RecentEvents) -> None:
    fabric(history, "doubled", "C", "A", api="command")
    recent.turn()
    assert 1 == recent.bites
    assert recent.bit("doubled", "C", "A", api="command")
    assert recent.bit("doubled", "*", "A")
    assert not recent.bit("doubled", "C", "A", api="fetch")
    assert not recent.bit("doubled", "C", "A", since=1)
    assert not recent.bit("lost", "C", "A")


def test_what_no_condition_is_about_is_not_kept(history: History, recent: RecentEvents) -> None:
    history.record_line(Source.BROKER, "A", OpType.INFO, "append", filled(Source.BROKER, "append", {}))
    history.record_line(Source.FABRIC, "fabric", OpType.INFO, "held", filled(Source.FABRIC, "held", {}))
    assert ([], []) == (recent.of_node("append", "A"), recent.on_link("held", "A", "B"))
