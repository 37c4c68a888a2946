"""AlterConfigs and IncrementalAlterConfigs: what is written, what is refused, and with which of Kafka's errors."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from targets.broker.core.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    AlteredSetting,
    AlterOperation,
    ConfigResource,
    ConfigResult,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    ErrorCode,
    NewTopic,
    TopicErrors,
)
from targets.broker.core.zookeeper import CONFIG_TOPICS, config_path, topic_path
from tests.broker.core.bench import answers
from tests.broker.core.cluster import Cluster

TOPIC, BROKER, LOGGER = 2, 4, 8


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster("kip380", brokers=(1, 2))
    made.create(replicas=(1, 2))
    return made


def alter(
    cluster: Cluster,
    *resources: AlteredResource,
    incremental: bool = True,
    validate_only: bool = False,
    via: int = 2,
) -> list[tuple[ErrorCode, str]]:
    """Alter settings through a broker; return each resource's error and text."""
    request = AlterConfigsRequest(resources=resources, incremental=incremental, validate_only=validate_only)
    (answer,) = cluster.ask(via, request)
    assert isinstance(answer, AlterConfigsResponse)
    assert [(each.kind, each.name) for each in resources] == [(each.kind, each.name) for each in answer.results]
    return [(each.error, each.error_text) for each in answer.results]


def topic(*settings: AlteredSetting, name: str = "t") -> AlteredResource:
    return AlteredResource(kind=TOPIC, name=name, settings=settings)


def have(**settings: str) -> tuple[AlteredSetting, ...]:
    """Return settings to set; a `_` stands for a dot."""
    return tuple(AlteredSetting(name.replace("_", "."), text) for name, text in settings.items())


def own(cluster: Cluster, name: str = "t") -> Mapping[str, str]:
    """Return what ZooKeeper holds of a topic's settings."""
    node = cluster.zk.nodes.get(config_path(name))
    return {} if node is None else json.loads(node.data)["config"]


def described(cluster: Cluster, name: str = "t") -> ConfigResult:
    resource = ConfigResource(kind=TOPIC, name=name)
    (answer,) = cluster.ask(1, DescribeConfigsRequest(resources=(resource,), synonyms=True))
    assert isinstance(answer, DescribeConfigsResponse)
    return answer.results[0]


OK = [(ErrorCode.NONE, "")]


def test_settings_are_set_replaced_and_deleted_one_by_one(cluster: Cluster) -> None:
    """Source: KIP-339: what an incremental change does not name stays."""
    assert OK == alter(cluster, topic(*have(retention_ms="7", min_insync_replicas="2")))
    assert OK == alter(cluster, topic(*have(retention_ms="8"), AlteredSetting("flush.messages", "3")))
    assert {"retention.ms": "8", "min.insync.replicas": "2", "flush.messages": "3"} == own(cluster)
    gone = AlteredSetting("retention.ms", None, AlterOperation.DELETE)
    assert OK == alter(cluster, topic(gone, AlteredSetting("segment.ms", None, AlterOperation.DELETE)))
    assert {"min.insync.replicas": "2", "flush.messages": "3"} == own(cluster)


def test_alter_configs_replaces_all_that_a_topic_has(cluster: Cluster) -> None:
    """Source: KIP-133: AlterConfigs is not incremental; what is not named goes back to the broker's."""
    alter(cluster, topic(*have(retention_ms="7", min_insync_replicas="2")))
    assert OK == alter(cluster, topic(*have(flush_messages="3")), incremental=False)
    assert {"flush.messages": "3"} == own(cluster)
    assert OK == alter(cluster, topic(), incremental=False)
    assert config_path("t") not in cluster.zk.nodes
    assert OK == alter(cluster, topic(), incremental=False)


def test_list_grows_and_shrinks_from_the_brokers_value_on(cluster: Cluster) -> None:
    grown = AlteredSetting("cleanup.policy", "compact", AlterOperation.APPEND)
    assert OK == alter(cluster, topic(grown))
    assert {"cleanup.policy": "delete,compact"} == own(cluster)
    shrunk = AlteredSetting("cleanup.policy", "delete", AlterOperation.SUBTRACT)
    assert OK == alter(cluster, topic(shrunk))
    assert {"cleanup.policy": "compact"} == own(cluster)
    ((error, text),) = alter(cluster, topic(AlteredSetting("cleanup.policy", "compact", AlterOperation.SUBTRACT)))
    assert (ErrorCode.INVALID_REQUEST, True) == (error, "expected delete, compact or both" in text)


