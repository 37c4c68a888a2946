"""A client in a process of its own waits until its invoke is in the history, and knows which client it is."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from harness import limits
from harness.clients.wire import LEAVE, RECORDED, Role, Wire
from harness.events import Produce
from harness.model import Op, OpType
from harness.workload.plan import ConsumerPlan, Library, Place, ProducerPlan, Via
from harness.workload.script import Life

PLACES = (Place("log", 0), Place("orders", 3))
SENT = Produce(topic="log", partition=0, name="p1", acks=-1, codec="none", value="p1.1.0")
ROLE = Role(
    plan=ProducerPlan(name="p1", places=PLACES, acks=(-1, 0), batch=(2, 9), together=0.25, kill_after=(3, 8)),
    library=Library.RAW,
    seed=7,
    process="client-3",
    life=Life(number=4),
    nodes={"A": "127.0.0.1:18001"},
)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The run's end, and the client's, which a real client never closes before its process ends."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(limits.CONDITION_WAIT_S_MAX)
        yield ours, theirs


@pytest.mark.parametrize(
    "role",
    [
        ROLE,
        replace(
            ROLE,
            plan=ConsumerPlan(name="c1", places=PLACES, via=Via.EVERY, seek=0.125, kill_after=(1, 1)),
            life=Life(number=2, positions={PLACES[1]: 12}),
            library=Library.LIBRDKAFKA,
        ),
    ],
)
def test_role_reads_as_it_was_said(role: Role) -> None:
    assert role == Role.from_line(role.to_line())


def test_invoke_waits_for_the_history_and_an_outcome_does_not(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    # In a process of its own the client ends with the run; here it lives in the test's.
    wire = Wire(theirs, end=lambda _: None)
    ours.sendall(ROLE.to_line())
    assert ROLE == wire.role()
    recorded = threading.Event()

    def work() -> None:
        wire.record("client-3", OpType.INVOKE, SENT)
        recorded.set()
        wire.record("client-3", OpType.INFO, replace(SENT, error="x"))

    thread = threading.Thread(target=work)
    thread.start()
    lines = ours.makefile("rb")
    first = Op.from_json(lines.readline().decode())
    assert (0, OpType.INVOKE, SENT) == (first.index, first.type, first.event)
    assert not recorded.is_set()
    ours.sendall(RECORDED)
    second = Op.from_json(lines.readline().decode())
    assert recorded.is_set()
    assert (1, OpType.INFO) == (second.index, second.type)
    thread.join(limits.CONDITION_WAIT_S_MAX)
    assert not wire.leave.is_set()
    ours.sendall(LEAVE)
    assert wire.leave.wait(limits.CONDITION_WAIT_S_MAX)
    lines.close()
    ours.shutdown(socket.SHUT_RDWR)
