"""
What a server of an ensemble that lags says of a write whose answer was lost: nothing that may be believed.

A server that has not yet got a write answers reads without it. Whoever looks whether a lost write happened lets
the server catch up first.
Source:  ZooKeeper Programmer's Guide, "Consistency Guarantees": sync, then read; Kafka's KAFKA-2729 and
         ReplicationUtils.checkLeaderAndIsrZkData, which writes again instead.
"""

from __future__ import annotations

import pytest

from targets.broker.core.zookeeper import ZkGet, ZkNode, ZkOp, ZkResult, ZkSync, leader_and_isr_path
from targets.simulator.broker.coordination import answer
from tests.broker.core.asks import fetch, leader_of, produce, produced
from tests.broker.core.bench import TP, Bench
from tests.broker.core.memory import MemoryZk, batch

PATH = leader_and_isr_path(TP)


class Lagging:
    """A server that answers reads of the state with what was there before the last write, until a sync."""

    def __init__(self, zk: MemoryZk) -> None:
        self.old = answer(zk.nodes[PATH])
        self.synced = False
        self.stale = 0
        self._ask = zk.ask

    def ask(self, op: ZkOp, session: int) -> ZkResult:
        self.synced |= isinstance(op, ZkSync)
        if isinstance(op, ZkGet) and op.path == PATH and not self.synced:
            self.stale += 1
            return self.old
        return self._ask(op, session)


def lost_join(monkeypatch: pytest.MonkeyPatch) -> tuple[Bench, Lagging]:
    """Return leader 1 whose write that lets 2 into its ISR happened, lost its answer, and is looked for there."""
    bench = leader_of(10, isr=(1,))
    server = Lagging(bench.zk)
    monkeypatch.setattr(bench.zk, "ask", server.ask)
    bench.lose(PATH, happened=True, writes=True)
    bench.request(fetch(10, replica=2))
    assert (1, 2) == bench.zk.state().isr
    return bench, server


def test_member_that_a_lost_write_let_in_counts_though_the_server_lagged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the leader would commit without it, and the controller could elect it without what was acknowledged."""
    bench, server = lost_join(monkeypatch)
    assert ((1, 2), 0) == (bench.replica.isr, server.stale)
    waiting = bench.request(produce(batch(3), acks=-1))
    assert [] == produced(waiting)
    assert 10 == bench.replica.high_watermark


def test_without_the_sync_the_leader_would_commit_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """This is what the sync is for: the same, with a server for which it does nothing."""
    bench = leader_of(10, isr=(1,))
    server = Lagging(bench.zk)
    monkeypatch.setattr(
        bench.zk, "ask", lambda op, session: server.old if op == ZkGet(path=PATH) else server._ask(op, session)
    )
    bench.lose(PATH, happened=True, writes=True)
    bench.request(fetch(10, replica=2))
    assert isinstance(server.old, ZkNode) and (1,) == bench.replica.isr
    bench.request(produce(batch(3)))
    assert 13 == bench.replica.high_watermark
