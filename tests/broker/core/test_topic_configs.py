"""What topics have of their own, in force: taken up by running brokers, kept over restarts, for no other topic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from targets.broker.core.log_port import Cleaned
from targets.broker.core.messages import ErrorCode, TopicPartition
from targets.broker.core.state import Together
from targets.broker.core.zookeeper import CONFIG_TOPICS, config_path
from tests.broker.core.bench import TP, MemoryLog
from tests.broker.core.cluster import Cluster
from tests.broker.core.test_altering import alter, create, have, new_topic, topic

U = TopicPartition("u", 0)


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster("kip380", brokers=(1, 2), retention_check_ms=100, compaction_check_ms=100)
    made.create(replicas=(1, 2))
    made.create("u", replicas=(1, 2))
    return made


def min_isr(cluster: Cluster, broker: int) -> int:
    """Return what a broker has of its topic's own."""
    return cluster.benches[broker].broker.state.topic_configs["t"].config.min_isr


def log_of(cluster: Cluster, broker: int, tp: TopicPartition = TP) -> MemoryLog:
    log = cluster.replica(broker, tp).log
    assert isinstance(log, MemoryLog)
    return log


def test_min_insync_replicas_of_a_topic_holds_at_its_leader_and_for_no_other_topic(cluster: Cluster) -> None:
    alter(cluster, topic(*have(min_insync_replicas="3")))
    (result,) = cluster.produce(1)
    assert ErrorCode.NOT_ENOUGH_REPLICAS == result.error
    assert 3 == min_isr(cluster, 2)
    assert "u" not in cluster.benches[1].broker.state.topic_configs
    alter(cluster, topic(), incremental=False)
    assert {} == cluster.benches[1].broker.state.topic_configs
    cluster.produce(1)
    assert 1 == log_of(cluster, 1).end_offset


def test_broker_that_starts_again_has_them(cluster: Cluster) -> None:
    alter(cluster, topic(*have(min_insync_replicas="3")))
    cluster.crash(1)
    cluster.start(1)
    assert 3 == min_isr(cluster, 1)


def test_broker_waits_with_its_registration_until_they_could_be_read(cluster: Cluster) -> None:
    """Else it would lead, and take a produce that its topic forbids."""
    alter(cluster, topic(*have(min_insync_replicas="3")))
    cluster.crash(1)
    bench = cluster.start(1)
    bench.connect(0)
    bench.lose(config_path("t"), happened=False)
    bench.connect(cluster.new_session())
    assert not bench.broker.state.registered
    cluster.pass_ms(600)
    assert bench.broker.state.registered


def test_change_during_a_reading_is_read_once_more(cluster: Cluster) -> None:
    bench = cluster.benches[1]
    bench.hold(CONFIG_TOPICS)
    alter(cluster, topic(*have(min_insync_replicas="3")))
    alter(cluster, topic(*have(min_insync_replicas="2")))
    bench.release()
    cluster.settle()
    assert 2 == min_isr(cluster, 1)


def test_lost_reading_is_made_again_after_a_while(cluster: Cluster) -> None:
    bench = cluster.benches[1]
    bench.lose(CONFIG_TOPICS, happened=False)
    alter(cluster, topic(*have(min_insync_replicas="3")))
    assert {} == bench.broker.state.topic_configs
    cluster.pass_ms(600)
    assert 3 == min_isr(cluster, 1)


def test_unclean_election_of_a_topic_elects_as_soon_as_it_is_allowed(cluster: Cluster) -> None:
    """Source: KIP-106; Kafka, TopicUncleanLeaderElectionEnable: the controller looks at once."""
    cluster.crash(1)
    cluster.produce(2)
    cluster.crash(2)
    cluster.start(1)
    assert (-1, (2,)) == (cluster.state().leader, cluster.state().isr)
    alter(cluster, topic(*have(unclean_leader_election_enable="true")), via=1)
    assert (1, (1,)) == (cluster.state().leader, cluster.state().isr)
    assert -1 == cluster.state(U).leader


def test_retention_of_a_topic_deletes_its_files_and_no_other_topics(cluster: Cluster) -> None:
    for crc in (1, 2, 3):
        cluster.produce(1, crc=crc)
    alter(cluster, topic(*have(retention_bytes="62")))
    cluster.pass_ms(300)
    assert (2, 0) == (log_of(cluster, 1).start_offset, log_of(cluster, 1, U).start_offset)


