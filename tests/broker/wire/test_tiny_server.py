"""The small server for client tests closes every accepted socket."""

from __future__ import annotations

import gc
import socket
import warnings
from contextlib import ExitStack
from pathlib import Path

from tests.broker.wire.tiny_server import running


def test_server_that_ends_while_it_is_dialled_closes_what_it_accepted(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught, ExitStack() as dialled:
        warnings.simplefilter("always")
        with running(tmp_path) as broker:
            for _ in range(50):
                dialled.enter_context(socket.create_connection(("127.0.0.1", broker.port)))
        gc.collect()
    assert [] == [str(warning.message) for warning in caught]
