"""
Leader election: a pure function of a partition's state and the live brokers.

Source:  Kafka Replication Design V3, A (on_broker_change 3.2) and B (init_leaders); KIP-101, returning leaders.
When the ISR is gone, V3 elects any live assigned replica; Kafka only with unclean election on (KIP-106).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from targets.broker.core.rules import ReturningLeader, Rules
from targets.broker.core.zookeeper import PartitionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The leaderAndISR to write: leader -1 for none; unclean: from outside the ISR."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    unclean: bool = False


def init_leader(replicas: tuple[int, ...], live: Collection[int]) -> Decision | None:
    """Return a new partition's first leader and ISR, None while no assigned replica is live (V3 B)."""
    present = tuple(replica for replica in replicas if replica in live)
    return Decision(leader=present[0], leader_epoch=0, isr=present) if present else None


def decide(
    state: PartitionState,
    replicas: tuple[int, ...],
    live: Collection[int],
    returned: Collection[int],
    rules: Rules,
    *,
    unclean_election: bool,
) -> Decision | None:
    """
    Return the change to write, None if nothing must change.

    Args:
        live: the registered brokers.
        returned: the brokers whose registration just appeared (all of them, to a new controller).
    """
    epoch = state.leader_epoch + 1
    isr = tuple(member for member in state.isr if member in live)
    if state.leader in live and isr == state.isr:
        awaits = rules.returning_leader is ReturningLeader.AWAITS and state.leader in returned
        return Decision(leader=state.leader, leader_epoch=epoch, isr=isr) if awaits else None
    if isr:
        return _within(state, replicas, isr)
    present = [replica for replica in replicas if replica in live]
    if present and unclean_election:
        return Decision(leader=present[0], leader_epoch=epoch, isr=(present[0],), unclean=True)
    if state.leader == -1:
        return None
    # No eligible leader is live. The last ISR stays: only its members may lead again.
    return Decision(leader=-1, leader_epoch=epoch, isr=state.isr)


def without(
    state: PartitionState, replicas: tuple[int, ...], live: Collection[int], leaving: Collection[int]
) -> Decision | None:
    """
    Return the change that takes brokers which are about to end out of the ISR, None if they alone are in it.

    Source:  Kafka, KafkaController.doControlledShutdown.
    """
    isr = tuple(member for member in state.isr if member in live and member not in leaving)
    if not isr or not any(member in leaving for member in state.isr):
        return None
    return _within(state, replicas, isr)


def _within(state: PartitionState, replicas: tuple[int, ...], isr: tuple[int, ...]) -> Decision:
    """Return a new epoch with that ISR: its leader stays if it is in it, else the first assigned one leads."""
    kept = state.leader if state.leader in isr else next(r for r in (*replicas, *isr) if r in isr)
    return Decision(leader=kept, leader_epoch=state.leader_epoch + 1, isr=isr)


def asked_for(state: PartitionState, live: Collection[int], leader: int) -> Decision | None:
    """Return an operator's choice of a live ISR member as leader; no live broker leaves the ISR."""
    isr = tuple(member for member in state.isr if member in live)
    if leader == state.leader or leader not in isr:
        return None
    return Decision(leader=leader, leader_epoch=state.leader_epoch + 1, isr=isr)
