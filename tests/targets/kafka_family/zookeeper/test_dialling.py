"""The harness's session gives an address up soon, and waits for answers as long as before."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from kazoo.handlers.threading import SequentialThreadingHandler

from targets.kafka_family.zookeeper.dialling import DIAL_S_MAX, dialling_soon


def test_address_is_dialled_for_a_while_and_its_connection_waits_as_long_as_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []
    dial = SequentialThreadingHandler.create_connection

    def noted(self: Any, *args: Any, timeout: float, **more: Any) -> Any:
        asked.append(timeout)
        return dial(self, *args, timeout=timeout, **more)

    monkeypatch.setattr(SequentialThreadingHandler, "create_connection", noted)
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = dialling_soon().create_connection(address=server.getsockname(), timeout=10.0)
        with connection:
            assert ([DIAL_S_MAX], 10.0) == (asked, connection.gettimeout())
