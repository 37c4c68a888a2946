"""A cluster whose only partition is moved, and what must be true once it is."""

from __future__ import annotations

from targets.broker.core.assignments import Assignment, decode_topic
from targets.broker.core.messages import (
    AlterReassignmentsRequest,
    ErrorCode,
    ListReassignmentsRequest,
    PartitionErrors,
    Reassignment,
    ReassignmentsResponse,
    TopicPartition,
    WantedReplicas,
)
from targets.broker.core.state import Role
from targets.broker.core.zookeeper import topic_path
from tests.broker.core.bench import TP, Bench
from tests.broker.core.cluster import Cluster

OK = ErrorCode.NONE
RECORDS = 3
# Enough for the controller to look at a move again.
CHECK_MS = 1_000


def cluster_of(protocol: str = "kip380", *, bench: type[Bench] = Bench, **settings: int) -> Cluster:
    """Return five brokers, of which 5 is controller; 1 and 2 have a partition, 1 leads it, and it has records."""
    cluster = Cluster(protocol, (5, 1, 2, 3, 4), bench=bench, reassignment_check_ms=CHECK_MS, **settings)
    cluster.create(replicas=(1, 2))
    cluster.produce(1, RECORDS)
    return cluster


def alter(cluster: Cluster, *replicas: int, to: int = 5, tp: TopicPartition = TP) -> ErrorCode:
    """Ask for a partition's replicas, none: no longer to move it; return the error."""
    wanted = WantedReplicas(tp=tp, replicas=replicas or None)
    (answer,) = cluster.ask(to, AlterReassignmentsRequest(partitions=(wanted,), timeout_ms=1_000))
    assert isinstance(answer, PartitionErrors)
    return answer.error or answer.errors[0][1]


def listed(cluster: Cluster, broker: int = 5) -> tuple[Reassignment, ...]:
    (answer,) = cluster.ask(broker, ListReassignmentsRequest(partitions=None, timeout_ms=1_000))
    assert isinstance(answer, ReassignmentsResponse) and answer.error is OK
    return answer.reassignments


def node(cluster: Cluster) -> Assignment:
    return decode_topic(cluster.zk.nodes[topic_path(TP.topic)].data)


def holders(cluster: Cluster) -> list[int]:
    return sorted(id_ for id_, bench in cluster.benches.items() if TP in bench.broker.state.replicas)


def is_moved(cluster: Cluster, *replicas: int, records: int = RECORDS) -> None:
    """Assert that these replicas alone are left, all in sync, one leads, and each has the records."""
    assert Assignment(replicas={0: replicas}, made=cluster.mark()) == node(cluster)
    assert set(replicas) == set(cluster.state().isr) and cluster.state().leader in replicas
    assert sorted(replicas) == holders(cluster)
    assert {records} == {cluster.replica(broker).log.end_offset for broker in replicas}
    assert [cluster.state().leader] == [b for b, (role, _) in cluster.roles().items() if role is Role.LEADER]
