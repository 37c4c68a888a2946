"""The properties and the command line that a broker of Apache Kafka starts with."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.launch import Address, Place
from harness.model import UsageError
from harness.target.settings import MessageFormat, Settings
from harness.target.target import NodeSpec
from targets.kafka.properties import OWNED, command_line, server_properties
from targets.kafka.releases import Entry, entries


def node(settings: Settings | None = None) -> NodeSpec:
    def at(port: int, host: str = "10.0.0.2") -> Address:
        return Address(host=host, port=port)

    place = Place(
        data_dir="/data",
        conf_dir="/conf",
        python="python3",
        client=at(9092),
        internal=at(9093),
        client_outside=at(19092, "192.168.0.9"),
        internal_outside=at(19093, "192.168.0.9"),
    )
    return NodeSpec(
        name="A",
        broker_id=7,
        place=place,
        advertised_internal=at(4711, "10.0.0.1"),
        services=(at(2181, "10.0.0.1"),),
        folder=Path("suite/run"),
        collector=at(1),
        settings=settings or Settings(),
    )


def properties(entry: str | Entry = "3.9.1", settings: Settings | None = None) -> dict[str, str]:
    chosen = entries()[entry] if isinstance(entry, str) else entry
    lines = server_properties(node(settings), chosen).splitlines()
    found = dict(line.split("=", 1) for line in lines)
    assert len(lines) == len(found), "a property that stands twice is decided by chance"
    return found


def test_broker_listens_twice_and_advertises_the_fabric_to_brokers() -> None:
    found = properties()
    assert "CLIENT://10.0.0.2:9092,INTERNAL://10.0.0.2:9093" == found["listeners"]
    assert "CLIENT://192.168.0.9:19092,INTERNAL://10.0.0.1:4711" == found["advertised.listeners"]
    assert "INTERNAL" == found["inter.broker.listener.name"]


def test_broker_has_its_id_its_disk_and_its_own_way_to_zookeeper() -> None:
    found = properties()
    assert ("7", "/data", "10.0.0.1:2181/suite-run") == (
        found["broker.id"],
        found["log.dirs"],
        found["zookeeper.connect"],
    )


@pytest.mark.parametrize("entry", entries())
def test_nobody_is_elected_unasked_or_out_of_the_isr(entry: str) -> None:
    found = properties(entry)
    names = ("unclean.leader.election.enable", "auto.leader.rebalance.enable", "controlled.shutdown.enable")
    assert {"false"} == {found[name] for name in names}


def test_older_protocol_version_of_a_variant_is_set_with_its_message_format() -> None:
    found = properties("3.9.1@0.10.2")
    assert ("0.10.2", "0.10.2") == (found["inter.broker.protocol.version"], found["log.message.format.version"])


@pytest.mark.parametrize(("entry", "timeout"), [("0.10.2.2", "3000"), ("0.11.0.3", "3000"), ("1.1.1", None)])
def test_request_is_given_up_soon_only_where_a_release_waits_for_it(entry: str, timeout: str | None) -> None:
    assert timeout == properties(entry).get("request.timeout.ms")


@pytest.mark.parametrize("entry", entries())
def test_broker_that_is_stopped_has_asked_its_last_when_its_time_is_up(entry: str) -> None:
    """It asks three times, by default with 5 s between: it outlived SIGTERM by 10 s."""
    found = properties(entry, Settings(controlled_shutdown_ms=5_000))
    assert "true" == found["controlled.shutdown.enable"]
    tries, rest_ms = (int(found[f"controlled.shutdown.{name}"]) for name in ("max.retries", "retry.backoff.ms"))
    assert (3, 1_666) == (tries, rest_ms)
    assert tries * rest_ms <= 5_000


def test_settings_of_a_scenario_are_kafkas_properties() -> None:
    asked = Settings(unclean_election=True, min_isr=2, replica_lag_ms_max=1500)
    found = properties("2.0.1", asked)
    assert "true" == found["unclean.leader.election.enable"]
    assert "2" == found["min.insync.replicas"]
    assert "1500" == found["replica.lag.time.max.ms"]
    assert "log.message.format.version" not in found


def test_entry_s_own_property_wins_over_the_scenario_s() -> None:
    entry = Entry(name="x", release=entries()["2.0.1"].release, properties={"min.insync.replicas": "3"})
    assert "3" == properties(entry, Settings(min_isr=2))["min.insync.replicas"]


def test_batches_without_epochs_are_an_older_message_format() -> None:
    found = properties("2.8.2", Settings(message_format=MessageFormat.WITHOUT_EPOCHS))
    assert "0.10.2" == found["log.message.format.version"]


def test_batches_without_epochs_are_refused_where_a_release_writes_no_others() -> None:
    asked = Settings(message_format=MessageFormat.WITHOUT_EPOCHS)
    with pytest.raises(UsageError, match=r"3\.9\.1: no message format without epochs at protocol version 3\.9"):
        properties("3.9.1", asked)
    assert "0.10.2" == properties("3.9.1@1.1", asked)["log.message.format.version"]


def test_nothing_that_the_harness_owns_is_among_what_may_differ() -> None:
    assert OWNED <= properties().keys()
    assert all(not OWNED & entry.properties.keys() for entry in entries().values())


def test_command_line_names_every_jar_and_the_files_where_the_broker_sees_them() -> None:
    found = command_line(Path("/java"), ["-Xmx256m"], [Path("/a.jar"), Path("/b.jar")], "/conf")
    assert ("/java", "-Xmx256m", "-Dlog4j.configuration=file:/conf/log4j.properties") == found[:3]
    assert ("-cp", "/a.jar:/b.jar", "kafka.Kafka", "/conf/server.properties") == found[3:]
