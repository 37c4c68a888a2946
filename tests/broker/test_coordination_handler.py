"""A broker gives up a server of ZooKeeper that never answers its first words, and no established connection."""

from __future__ import annotations

import pytest
from kazoo.handlers.threading import SequentialThreadingHandler

from targets.broker.coordination.handler import CONNECTED_S_MAX, OneQueueHandler

SESSION_S = 90.0


def test_answer_that_makes_a_connection_is_awaited_for_seconds_and_any_other_as_long_as_a_session_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []
    monkeypatch.setattr(
        SequentialThreadingHandler, "select", lambda self, readers, writers, others, wait_s: asked.append(wait_s)
    )
    handler = OneQueueHandler()
    for readers in (["socket"], ["socket", "requests"], []):
        handler.select(readers, [], [], SESSION_S)
    handler.select(["socket"], [], [], 1.0)
    assert [CONNECTED_S_MAX, SESSION_S, SESSION_S, 1.0] == asked
