"""Every call is answered, fails as the agent says, or fails because the machine is lost; none waits for ever."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness import limits
from harness.hosts.remote import wire
from harness.hosts.remote.calls import Calls
from harness.model import FencepostError, PreconditionError, UsageError

Reply = Callable[[dict[str, Any]], list[bytes]]
Begin = Callable[..., Calls]


class Agent:
    """The other end: passes each message but beats to a function, and sends what it returns."""

    def __init__(self, reply: Reply, *, beats: bool = True) -> None:
        self.harness, self._end = socket.socketpair()
        self._reply, self._beats = reply, beats
        self.heard: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with self._end, self._end.makefile("rb") as source:
            while (received := wire.receive(source)) is not None:
                message, _ = received
                if message.get("do") == "beat":
                    replies = [wire.pack({"id": 0, "done": {}})] if self._beats else []
                else:
                    self.heard.append(message)
                    replies = self._reply(message)
                for each in replies:
                    if not each:
                        return
                    try:
                        self._end.sendall(each)
                    except BrokenPipeError:  # the harness has ended since it sent this
                        return

    def over(self) -> None:
        self._thread.join()


class Channel:
    """What paramiko's channel is to Calls."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def sendall(self, data: bytes) -> None:
        self._end.sendall(data)

    def close(self) -> None:
        try:
            self._end.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    monkeypatch.setattr(limits, "SSH_BEAT_S", 0.01)
    made: list[tuple[Calls, Agent, Any]] = []

    def make(agent: Agent, drain: Callable[[str], None] = lambda _: None, **options: Any) -> Calls:
        source = agent.harness.makefile("rb")
        calls = Calls(
            "machine m1",
            Channel(agent.harness),
            source,
            drain=drain,
            silence_s=options.pop("silence_s", 60.0),
            **options,
        )
        made.append((calls, agent, source))
        return calls

    yield make
    for calls, agent, source in made:
        calls.end(release=False)
        source.close()
        agent.harness.close()
        agent.over()


def done(**values: object) -> Reply:
    return lambda message: [wire.pack({"id": message.get("id"), "done": values})]


def test_call_returns_what_the_agent_says(begin: Begin) -> None:
    agent = Agent(done(seen="pid 3 stopped"))
    assert {"seen": "pid 3 stopped"} == begin(agent).call("pause", name="A")
    assert [("pause", "A")] == [(each["do"], each["name"]) for each in agent.heard]


def test_parts_of_an_answer_come_in_order_with_their_bytes(begin: Begin) -> None:
    def reply(message: dict[str, Any]) -> list[bytes]:
        parts = [wire.pack({"id": message["id"], "part": {"at": at}}, bytes([65 + at])) for at in range(3)]
        return [*parts, wire.pack({"id": message["id"], "done": {}})]

    taken: list[tuple[int, bytes]] = []
    begin(Agent(reply)).stream("data", lambda part, payload: taken.append((part["at"], payload)), name="A")
    assert [(0, b"A"), (1, b"B"), (2, b"C")] == taken


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("UsageError", UsageError), ("PreconditionError", PreconditionError), ("", FencepostError)],
)
def test_error_there_is_an_error_here_and_names_the_machine(
    begin: Begin, kind: str, expected: type[Exception]
) -> None:
    agent = Agent(lambda message: [wire.pack({"id": message["id"], "error": "kill A: no process", "kind": kind})])
    with pytest.raises(expected, match="machine m1: kill A: no process") as error:
        begin(agent).call("kill", name="A")
    assert expected is type(error.value)


def test_agent_that_needs_a_drain_gets_it_and_learns_when_it_failed(begin: Begin) -> None:
    asked: list[str] = []

    def reply(message: dict[str, Any]) -> list[bytes]:
        if "answer" in message:
            return [wire.pack({"id": 1, "done": {"error": message["error"]}})]
        return [wire.pack({"ask": 77, "drain": "A"})]

    def drain(name: str) -> None:
        asked.append(name)
        raise PreconditionError("its connection has not ended")

    calls = begin(Agent(reply), drain)
    assert {"error": "its connection has not ended"} == calls.call("power_loss", name="A")
    assert ["A"] == asked


def test_end_of_the_connection_fails_this_call_and_every_later_one(begin: Begin) -> None:
    calls = begin(Agent(lambda _: [b""]), last_words=lambda: "Traceback\nMemoryError\n")
    for _ in range(2):
        with pytest.raises(
            PreconditionError, match=r"machine m1: lost: the connection .*the agent said: MemoryError"
        ):
            calls.call("alive", name="A")
    assert "the connection has ended" in calls.lost


def test_channel_that_cannot_say_good_bye_is_lost_as_any_other(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """paramiko sends something when a channel is closed, and raises EOFError if the connection is gone."""
    close = Channel.close

    def gone(channel: Channel) -> None:
        close(channel)
        raise EOFError

    def refused(_channel: Channel, _data: bytes) -> None:
        raise EOFError

    monkeypatch.setattr(Channel, "close", gone)
    calls = begin(Agent(lambda _: []), silence_s=60.0)
    monkeypatch.setattr(Channel, "sendall", refused)
    for _ in range(2):
        with pytest.raises(PreconditionError, match=r"machine m1: lost: the connection has ended \(EOFError\)"):
            calls.call("alive", name="B")


def test_agent_that_is_silent_is_lost(begin: Begin) -> None:
    calls = begin(Agent(lambda _: [], beats=False), silence_s=0.05)
    with pytest.raises(PreconditionError, match="machine m1: lost: it has been silent for 0 s"):
        calls.call("alive", name="A")


def test_call_that_is_never_answered_ends_though_the_agent_beats(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SSH_CALL_S_MAX", 0.05)
    calls = begin(Agent(lambda _: []))
    with pytest.raises(PreconditionError, match=r"lost: no answer to kill within 0\.05 s"):
        calls.call("kill", name="A")


def test_what_is_no_message_ends_the_connection(begin: Begin) -> None:
    calls = begin(Agent(lambda _: [b"segmentation fault\n"]))
    with pytest.raises(PreconditionError, match=r"lost: the connection has ended .*segmentation fault"):
        calls.call("kill", name="A")


def test_agent_is_released_only_if_all_is_undone(begin: Begin) -> None:
    for release in (True, False):
        agent = Agent(lambda message: [b""] if message.get("do") == "end" else [])
        calls = begin(agent)
        calls.end(release=release)
        calls.end(release=release)
        agent.over()
        assert release == ({"do": "end"} in agent.heard)
        assert "" == calls.lost
