"""The harness's session gives a server up soon that does not answer, unless the session is established."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.handlers.threading import SequentialThreadingHandler

from targets.zookeeper.patience import WAIT_S_MAX, impatient

LONG_S = 10.0


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """A server that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def test_address_is_dialled_for_a_while_and_its_connection_waits_as_long_as_was_asked(
    server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    dial = SequentialThreadingHandler.create_connection

    def noted(self: Any, *args: Any, timeout: float, **more: Any) -> Any:
        asked.append(timeout)
        return dial(self, *args, timeout=timeout, **more)

    monkeypatch.setattr(SequentialThreadingHandler, "create_connection", noted)
    with impatient().create_connection(address=server.getsockname(), timeout=LONG_S) as connection:
        assert ([WAIT_S_MAX], LONG_S) == (asked, connection.gettimeout())


def test_answer_is_awaited_for_a_while_and_by_an_established_session_as_long_as_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []
    monkeypatch.setattr(
        SequentialThreadingHandler, "select", lambda self, readers, writers, others, wait_s: asked.append(wait_s)
    )
    handler = impatient()
    for readers in (["socket"], ["socket", "requests"], []):
        handler.select(readers, [], [], LONG_S)
    handler.select(["socket"], [], [], 1.0)
    assert [WAIT_S_MAX, LONG_S, LONG_S, 1.0] == asked
