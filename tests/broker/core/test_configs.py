"""DescribeConfigs: what a broker and its topics have, under Kafka's names; and what has no settings here."""

from __future__ import annotations

import pytest

from targets.broker.core.messages import (
    ConfigEntry,
    ConfigKind,
    ConfigResource,
    ConfigResult,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    ErrorCode,
)
from targets.broker.core.zookeeper import topic_path
from tests.broker.core.bench import Bench, answers
from tests.broker.core.cluster import Cluster

TOPIC, BROKER, LOGGER = 2, 4, 8


def resource(kind: int, name: str, *keys: str) -> ConfigResource:
    return ConfigResource(kind=kind, name=name, keys=keys or None)


def described(cluster: Cluster, *resources: ConfigResource, synonyms: bool = False) -> tuple[ConfigResult, ...]:
    (answer,) = cluster.ask(2, DescribeConfigsRequest(resources=resources, synonyms=synonyms))
    assert isinstance(answer, DescribeConfigsResponse)
    return answer.results


def of_bench(bench: Bench, kind: int, *keys: str) -> dict[str, ConfigEntry]:
    """Return the settings of broker 1, which this bench is, by their names."""
    request = DescribeConfigsRequest(resources=(resource(kind, "1", *keys),), synonyms=True)
    (answer,) = answers(bench.request(request))
    assert isinstance(answer, DescribeConfigsResponse)
    return {entry.name: entry for entry in answer.results[0].entries}


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster("kip380", brokers=(1, 2))
    made.create(replicas=(1, 2))
    return made


def test_topic_has_the_settings_of_its_broker_under_the_names_of_topics(cluster: Cluster) -> None:
    """Source: KIP-226: a topic's setting, and the broker's that has decided it."""
    (result,) = described(cluster, resource(TOPIC, "t"), synonyms=True)
    found = {entry.name: (entry.value, entry.synonym) for entry in result.entries}
    assert ErrorCode.NONE == result.error
    assert {
        "min.insync.replicas": ("1", "min.insync.replicas"),
        "unclean.leader.election.enable": ("false", "unclean.leader.election.enable"),
        "retention.ms": ("-1", "log.retention.ms"),
        "retention.bytes": ("-1", "log.retention.bytes"),
        "flush.messages": (str(2**63 - 1), "log.flush.interval.messages"),
        "cleanup.policy": ("delete", "log.cleanup.policy"),
        "delete.retention.ms": ("86400000", "log.cleaner.delete.retention.ms"),
        "max.message.bytes": ("1048588", "message.max.bytes"),
        "message.format.version": ("0.11.0", "log.message.format.version"),
        "segment.bytes": ("1000000", "log.segment.bytes"),
        "segment.ms": (str(2**63 - 1), "log.roll.ms"),
    } == found


def test_only_the_settings_that_are_named_are_answered_and_no_synonyms_that_are_not_asked_for(
    cluster: Cluster,
) -> None:
    (result,) = described(cluster, resource(TOPIC, "t", "retention.ms", "compression.type"))
    assert [("retention.ms", "")] == [(entry.name, entry.synonym) for entry in result.entries]


def test_broker_answers_with_what_it_was_started_with() -> None:
    bench = Bench("kip380", broker_id=1, retention_ms=7, unclean_election=True)
    found = of_bench(bench, BROKER)
    assert ("1", False) == (found["broker.id"].value, found["broker.id"].is_default)
    assert ("7", ConfigKind.LONG, False) == _seen(found["log.retention.ms"])
    assert ("true", ConfigKind.BOOLEAN, False) == _seen(found["unclean.leader.election.enable"])
    assert ("10000", ConfigKind.LONG, True) == _seen(found["replica.lag.time.max.ms"])
    assert ("/data", ConfigKind.STRING, False) == _seen(found["log.dirs"])
    assert ("104857600", ConfigKind.INT, True) == _seen(found["socket.request.max.bytes"])
    assert not [name for name in found if "*" in name or not name]


def _seen(entry: ConfigEntry) -> tuple[str, ConfigKind, bool]:
    return entry.value, entry.kind, entry.is_default


def test_what_brokers_share_is_nothing(cluster: Cluster) -> None:
    """Source: KIP-226: a broker without a name is the default of all, which only AlterConfigs can set."""
    (result,) = described(cluster, resource(BROKER, ""))
    assert (ErrorCode.NONE, ()) == (result.error, result.entries)


def test_each_resource_that_has_no_settings_here_has_its_own_error(cluster: Cluster) -> None:
    found = described(
        cluster,
        resource(TOPIC, "gone"),
        resource(TOPIC, "a/b"),
        resource(TOPIC, "t", "retention.ms"),
        resource(BROKER, "1"),
        resource(LOGGER, "2"),
    )
    assert [
        ("gone", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
        ("a/b", ErrorCode.INVALID_TOPIC, 0),
        ("t", ErrorCode.NONE, 1),
        ("1", ErrorCode.INVALID_REQUEST, 0),
        ("2", ErrorCode.INVALID_REQUEST, 0),
    ] == [(result.name, result.error, len(result.entries)) for result in found]
    assert "broker '1': expected 2" == found[3].error_text


def test_topic_is_not_said_to_be_unknown_when_zookeeper_does_not_answer(cluster: Cluster) -> None:
    cluster.benches[2].lose(topic_path("t"), happened=False)
    (result,) = described(cluster, resource(TOPIC, "t"))
    assert (ErrorCode.REQUEST_TIMED_OUT, ()) == (result.error, result.entries)
