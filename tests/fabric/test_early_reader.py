"""
Bytes that arrive before the fabric reaches the node wait, even under a Python whose asyncio reads too early.

Source:  CPython 3.11.2 (Debian 12): a transport that is paused in connection_made starts reading anyway.
"""

from __future__ import annotations

from asyncio import selector_events
from collections.abc import Callable
from typing import Any

import pytest

from tests.fabric.nodes import World
from tests.targets.kafka_family.wire import wire


def add_reader_as_3_11_2_has_it(transport: Any, descriptor: int, callback: Callable[..., None]) -> None:
    """Start reading, whether the transport is paused or not."""
    if not transport.is_closing():
        transport._loop._add_reader(descriptor, callback)


def test_bytes_sent_at_once_wait_for_the_node_behind(net: World, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = selector_events._SelectorTransport  # type: ignore[attr-defined]
    monkeypatch.setattr(transport, "_add_reader", add_reader_as_3_11_2_has_it)
    for offset in range(20):
        with net.stopped():
            near = net.dial()
            near.send(wire.fetch(offset))
        far = net.keep(net.node.accept())
        far.expect(wire.fetch(offset))