@pytest.mark.parametrize(
    ("setting", "error", "text"),
    [
        (AlteredSetting("compression.type", "zstd"), ErrorCode.INVALID_CONFIG, "no topic has it of its own here"),
        (AlteredSetting("max.message.bytes", "9"), ErrorCode.INVALID_CONFIG, "expected one of cleanup.policy"),
        (
            AlteredSetting("retention.ms", "soon"),
            ErrorCode.INVALID_REQUEST,
            "expected -1, or a whole",
        ),
        (AlteredSetting("retention.ms", "9" * 5_000), ErrorCode.INVALID_REQUEST, "expected -1, or a whole number"),
        (AlteredSetting("retention.bytes", "-2"), ErrorCode.INVALID_REQUEST, "'-2'; expected -1, or"),
        (
            AlteredSetting("min.insync.replicas", "0"),
            ErrorCode.INVALID_REQUEST,
            "from 1 to 2147483647",
        ),
        (AlteredSetting("segment.bytes", "13"), ErrorCode.INVALID_REQUEST, "from 14 to 2147483647"),
        (
            AlteredSetting("unclean.leader.election.enable", "1"),
            ErrorCode.INVALID_REQUEST,
            "expected true or false",
        ),
        (AlteredSetting("cleanup.policy", "none"), ErrorCode.INVALID_REQUEST, "expected delete, compact or both"),
        (
            AlteredSetting("message.format.version", "0.9.0"),
            ErrorCode.INVALID_REQUEST,
            "expected a release of Kafka from 0.10.0 on",
        ),
        (AlteredSetting("retention.ms", None), ErrorCode.INVALID_REQUEST, "has no value"),
        (AlteredSetting("retention.ms", "1", AlterOperation.APPEND), ErrorCode.INVALID_REQUEST, "is no list"),
        (AlteredSetting("retention.ms", "1", 9), ErrorCode.INVALID_REQUEST, "operation 9; expected 0 to 3"),
    ],
)
def test_setting_that_a_topic_cannot_have_changes_nothing(
    cluster: Cluster, setting: AlteredSetting, error: ErrorCode, text: str
) -> None:
    """Source: Kafka, ZkAdminManager: a name is INVALID_CONFIG, a value INVALID_REQUEST."""
    ((found, said),) = alter(cluster, topic(*have(flush_messages="3"), setting))
    assert (error, {}) == (found, own(cluster))
    assert text in said and len(said) < 400


def test_each_resource_has_its_own_error_and_the_others_are_altered(cluster: Cluster) -> None:
    cluster.create("u")
    found = alter(
        cluster,
        topic(*have(retention_ms="7"), name="gone"),
        topic(*have(retention_ms="7"), name="a/b"),
        AlteredResource(kind=BROKER, name="2", settings=have(log_retention_ms="7")),
        AlteredResource(kind=BROKER, name="1", settings=()),
        AlteredResource(kind=BROKER, name="", settings=(AlteredSetting("x", None, AlterOperation.DELETE),)),
        AlteredResource(kind=LOGGER, name="2", settings=have(x="y")),
        topic(*have(retention_ms="7")),
        topic(*have(retention_ms="7"), name="u"),
        topic(*have(retention_ms="8"), name="u"),
    )
    assert [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ] == [error for error, _ in found]
    assert "has those that it was started with" in found[2][1]
    assert ({"retention.ms": "7"}, {}) == (own(cluster), own(cluster, "u"))


def test_setting_that_is_named_twice_is_refused(cluster: Cluster) -> None:
    ((error, text),) = alter(cluster, topic(*have(retention_ms="7"), *have(retention_ms="8")))
    assert (ErrorCode.INVALID_REQUEST, "setting 'retention.ms' was named twice; expected once") == (error, text)


def test_only_validated_changes_are_checked_and_not_written(cluster: Cluster) -> None:
    assert OK == alter(cluster, topic(*have(retention_ms="7")), validate_only=True)
    ((error, _),) = alter(cluster, topic(*have(retention_ms="x")), validate_only=True)
    assert (ErrorCode.INVALID_REQUEST, {}) == (error, own(cluster))


def ask_and_hold(cluster: Cluster, *resources: AlteredResource) -> None:
    """Alter settings one by one through broker 2, whose write is held."""
    cluster.benches[2].hold(CONFIG_TOPICS, writes=True)
    assert [] == cluster.ask(2, AlterConfigsRequest(resources=resources, incremental=True))
    assert cluster.benches[2].held


def released(cluster: Cluster, *, then_hold: bool = False) -> list[tuple[str, ErrorCode, str]]:
    """Make the write that is held; return what was answered of each resource, [] if nothing was."""
    found = answers(cluster.benches[2].release(then_hold=then_hold))
    assert all(isinstance(each, AlterConfigsResponse) for each in found) and len(found) < 2
    results = [result for each in found if isinstance(each, AlterConfigsResponse) for result in each.results]
    return [(each.name, each.error, each.error_text) for each in results]


