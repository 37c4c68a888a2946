"""Clients in processes of their own: each kill bites, the next life follows, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from checkers.rules.lives import broken_lives
from harness import limits
from harness.cleanup.ledger import Ledger
from harness.cleanup.process import identity_of, until
from harness.clients.children import ROOT
from harness.clients.lives import Alarm
from harness.clients.threads import Threads
from harness.clients.wire import ALONE, Role
from harness.events import ClientKilled, ClientStarted, Done, Poll, Produce
from harness.history.file import History, read_history
from harness.model import HistoryError, Op, OpType, PartOps, UsageError, events_of
from harness.workload.lives import KILLED
from harness.workload.plan import Clients, ConsumerPlan, Library, Place, ProducerPlan
from harness.workload.script import Life
from targets.kafka_family.clients.beginning import begin
from targets.kafka_family.clients.consuming import opened
from tests.broker.log.batches import TP, all_of
from tests.broker.wire.tiny_server import TinyBroker, running
from tests.kept import exhaustive

pytestmark = pytest.mark.slow

PLACE = Place(TP.topic, TP.partition)
SEED = 3
PRODUCER = ProducerPlan(name="p1", places=(PLACE,), every_ms=(0, 2), kill_after=(2, 9))
CONSUMER = ConsumerPlan(name="c1", places=(PLACE,), every_ms=(0, 2), kill_after=(1, 3))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[TinyBroker]:
    """Start a broker with one partition that answers at once."""
    with running(tmp_path / "data") as served:
        yield served


class Kills:
    """How many clients' processes were killed so far, by the names of their plans."""

    def __init__(self, history: History) -> None:
        self.counts: dict[str, int] = {}
        history.listeners.append(self._listen)

    def _listen(self, op: Op) -> None:
        if isinstance(op.event, ClientKilled) and op.type is OpType.OK:
            self.counts[op.event.name] = self.counts.get(op.event.name, 0) + 1

    def await_(self, names: Sequence[str], count: int) -> None:
        """Wait until each of these was killed so often."""
        assert until(
            lambda: all(self.counts.get(name, 0) >= count for name in names), 2 * limits.CONDITION_WAIT_S_MAX
        ), self.counts


def begun(clients: Clients, broker: TinyBroker, history: History, ledger: Ledger, own: Library) -> Threads:
    """Begin these clients; the names of their processes are client-1, client-2, and so on."""
    names = (f"client-{number}" for number in range(1, 10_000))
    return begin(
        clients,
        SEED,
        own=own,
        process=lambda: next(names),
        history=history,
        nodes={"A": f"127.0.0.1:{broker.port}"},
        ledger=ledger,
    )


def ended(at_work: Threads, history: History) -> PartOps:
    """Let all clients end, and return the whole history, with its end."""
    at_work.stop()
    assert until(lambda: at_work.done, limits.CONDITION_WAIT_S_MAX)
    history.record("runner", OpType.INFO, Done())
    return PartOps(read_history(history.path))


def values_in(broker: TinyBroker) -> list[str]:
    """Return the values in the broker's log."""
    error, records, _ = opened(b"".join(bytes(batch.payload) for batch in all_of(broker.log)), 0)
    assert not error
    return [value for _, value in records]


def pids(ops: Sequence[Op]) -> list[int]:
    return [started.pid for _, started in events_of(ops, ClientStarted)]


