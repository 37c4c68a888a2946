"""The collector records every event that a node sent, even when the node is killed."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from harness import limits
from harness.cleanup.process import until
from harness.environment.collector import Collector
from harness.events import Done
from harness.history.file import History, read_history
from harness.model import HistoryError, OpType, Source


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path / "history.jsonl") as history:
        yield history


@pytest.fixture
def flushed() -> list[tuple[str, str, int]]:
    return []


@pytest.fixture
def collector(history: History, flushed: list[tuple[str, str, int]]) -> Iterator[Collector]:
    collector = Collector("127.0.0.1", history, lambda *seen: flushed.append(seen))
    yield collector
    collector.close()


def told(node: str, f: str, **value: object) -> bytes:
    return json.dumps({"node": node, "pid": 1, "f": f, "value": value}).encode() + b"\n"


def dial(collector: Collector) -> socket.socket:
    address = (collector.address.host, collector.address.port)
    return socket.create_connection(address, timeout=limits.CONDITION_WAIT_S_MAX)


def hello(collector: Collector, node: str) -> bytes:
    """Return the first line of a node's connection."""
    return json.dumps({"node": node, "secret": collector.secret_of(node)}).encode() + b"\n"


def say(collector: Collector, *lines: bytes, node: str = "A") -> None:
    """Connect as a node, send the lines and close, as the kernel does for a killed node."""
    with dial(collector) as connection:
        connection.sendall(hello(collector, node) + b"".join(lines))


def is_closed(connection: socket.socket) -> bool:
    """Wait for the end of a connection on which nothing is ever sent to us."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def seen(history: History) -> list[tuple[str, str]]:
    return [(op.process, op.f) for op in read_history(history.path)]


def wait_for(history: History, count: int) -> None:
    assert until(lambda: len(read_history(history.path)) >= count, 10)


def test_everything_that_was_sent_is_in_the_history_after_drain(collector: Collector, history: History) -> None:
    say(collector, *(told("A", "append", base=n) for n in range(500)))
    wait_for(history, 1)
    collector.drain("A")
    ops = read_history(history.path)
    assert list(range(500)) == [op.value["base"] for op in ops]
    assert {Source.BROKER} == {op.source for op in ops}


def test_flush_is_told_to_the_host(
    collector: Collector, history: History, flushed: list[tuple[str, str, int]]
) -> None:
    say(collector, told("A", "flush", path="log-0/x", length=9))
    wait_for(history, 1)
    collector.drain("A")
    assert [("A", "log-0/x", 9)] == flushed


@pytest.mark.parametrize(
    "line",
    [b"nonsense\n", b"[1]\n", b'{"node": "A"}\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n", told("B", "ready")],
)
def test_line_that_is_no_event_is_kept_and_the_rest_goes_on(
    collector: Collector, history: History, line: bytes
) -> None:
    say(collector, line, told("A", "ready"))
    wait_for(history, 2)
    assert [("collector", "unreadable"), ("A", "ready")] == seen(history)


def test_nodes_that_tell_at_once_each_keep_their_order(collector: Collector, history: History) -> None:
    for node in "ABC":
        say(collector, *(told(node, "append", base=n) for n in range(50)), node=node)
    wait_for(history, 150)
    ops = read_history(history.path)
    for node in "ABC":
        assert list(range(50)) == [op.value["base"] for op in ops if op.process == node]


@pytest.mark.parametrize(
    "first",
    [
        told("A", "append", base=1),
        b"nonsense\n",
        b'{"node": "A"}\n',
        b'{"node": "A", "secret": ""}\n',
        b'{"node": "A", "secret": "' + b"0" * 64 + b'"}\n',
        b'{"node": "A", "secret": ["\xc3\xa9", null]}\n',
        b'{"node": "", "secret": ""}\n',
        b"x" * 100_000,
    ],
)
def test_stranger_is_closed_and_told_in_one_line_and_nothing_of_it_reaches_the_history(
    collector: Collector, history: History, caplog: pytest.LogCaptureFixture, first: bytes
) -> None:
    for _ in range(3):
        with dial(collector) as connection:
            with suppress(ConnectionError):
                connection.sendall(first + told("A", "append", base=1))
            assert True is is_closed(connection)
    say(collector, told("A", "ready"))
    wait_for(history, 1)
    collector.drain("A")
    assert [("A", "ready")] == seen(history)
    assert ["which did not show the secret of a node" in message for message in caplog.messages] == [True]


def test_node_cannot_speak_for_another(
    collector: Collector, history: History, caplog: pytest.LogCaptureFixture
) -> None:
    with dial(collector) as connection:
        connection.sendall(hello(collector, "A").replace(b'"A"', b'"B"') + told("B", "append", base=1))
        assert True is is_closed(connection)
    assert [] == seen(history)


def test_connection_that_says_nothing_is_closed(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("harness.environment.collector.HELLO_S_MAX", 0.05)
    with dial(collector) as connection:
        assert True is is_closed(connection)


def test_secrets_of_two_runs_and_of_two_nodes_differ(collector: Collector, history: History) -> None:
    other = Collector("127.0.0.1", history, lambda *_: None)
    other.close()
    assert 4 == len({each.secret_of(node) for each in (collector, other) for node in "AB"})


def test_collector_leaves_nothing_behind_when_closed(history: History) -> None:
    collector = Collector("127.0.0.1", history, lambda *_: None)
    collector.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(
            (collector.address.host, collector.address.port), timeout=limits.CONDITION_WAIT_S_MAX
        )


def test_what_is_told_after_the_end_is_dropped_and_the_connection_goes_on(history: History) -> None:
    """A node that is being taken down must not lose its connection first."""
    collector = Collector("127.0.0.1", history, lambda *_: None)
    with dial(collector) as connection:
        connection.sendall(hello(collector, "A") + told("A", "ready"))
        wait_for(history, 1)
        collector.end()
        connection.sendall(told("A", "late") * 100)
    collector.drain("A")
    collector.close()
    assert [("A", "ready")] == seen(history)


@pytest.mark.parametrize("over", [True, False])
def test_failure_in_taking_in_what_is_told_ends_the_run_unless_the_end_has_come(
    history: History, over: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its thread prints no traceback, and the rest of what the node says must not be missing without a trace."""

    def take(*_: object) -> None:
        if over:
            collector.end()
        raise KeyError("no such node")

    collector = Collector("127.0.0.1", history, take)
    say(collector, told("A", "flush", path="log-0/x", length=9))
    wait_for(history, 1)
    # A handler notes its failure before it ends.
    assert until(lambda: not any("process_request" in thread.name for thread in threading.enumerate()), 10)
    collector.close()
    assert "" == capsys.readouterr().err
    if over:
        history.record("runner", OpType.INFO, Done())
        return
    with pytest.raises(HistoryError, match="lacks what was observed after op 0: KeyError: 'no such node'"):
        history.record("runner", OpType.INFO, Done())
