"""Who leads next, as a table: Kafka Replication Design V3 A.3.2 and B.1, KIP-101's returning leaders."""

from __future__ import annotations

import pytest

from targets.broker.core.election import Decision, decide, init_leader
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.zookeeper import PartitionState


def state(leader: int, isr: tuple[int, ...], epoch: int = 4) -> PartitionState:
    return PartitionState(leader=leader, leader_epoch=epoch, isr=isr, controller_epoch=1, zk_version=3)


def test_new_partition_is_led_by_the_first_live_replica_and_all_live_are_in_sync() -> None:
    """Source: Kafka Replication Design V3, B, init_leaders 1.1."""
    assert Decision(leader=2, leader_epoch=0, isr=(2, 3)) == init_leader((1, 2, 3), {2, 3, 9})
    assert init_leader((1, 2), {9}) is None


@pytest.mark.parametrize(
    ("before", "live", "unclean", "expected"),
    [
        pytest.param(state(1, (1, 2)), {1, 2}, False, None, id="all well"),
        pytest.param(state(1, (1, 2)), {2}, False, (2, (2,)), id="leader died"),
        pytest.param(state(1, (1, 2)), {1}, False, (1, (1,)), id="follower died"),
        pytest.param(state(1, (1,)), {2}, False, (-1, (1,)), id="the last of the ISR died"),
        pytest.param(state(-1, (1,)), {2}, False, None, id="still none may lead"),
        pytest.param(state(-1, (1,)), {1, 2}, False, (1, (1,)), id="the last of the ISR is back"),
        pytest.param(state(1, (1,)), {2}, True, (2, (2,)), id="unclean"),
        pytest.param(state(1, (1, 2)), set(), True, (-1, (1, 2)), id="nobody lives"),
        pytest.param(state(3, (3, 1)), {1, 2}, False, (1, (1,)), id="only the ISR may lead"),
    ],
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_broker_change_elects_from_the_live_isr(
    before: PartitionState,
    live: set[int],
    unclean: bool,
    expected: tuple[int, tuple[int, ...]] | None,
    protocol: str,
) -> None:
    """Source: Kafka Replication Design V3, A 3.2 and 3.3 (epoch + 1 on every write)."""
    found = decide(before, (1, 2, 3), live, set(), PROTOCOLS[protocol], unclean_election=unclean)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert (*expected, 5) == (found.leader, found.isr, found.leader_epoch)
        assert (unclean and expected[0] == 2) == found.unclean


@pytest.mark.parametrize(("protocol", "bumped"), [(protocol, protocol != "hw") for protocol in PROTOCOLS])
def test_returning_leader_gets_a_new_epoch(protocol: str, bumped: bool) -> None:
    """Source: KIP-101: "if the controller receives a Broker Registration it will increment the Leader Epoch"."""
    found = decide(state(1, (1, 2)), (1, 2), {1, 2}, {1}, PROTOCOLS[protocol], unclean_election=False)
    assert (Decision(leader=1, leader_epoch=5, isr=(1, 2)) if bumped else None) == found


def test_returning_follower_changes_nothing() -> None:
    """Source: KIP-101, returning leaders: only partitions that the broker leads get a new epoch."""
    found = decide(state(1, (1, 2)), (1, 2), {1, 2}, {2}, PROTOCOLS["kip101"], unclean_election=False)
    assert found is None