@pytest.mark.parametrize("before", [{}, {"retention_ms": "7"}])
@pytest.mark.parametrize("via", [1, 2])
def test_of_two_changes_at_once_both_are_made(cluster: Cluster, before: Mapping[str, str], via: int) -> None:
    """The later one finds a node that was written, or made, since it read; Kafka has no error for that."""
    alter(cluster, topic(*have(**before)))
    ask_and_hold(cluster, topic(*have(flush_messages="3")))
    if via == 1:
        assert OK == alter(cluster, topic(*have(min_insync_replicas="2")), via=via)
        assert [("t", *OK[0])] == released(cluster)
    else:
        other = AlterConfigsRequest(resources=(topic(*have(min_insync_replicas="2")),), incremental=True)
        assert [] == cluster.ask(2, other)
        found = answers(cluster.benches[2].release())
        said = [each.results[0].error for each in found if isinstance(each, AlterConfigsResponse)]
        assert [ErrorCode.NONE] * 2 == said
    expected = {name.replace("_", "."): text for name, text in before.items()}
    assert {**expected, "flush.messages": "3", "min.insync.replicas": "2"} == own(cluster)


def test_change_of_settings_that_are_taken_back_meanwhile_is_made_to_none(cluster: Cluster) -> None:
    alter(cluster, topic(*have(retention_ms="7")))
    ask_and_hold(cluster, topic(*have(flush_messages="3")))
    assert OK == alter(cluster, topic(), incremental=False, via=1)
    assert [("t", *OK[0])] == released(cluster)
    assert {"flush.messages": "3"} == own(cluster)


@pytest.mark.parametrize("following", [None, {}, {"min.insync.replicas": "2"}], ids=["none", "plain", "own"])
@pytest.mark.parametrize("before", [{}, {"retention_ms": "7"}], ids=["plain", "own"])
def test_change_of_a_topic_that_is_deleted_meanwhile_is_not_made_to_the_next_one(
    cluster: Cluster, before: Mapping[str, str], following: Mapping[str, str] | None
) -> None:
    """Settings that a topic is created with have the version that those of the one before had."""
    alter(cluster, topic(*have(**before)))
    ask_and_hold(cluster, topic(*have(flush_messages="3")))
    cluster.delete("t", via=1)
    if following is not None:
        new = NewTopic(
            topic="t",
            partitions=-1,
            replication_factor=-1,
            assignments=((0, (1, 2)),),
            settings=tuple(following.items()),
        )
        (made,) = cluster.ask(1, CreateTopicsRequest(topics=(new,), timeout_ms=1_000))
        assert isinstance(made, TopicErrors) and made.errors[0][1] is ErrorCode.NONE
    assert [("t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")] == released(cluster)
    assert (following or {}) == (own(cluster) if config_path("t") in cluster.zk.nodes else {})


def test_settings_that_are_written_again_and_again_are_read_once_more_and_no_more(cluster: Cluster) -> None:
    cluster.create("u")
    ask_and_hold(cluster, topic(*have(flush_messages="3")), topic(*have(flush_messages="3"), name="u"))
    found: list[tuple[str, ErrorCode, str]] = []
    for number in range(2):
        assert [] == found and cluster.benches[2].held
        cluster.zk.put(config_path("t"), json.dumps({"config": {"retention.ms": f"{number + 1}"}}).encode())
        found += released(cluster, then_hold=True)
    text = "topic 't' or its settings were changed meanwhile, twice (bad-version); nothing is altered"
    assert [("t", ErrorCode.REQUEST_TIMED_OUT, text), ("u", *OK[0])] == found
    assert not cluster.benches[2].held
    assert ({"retention.ms": "2"}, {"flush.messages": "3"}) == (own(cluster), own(cluster, "u"))


def test_lost_connections_time_out_before_and_after_the_write(cluster: Cluster) -> None:
    cluster.benches[2].lose(topic_path("t"), happened=False)
    ((error, _),) = alter(cluster, topic(*have(retention_ms="7")))
    assert ErrorCode.REQUEST_TIMED_OUT == error
    cluster.benches[2].lose(config_path("t"), happened=True, writes=True)
    ((error, _),) = alter(cluster, topic(*have(retention_ms="7")))
    assert (ErrorCode.REQUEST_TIMED_OUT, {"retention.ms": "7"}) == (error, own(cluster))


def test_description_shows_a_topics_own_value_and_the_brokers_behind_it(cluster: Cluster) -> None:
    """Source: KIP-226, synonyms; and at once, from any broker: it is read from ZooKeeper."""
    alter(cluster, topic(*have(retention_ms="7")))
    found = {entry.name: entry for entry in described(cluster).entries}
    entry = found["retention.ms"]
    assert ("7", "-1", "log.retention.ms", False, False) == (
        entry.value,
        entry.of_broker,
        entry.synonym,
        entry.is_default,
        entry.read_only,
    )
    assert ("1", "", True) == (
        found["min.insync.replicas"].value,
        found["min.insync.replicas"].of_broker,
        found["min.insync.replicas"].is_default,
    )
    assert found["max.message.bytes"].read_only


