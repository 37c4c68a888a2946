"""A socket of the proxy whose node is gone already takes the end of data without an error."""

from __future__ import annotations

import asyncio
import socket
from unittest.mock import create_autospec

from harness.fabric.side import Owner, Side


async def _finished_after_reset() -> Side:
    """Return the side of a connection whose node resets it just before the end of data is sent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        owner = create_autospec(Owner, instance=True, over=False)
        loop = asyncio.get_running_loop()
        _, side = await loop.create_connection(lambda: Side(owner), *server.getsockname())
        node, _ = server.accept()
        node.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        node.close()
        side.finish()
        while not side.lost:
            await asyncio.sleep(0)
        side.finish()
        return side


def test_end_of_data_for_a_node_that_has_reset_its_connection_is_no_error() -> None:
    assert asyncio.run(asyncio.wait_for(_finished_after_reset(), 10)).lost