@exhaustive  # tests/nemesis/test_client_crash.py kills the clients of a whole run
@pytest.mark.parametrize("own", [Library.RAW, Library.LIBRDKAFKA])
def test_killed_clients_live_on_and_no_op_of_theirs_is_lost(
    broker: TinyBroker, history: History, ledger: Ledger, own: Library
) -> None:
    kills = Kills(history)
    at_work = begun(Clients(producers=(PRODUCER,), consumers=(CONSUMER,)), broker, history, ledger, own)
    kills.await_(("p1", "c1"), 2)
    ops = ended(at_work, history)
    assert [] == list(broken_lives(ops))
    assert [None] * len(pids(ops)) == [identity_of(pid) for pid in pids(ops)]
    # What the log holds was invoked, what was acknowledged it holds, and no value is there twice.
    held = values_in(broker)
    sent = list(events_of(ops, Produce))
    invoked = [event.value for op, event in sent if op.type is OpType.INVOKE]
    assert len(held) == len(set(held))
    assert len(invoked) == len(set(invoked))
    assert {event.value for op, event in sent if op.type is OpType.OK} <= set(held) <= set(invoked)
    # Each op has an outcome, and those that a kill cut off say so.
    assert 2 * len(invoked) == len(sent)
    unknown = [event.error for op, event in sent if op.type is OpType.INFO]
    assert {KILLED} >= set(unknown)
    # A consumer's lives read the log without a gap: as one.
    seen = [
        offset for op, poll in events_of(ops, Poll) for offset, _ in poll.records or () if op.type is OpType.OK
    ]
    assert list(range(max(seen) + 1)) == sorted(set(seen))
    proofs = [killed.probe for op, killed in events_of(ops, ClientKilled) if op.type is OpType.OK]
    assert all(proof and proof.endswith("waited for: signal 9") for proof in proofs)


def test_run_that_is_taken_down_leaves_no_process_and_starts_none(
    broker: TinyBroker, history: History, ledger: Ledger
) -> None:
    kills = Kills(history)
    at_work = begun(Clients(producers=(PRODUCER,), consumers=(CONSUMER,)), broker, history, ledger, Library.RAW)
    kills.await_(("p1",), 1)
    assert [] == ledger.close()
    assert until(lambda: at_work.done, limits.CONDITION_WAIT_S_MAX)
    found = pids(read_history(history.path))
    assert [None] * len(found) == [identity_of(pid) for pid in found]


def test_process_that_ends_by_itself_ends_the_history(
    broker: TinyBroker, history: History, ledger: Ledger
) -> None:
    plan = ProducerPlan(name="p1", places=(PLACE,), kill_after=(10_000, 10_000))
    at_work = begun(Clients(producers=(plan,)), broker, history, ledger, Library.RAW)
    (pid,) = pids(read_history(history.path))
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: at_work.done, limits.CONDITION_WAIT_S_MAX)
    with pytest.raises(
        HistoryError, match=r"client p1, client-1: its process ended with signal 9; expected it to live"
    ):
        history.record("runner", OpType.INFO, Done())


@pytest.mark.parametrize("works", [False, True], ids=["before its role", "at work"])
def test_client_whose_run_is_gone_ends_itself(broker: TinyBroker, works: bool) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            child = subprocess.Popen(
                [sys.executable, "-m", "targets.kafka_family.clients.life", str(theirs.fileno())],
                cwd=ROOT,
                pass_fds=(theirs.fileno(),),
            )
        if works:
            nodes = {"A": f"127.0.0.1:{broker.port}"}
            role = Role(plan=CONSUMER, library=Library.RAW, seed=1, process="client-1", life=Life(), nodes=nodes)
            ours.sendall(role.to_line())
            assert ours.recv(1)  # it has asked for something, and waits until that is in a history
    assert ALONE == child.wait(limits.CONDITION_WAIT_S_MAX)


def test_clients_that_are_killed_need_a_ledger(broker: TinyBroker, history: History) -> None:
    with pytest.raises(UsageError, match=r"clients p1: kill_after=…; expected a run with a ledger"):
        begin(
            Clients(producers=(PRODUCER,)),
            SEED,
            own=Library.RAW,
            process=lambda: "client-1",
            history=history,
            nodes={"A": f"127.0.0.1:{broker.port}"},
        )


def test_alarm_rings_once_with_the_first_op_from_its_index_on(history: History) -> None:
    with Alarm(history) as alarm:
        history.record("runner", OpType.INFO, Done())
        assert (False, False) == (alarm.is_set, alarm.clear())
        alarm.set(2)
        history.record("runner", OpType.INFO, Done())
        assert alarm.is_set
        history.record("runner", OpType.INFO, Done())
        history.record("runner", OpType.INFO, Done())
        assert (True, True, False) == (alarm.is_set, alarm.clear(), alarm.clear())
        alarm.set(0)
        history.record("runner", OpType.INFO, Done())
        assert alarm.clear()
    history.record("runner", OpType.INFO, Done())
