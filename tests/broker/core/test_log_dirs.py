"""DescribeLogDirs: the sizes of the logs that are here."""

from __future__ import annotations

from targets.broker.core.messages import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    LogSize,
    TopicPartition,
)
from tests.broker.core.asks import produce
from tests.broker.core.bench import TP, Bench, answers, batch

OTHER = TopicPartition("other", 3)


def described(bench: Bench, *partitions: TopicPartition) -> DescribeLogDirsResponse:
    (answer,) = answers(bench.request(DescribeLogDirsRequest(partitions=partitions or None)))
    assert isinstance(answer, DescribeLogDirsResponse)
    return answer


def two_logs() -> Bench:
    """Return a broker that leads one partition and follows in another, which is empty."""
    bench = Bench("kip380", broker_id=1)
    bench.start()
    bench.command(leader=1, epoch=0)
    bench.command(leader=2, epoch=0, tp=OTHER)
    bench.request(produce(batch(2), batch(5)))
    return bench


def test_all_logs_are_answered_whatever_their_role_in_the_only_directory() -> None:
    """The log of the bench has a file for each batch."""
    answer = described(two_logs())
    assert "/data" == answer.path
    assert (LogSize(tp=OTHER, size=0), LogSize(tp=TP, size=batch(2).size + batch(5).size)) == answer.logs


def test_partition_that_is_not_here_is_left_out() -> None:
    """Source: Kafka, ReplicaManager.describeLogDirs, which filters what it has."""
    answer = described(two_logs(), OTHER, TopicPartition("t", 1), OTHER)
    assert [OTHER] == [log.tp for log in answer.logs]
