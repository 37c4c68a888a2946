"""
A cluster whose controller is the test: it writes each election and sends the command to each broker on demand.

A broker can thus learn of a leader late, twice or never, as every replication bug requires. Epoch requests,
truncation, fetches and the ISR in ZooKeeper are the cores' own. A record is identified by its batch's CRC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from targets.broker.core.events import Answer, Caller, Received
from targets.broker.core.messages import (
    FetchRequest,
    LeaderAndIsr,
    LeaderAndIsrRequest,
    OffsetForLeaderEpochRequest,
    ProduceResponse,
)
from targets.broker.core.rules import PROTOCOLS, Rules, with_rule
from targets.broker.core.state import Phase, Role
from targets.broker.core.zookeeper import leader_and_isr_path
from tests.broker.core.asks import occupied, produce
from tests.broker.core.bench import TP, Bench, MemoryLog, batch
from tests.broker.core.cluster import Cluster

# (leader epoch, records) of one batch, optionally with the CRC that identifies its records
Span = tuple[int, int] | tuple[int, int, int]


def rules_of(protocol: str, *changes: str) -> Rules:
    """Return a protocol with some of its rules changed: `rules_of("kip320", "fence_fetch=no")`."""
    rules = PROTOCOLS[protocol]
    for change in changes:
        rules = with_rule(rules, change)
    return rules


def log_with(*spans: Span) -> MemoryLog:
    """Return a log of batches given as (leader epoch, records) or (leader epoch, records, CRC)."""
    log = MemoryLog(TP)
    for epoch, count, *crc in spans:
        log.append_as_leader([batch(count, crc=crc[0] if crc else 7)], epoch)
    return log


class Stage(Cluster):
    """Brokers that hold the only partition, with the test as their controller."""

    def __init__(
        self,
        rules: Rules | str,
        replicas: Sequence[int] = (1, 2),
        *,
        logs: Mapping[int, Sequence[Span]] | None = None,
        high_watermarks: Mapping[int, int] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(rules, brokers=(), **settings)
        self.zk = occupied(replicas)
        self.replicas = tuple(replicas)
        self._promised: dict[Caller, tuple[Bench, int]] = {}
        for broker in replicas:
            self._logs[broker] = {TP: log_with(*(logs or {}).get(broker, ()))}
            self._checkpoints[broker] = {TP: (high_watermarks or {}).get(broker, 0)}
            self.start(broker)

    # --- the controller -----------------------------------------------------------------------------------
    def elect(
        self,
        leader: int,
        *,
        epoch: int | None = None,
        isr: Sequence[int] | None = None,
        tell: Sequence[int] | None = None,
    ) -> LeaderAndIsr:
        """Write a leader in the next epoch and send it to these brokers, the leader first (None: all that run)."""
        before = self.zk.state() if leader_and_isr_path(TP) in self.zk.nodes else None
        members = tuple(isr or (before.isr if before else self.replicas))
        number = epoch if epoch is not None else (before.leader_epoch + 1 if before else 0)
        version = self.zk.put_state(leader, number, members)
        command = LeaderAndIsr(
            tp=TP, leader=leader, leader_epoch=number, isr=members, zk_version=version, replicas=self.replicas
        )
        told = sorted(self.benches if tell is None else tell, key=lambda broker: (broker != leader, broker))
        for broker in told:
            self.tell(broker, command)
        return command

    def tell(self, broker: int, command: LeaderAndIsr) -> None:
        """Send a command to one broker, now."""
        self.benches[broker].request(
            LeaderAndIsrRequest(
                controller_id=9, controller_epoch=1, ack_timeout_ms=1, is_init=False, partitions=(command,)
            )
        )
        self.settle()

    # --- links -----------------------------------------------------------------------------------
    def mute(self, asker: int, server: int) -> None:
        """Hold a follower's epoch requests and fetches to one broker."""
        self.hold(asker, server, FetchRequest)
        self.hold(asker, server, OffsetForLeaderEpochRequest)

    def deafen(self, asker: int, server: int) -> None:
        """Hold one broker's answers to a follower's fetches; the fetches themselves count."""
        self.hold(asker, server, FetchRequest, answers=True)

    # --- clients -----------------------------------------------------------------------------------
    def write(self, broker: int, crc: int, count: int = 1, *, acks: int = 1) -> None:
        """Produce one batch, identified by its CRC; with acks=all, `acknowledged` lists it once it is answered."""
        self._numbers += 1
        caller = Caller(connection=self._numbers, number=1)
        if acks == -1:
            self._promised[caller] = (self.benches[broker], crc)
        self.benches[broker].step(
            Received(caller=caller, request=produce(batch(count, crc=crc), acks=acks, timeout_ms=10**9))
        )
        self.settle()

    # --- inspection ----------------------------------------------------------------------------------
    def acknowledged(self) -> list[int]:
        """Return the CRCs of the batches acknowledged with acks=all, in the order of their writes."""
        found = []
        for caller, (bench, crc) in self._promised.items():
            answers = [e.response for e in bench.effects if isinstance(e, Answer) and e.to == caller]
            if any(isinstance(a, ProduceResponse) and a.results[0].error == 0 for a in answers):
                found.append(crc)
        return found

    def lacking(self, broker: int) -> list[int]:
        """Return the CRCs of acknowledged batches that a broker's log lacks."""
        held = set(self.content(broker).values())
        return [crc for crc in self.acknowledged() if crc not in held]

    def owing(self) -> list[int]:
        """Return the CRCs of acknowledged batches that some member of the ISR, a possible next leader, lacks."""
        members = [member for member in self.zk.state().isr if member in self.benches]
        return sorted({crc for member in members for crc in self.lacking(member)})

    def content(self, broker: int) -> dict[int, int]:
        """Return a map from offset to the CRC of the batch that holds it."""
        log = self.replica(broker).log
        assert isinstance(log, MemoryLog)
        return {at: item.crc for item in log.batches for at in range(item.base_offset, item.next_offset)}

    def diverging(self, one: int, other: int) -> list[int]:
        """Return the offsets below both log ends at which two replicas hold different records."""
        end = min(self.replica(broker).log.end_offset for broker in (one, other))
        mine, others = self.content(one), self.content(other)
        return [at for at in range(end) if mine.get(at) != others.get(at)]

    def cuts(self, broker: int) -> list[int]:
        """Return a broker's log end offset after each truncation that it recorded."""
        return [int(seen["end"]) for seen in self.benches[broker].observed("truncate")]

    def ends(self, *brokers: int) -> list[int]:
        """Return log end offsets."""
        return [self.replica(broker).log.end_offset for broker in brokers]

    def leads(self, broker: int) -> bool:
        """Return whether a broker acts as leader."""
        return self.replica(broker).role is Role.LEADER

    def is_stopped(self, broker: int) -> bool:
        """Return whether a follower has stopped fetching until the next command: stuck, or fenced."""
        replica = self.replica(broker)
        return replica.role is Role.FOLLOWER and replica.phase in (Phase.FENCED, Phase.FAILED)
