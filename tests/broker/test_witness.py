"""The witness sends a broker's events at once, and the collector can never stop the broker."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator

import pytest

from harness import limits
from targets.broker.witness import EVERY_RECORD, Witness


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(limits.CONDITION_WAIT_S_MAX)
        yield listener


def told(line: bytes) -> tuple[str, str, dict[str, int]]:
    raw = json.loads(line)
    assert os.getpid() == raw["pid"]
    return raw["node"], raw["f"], raw["value"]


def test_event_has_left_when_tell_returns(listener: socket.socket) -> None:
    """No event waits in the process: the kernel also delivers those sent just before a SIGKILL."""
    witness = Witness("A", listener.getsockname())
    taken, _ = listener.accept()
    taken.settimeout(limits.CONDITION_WAIT_S_MAX)
    with taken, taken.makefile("rb") as lines:
        for number in range(3):
            witness.tell("append", {"base": number})
            assert ("A", "append", {"base": number}) == told(lines.readline())
    witness.close()


def test_collector_that_is_gone_ends_the_telling_and_not_the_broker(listener: socket.socket) -> None:
    witness = Witness("A", listener.getsockname())
    taken, _ = listener.accept()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    taken.close()
    for number in range(50):
        witness.tell("append", {"base": number})


def test_witness_without_a_collector_tells_only_its_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "fencepost.broker")
    Witness("A", None).tell("ready", {})
    assert ["ready"] == [json.loads(record.message)["f"] for record in caplog.records]


def test_log_has_no_line_for_every_record(listener: socket.socket, caplog: pytest.LogCaptureFixture) -> None:
    """A collector still receives every event: see the first test."""
    caplog.set_level("INFO", "fencepost.broker")
    with_collector = Witness("A", listener.getsockname())
    for witness in (with_collector, Witness("B", None)):
        for f in (*sorted(EVERY_RECORD), "truncate"):
            witness.tell(f, {})
    with_collector.close()
    assert [("A", "truncate"), ("B", "truncate")] == [
        (raw["node"], raw["f"]) for raw in (json.loads(record.message) for record in caplog.records)
    ]