@pytest.mark.parametrize("text", [b"{", b'{"config": {"retention.ms": "soon"}}', b'{"config": {"x": "1"}}', b"[]"])
def test_what_cannot_be_read_is_named_and_replaced_whole_or_not_at_all(cluster: Cluster, text: bytes) -> None:
    cluster.zk.put(config_path("t"), text)
    cluster.zk.put(CONFIG_TOPICS, b"")
    cluster.settle()
    (named,) = {value["path"] for value in cluster.benches[1].observed("unreadable-metadata")}
    assert config_path("t") == named
    ((error, said),) = alter(cluster, topic(*have(retention_ms="7")))
    assert (ErrorCode.INVALID_CONFIG, True) == (error, "AlterConfigs, which replaces it" in said)
    assert OK == alter(cluster, topic(*have(retention_ms="7")), incremental=False)
    assert {"retention.ms": "7"} == own(cluster)


# --- CreateTopics -------------------------------------------------------------------------------------------
def create(cluster: Cluster, new: NewTopic, *, validate_only: bool = False) -> tuple[ErrorCode, str]:
    request = CreateTopicsRequest(topics=(new,), timeout_ms=1_000, validate_only=validate_only)
    (answer,) = cluster.ask(2, request)
    assert isinstance(answer, TopicErrors)
    return answer.errors[0][1:]


def new_topic(*settings: tuple[str, str | None], partitions: int = 1, factor: int = 2) -> NewTopic:
    return NewTopic(topic="u", partitions=partitions, replication_factor=factor, settings=settings)


def test_topic_is_created_with_its_settings_in_one_write(cluster: Cluster) -> None:
    assert (ErrorCode.NONE, "") == create(cluster, new_topic(("min.insync.replicas", "2")))
    assert {"min.insync.replicas": "2"} == own(cluster, "u")
    assert cluster.zk.nodes[config_path("u")].mzxid == cluster.zk.nodes[topic_path("u")].czxid


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (("retention.ms", "x"), "'x'; expected -1"),
        (("a", "1"), "'a': no topic"),
        (("retention.ms", None), "no value"),
    ],
)
def test_topic_with_settings_that_it_cannot_have_is_not_created(
    cluster: Cluster, setting: tuple[str, str | None], text: str
) -> None:
    error, said = create(cluster, new_topic(setting))
    assert (ErrorCode.INVALID_CONFIG, True) == (error, text in said)
    assert topic_path("u") not in cluster.zk.nodes
    assert ErrorCode.INVALID_CONFIG == create(cluster, new_topic(setting), validate_only=True)[0]


def test_settings_that_a_deleted_topic_left_are_written_over_or_do_not_count(cluster: Cluster) -> None:
    cluster.zk.put(config_path("u"), b'{"config": {"retention.ms": "1"}}')
    assert ErrorCode.NONE == create(cluster, new_topic())[0]
    assert not [entry.name for entry in described(cluster, "u").entries if entry.of_broker]
    cluster.delete("u")
    assert ErrorCode.NONE == create(cluster, new_topic(("retention.ms", "2")))[0]
    assert ["2"] == [entry.value for entry in described(cluster, "u").entries if entry.of_broker]
    cluster.delete("u")
    assert config_path("u") not in cluster.zk.nodes


def test_numbers_that_a_client_leaves_out_are_the_brokers(cluster: Cluster) -> None:
    """Source: KIP-464: -1 partitions or replicas mean num.partitions and default.replication.factor."""
    made = Cluster("kip380", brokers=(1, 2, 3), num_partitions=3, default_replication_factor=2)
    assert (ErrorCode.NONE, "") == create(made, new_topic(partitions=-1, factor=-1))
    placed = json.loads(made.zk.nodes[topic_path("u")].data)["partitions"]
    assert {"0": [1, 2], "1": [2, 3], "2": [3, 1]} == placed
    assert (ErrorCode.NONE, "") == create(cluster, new_topic(partitions=-1, factor=-1))
    assert {"0": [1]} == json.loads(cluster.zk.nodes[topic_path("u")].data)["partitions"]


@pytest.mark.parametrize("wrong", [0, -2])
def test_other_numbers_below_one_stay_wrong(cluster: Cluster, wrong: int) -> None:
    assert ErrorCode.INVALID_PARTITIONS == create(cluster, new_topic(partitions=wrong))[0]
    assert ErrorCode.INVALID_REPLICATION_FACTOR == create(cluster, new_topic(factor=wrong))[0]
