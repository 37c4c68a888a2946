"""
A deposed controller's INIT deletes no replica of a broker that restarted.

The process that restarts knows no controller's epoch of its own: it reads it before it obeys any command.
Source:  Kafka Replication Design V3, C 3 and D 4: INIT; E: what a broker reads at start-up.
"""

from __future__ import annotations

import pytest

from targets.broker.core.messages import ErrorCode, LeaderAndIsrRequest, LeaderAndIsrResponse
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.zookeeper import CONTROLLER_EPOCH, broker_path
from tests.broker.core.bench import TP, Bench, answers, log_of, recovery
from tests.broker.core.cluster import Cluster


def init(epoch: int) -> LeaderAndIsrRequest:
    """Return the INIT of a controller that knows no topic."""
    return LeaderAndIsrRequest(
        controller_id=9, controller_epoch=epoch, ack_timeout_ms=1, is_init=True, partitions=()
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_init_of_a_deposed_controller_waits_until_the_epoch_is_read_and_is_refused(protocol: str) -> None:
    bench = Bench(protocol)
    bench.zk.put(CONTROLLER_EPOCH, b"4")
    bench.hold(broker_path(1))
    log = log_of((0, 3))
    bench.start((log, recovery(log)), session=5)
    assert [] == answers(bench.request(init(3)))
    (answer,) = [each for each in answers(bench.release()) if isinstance(each, LeaderAndIsrResponse)]
    assert ErrorCode.STALE_CONTROLLER_EPOCH is answer.error


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_acknowledged_records_of_a_restarted_broker_outlive_a_late_init(protocol: str) -> None:
    """
    The first controller's INIT, from before the topic was created, reaches the leader when it has restarted.

    It was in flight when that controller died, and the broker that it finds is another process.
    """
    cluster = Cluster(protocol, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.produce(1, 3)
    old = cluster.benches[3].broker.state.controller.epoch
    cluster.crash(3)
    assert old < max(bench.broker.state.controller.epoch for bench in cluster.benches.values())
    cluster.crash(1)
    restarted = cluster.start(1)
    (answer,) = answers(restarted.request(init(old)))
    assert isinstance(answer, LeaderAndIsrResponse) and ErrorCode.STALE_CONTROLLER_EPOCH is answer.error
    assert 3 == restarted.broker.state.replicas[TP].log.end_offset