def test_compaction_of_a_topic_cleans_its_logs_and_no_other_topics(cluster: Cluster) -> None:
    cluster.produce(1)
    log_of(cluster, 1).cleaned = [Cleaned(upto=1, size=1, read=1)]
    alter(cluster, topic(*have(cleanup_policy="compact")))
    cluster.pass_ms(300)
    assert log_of(cluster, 1).cleans and not log_of(cluster, 1, U).cleans
    alter(cluster, topic(*have(cleanup_policy="delete")))
    cluster.pass_ms(300)
    count = len(log_of(cluster, 1).cleans)
    cluster.pass_ms(300)
    assert count == len(log_of(cluster, 1).cleans)


def test_topic_that_is_compacted_alone_keeps_its_files_however_many_they_are() -> None:
    """Source: Kafka, LogConfig: retention is of cleanup.policy=delete."""
    made = Cluster("kip380", brokers=(1, 2), retention_check_ms=100, retention_bytes=1)
    made.create(replicas=(1, 2))
    alter(made, topic(*have(cleanup_policy="compact")))
    for _ in range(3):
        made.produce(1)
    made.pass_ms(300)
    assert 0 == log_of(made, 1).start_offset
    alter(made, topic(*have(cleanup_policy="compact,delete")))
    made.pass_ms(300)
    assert log_of(made, 1).start_offset > 0


def test_log_begins_its_files_as_its_topic_has_it_from_its_creation_on(cluster: Cluster) -> None:
    alter(cluster, topic(*have(segment_bytes="99", segment_ms="7")))
    assert ((99, 7), None) == (log_of(cluster, 1).configured, log_of(cluster, 1, U).configured)
    alter(cluster, topic(), incremental=False)
    assert (1_000_000, 0) == log_of(cluster, 1).configured
    create(cluster, new_topic(("segment.bytes", "88")))
    cluster.delete("u")
    cluster.delete("t")
    create(cluster, new_topic(("segment.bytes", "88")))
    assert (88, 0) == log_of(cluster, 1, U).configured


def test_settings_of_a_deleted_topic_do_not_hold_for_the_next_of_its_name(cluster: Cluster) -> None:
    alter(cluster, topic(*have(min_insync_replicas="3")))
    cluster.delete("t")
    cluster.create("t", replicas=(1, 2))
    assert {} == cluster.benches[1].broker.state.topic_configs
    cluster.produce(1)
    assert 1 == log_of(cluster, 1).end_offset


def test_settings_altered_while_their_topic_is_deleted_do_not_hold_for_the_next(cluster: Cluster) -> None:
    """The deletion has looked for them before they were written, and leaves them there: seed 228 of the search."""
    alter(cluster, topic(*have(min_insync_replicas="3")))
    written = cluster.zk.nodes.pop(config_path("t"))
    cluster.delete("t")
    cluster.zk.nodes[config_path("t")] = written
    assert 3 == min_isr(cluster, 1)
    create(cluster, replace(new_topic(), topic="t"))
    assert config_path("t") not in cluster.zk.nodes
    assert [{}, {}] == [bench.broker.state.topic_configs for bench in cluster.benches.values()]
    leader = cluster.state().leader
    cluster.produce(leader)
    assert 1 == log_of(cluster, leader).end_offset


def test_what_cannot_be_read_is_left_out_and_stops_no_other_topic(cluster: Cluster) -> None:
    cluster.zk.put(config_path("t"), b"\xff")
    cluster.zk.put(config_path("a b"), b"{}")
    alter(cluster, topic(*have(min_insync_replicas="3"), name="u"))
    bench = cluster.benches[1]
    assert ["u"] == list(bench.broker.state.topic_configs)
    assert {config_path("t"), config_path("a b")} == {v["path"] for v in bench.observed("unreadable-metadata")}
    cluster.crash(1)
    assert ["u"] == list(cluster.start(1).broker.state.topic_configs)


def test_reading_that_a_later_one_has_overtaken_is_made_again() -> None:
    """Source: many settings are read part by part, and a later reading may have fewer of them."""
    made = Cluster("kip380", brokers=(1, 2), together=Together(ask_ops_max=4))
    for name in "tuvw":
        made.create(name, replicas=(1, 2))
        alter(made, topic(*have(min_insync_replicas="3"), name=name))
    bench = made.benches[1]
    bench.hold(config_path("w"))
    alter(made, topic(*have(flush_messages="5"), name="t"))
    assert bench.held, "the part of the reading that has topic w"
    for name in "uvw":
        made.delete(name, via=2)
    alter(made, topic(*have(min_insync_replicas="2"), name="t"))
    assert 2 == min_isr(made, 1)
    bench.release()
    made.settle()
    assert (["t"], 2) == (list(bench.broker.state.topic_configs), min_isr(made, 1))
