"""The witness sends a broker's events at once, and the collector can never stop the broker."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from typing import Final

import pytest

from harness import limits
from targets.broker.witness import EVERY_RECORD, Witness

# More events than a connection without a reader takes.
LOST_WITHIN: Final = 100_000


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(limits.CONDITION_WAIT_S_MAX)
        yield listener


def told(line: bytes) -> tuple[str, str, dict[str, int]]:
    raw = json.loads(line)
    assert os.getpid() == raw["pid"]
    return raw["node"], raw["f"], raw["value"]


def test_event_has_left_when_emit_returns(listener: socket.socket) -> None:
    """No event waits in the process: the kernel also delivers those sent just before a SIGKILL."""
    witness = Witness("A", listener.getsockname(), "s3cret")
    taken, _ = listener.accept()
    taken.settimeout(limits.CONDITION_WAIT_S_MAX)
    with taken, taken.makefile("rb") as lines:
        assert {"node": "A", "secret": "s3cret"} == json.loads(lines.readline())
        for number in range(3):
            witness.emit("append", {"base": number})
            assert ("A", "append", {"base": number}) == told(lines.readline())
    witness.close()


def test_events_of_a_step_are_a_line_each_in_their_order(listener: socket.socket) -> None:
    witness = Witness("A", listener.getsockname(), "s3cret")
    taken, _ = listener.accept()
    taken.settimeout(limits.CONDITION_WAIT_S_MAX)
    with taken, taken.makefile("rb") as lines:
        lines.readline()
        witness.emit_all([("append", {"base": 0}), ("elected", {"leader": 1}), ("append", {"base": 2})])
        expected = [("A", "append", {"base": 0}), ("A", "elected", {"leader": 1}), ("A", "append", {"base": 2})]
        assert expected == [told(lines.readline()) for _ in range(3)]
    witness.close()


def test_log_has_the_events_of_a_step_in_one_record_without_those_of_every_record(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "fencepost.broker")
    witness = Witness("A", None)
    witness.emit_all([("elected", {"leader": 1}), ("append", {"base": 0}), ("follower", {"epoch": 2})])
    witness.emit_all([("append", {"base": 1})])
    (record,) = caplog.records
    assert ["elected", "follower"] == [json.loads(line)["f"] for line in record.message.splitlines()]


def test_collector_that_is_gone_ends_the_events_and_not_the_broker(
    listener: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    witness = Witness("A", listener.getsockname())
    taken, _ = listener.accept()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    taken.close()
    for number in range(LOST_WITHIN):
        witness.emit("append", {"base": number})
        if "this broker continues without events" in caplog.text:
            break
    else:
        pytest.fail(f"the kernel took {LOST_WITHIN} events for a collector that is gone")
    witness.emit("append", {"base": 0})


def test_witness_without_a_collector_tells_only_its_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "fencepost.broker")
    Witness("A", None).emit("ready", {})
    assert ["ready"] == [json.loads(record.message)["f"] for record in caplog.records]


def test_log_has_no_line_for_every_record(listener: socket.socket, caplog: pytest.LogCaptureFixture) -> None:
    """A collector still receives every event: see the first test."""
    caplog.set_level("INFO", "fencepost.broker")
    with_collector = Witness("A", listener.getsockname(), "s3cret")
    for witness in (with_collector, Witness("B", None)):
        for f in (*sorted(EVERY_RECORD), "truncate"):
            witness.emit(f, {})
    with_collector.close()
    assert "s3cret" not in caplog.text
    assert [("A", "truncate"), ("B", "truncate")] == [
        (raw["node"], raw["f"]) for raw in (json.loads(record.message) for record in caplog.records)
    ]
