"""The target `kafka`: its protocols, the rules that may be set, and the launch of a node."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.ability import OF_TARGETS, Ability
from harness.java import Java
from harness.launch import Runtime
from harness.model import UsageError
from harness.target.found import target as target_of
from harness.target.target import Target
from harness.target.wire import Word
from targets.kafka import elections
from targets.kafka import target as module
from targets.kafka.releases import releases
from targets.kafka.target import TARGET
from tests.kafka import cupboard
from tests.kafka.test_properties import node


def test_table_of_targets_has_it() -> None:
    found: Target = target_of("kafka")
    assert TARGET is found


def test_protocols_are_releases_and_variants_and_say_what_they_model() -> None:
    protocols = TARGET.protocols()
    assert releases().keys() < protocols.keys()
    assert {"release": "3.9.1", "inter.broker.protocol.version": "1.1"} == protocols["3.9.1@1.1"]
    traits = TARGET.traits("3.9.1@1.1", ())
    assert ("kip101", "kafka:3.9.1@1.1") == (traits.models, traits.named)


def test_releases_give_ids_to_producers_as_soon_as_their_batches_can_carry_them() -> None:
    """Source: KIP-98, in 0.11.0; an older protocol version has message sets."""
    none = {name for name in TARGET.protocols() if not TARGET.traits(name, ()).idempotence}
    assert {"0.10.2.2", "1.1.1@0.10.2", "3.9.1@0.10.2"} == none


def test_every_release_refuses_a_second_registration_and_deletes_topics_later() -> None:
    found = [TARGET.traits(name, ()) for name in TARGET.protocols()]
    assert {(True, True)} == {(traits.refuses_old_membership, traits.deletes_later) for traits in found}


def test_rules_take_a_property_and_what_it_models_follows() -> None:
    changes = ("inter.broker.protocol.version=1.1", "min.insync.replicas=2")
    rules, traits = TARGET.rules("2.1.1", changes), TARGET.traits("2.1.1", changes)
    assert ("2", "2.1.1") == (rules["min.insync.replicas"], rules["release"])
    assert ("kip101", "") == (traits.models, traits.named)


@pytest.mark.parametrize(
    ("name", "client"), [("0.10.2.2", "librdkafka"), ("0.11.0.3", "raw"), ("3.9.1@0.10.2", "raw")]
)
def test_client_is_one_that_the_release_understands(name: str, client: str) -> None:
    assert client == TARGET.clients.own(TARGET.rules(name, []))


@pytest.mark.parametrize("change", ["truncate_to", "x=1", "a.b=1\nc.d=2", "Log.dirs=x"])
def test_rule_that_is_no_property_is_refused(change: str) -> None:
    with pytest.raises(UsageError, match="expected a broker's property"):
        TARGET.rules("2.1.1", [change])


@pytest.mark.parametrize("name", ["broker.id", "log.dirs", "advertised.listeners"])
def test_rule_that_the_harness_owns_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"the harness sets {name} itself"):
        TARGET.rules("2.1.1", [f"{name}=7"])


def test_rules_of_an_unknown_release_are_refused() -> None:
    with pytest.raises(UsageError, match=r"unknown release of Apache Kafka '4\.1\.0'"):
        TARGET.rules("4.1.0", [])


@pytest.mark.parametrize(
    ("protocol", "api"),
    [
        ("0.10.2.2", "fetch"),
        ("3.9.1@0.10.2", "fetch"),
        ("0.11.0.3", "epoch-question"),
        ("2.1.1", "epoch-question"),
        ("3.9.1@1.1", "epoch-question"),
        ("2.8.2", "fetch"),
        ("3.9.1", "fetch"),
    ],
)
def test_first_question_is_that_of_the_protocol_version(protocol: str, api: str) -> None:
    assert TARGET.wire is not None
    assert api == TARGET.wire.stands(TARGET.rules(protocol, []))[Word.QUESTION].api


def test_launch_starts_the_release_from_the_cache_with_its_properties(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = cupboard.release(tmp_path, "1.1.1")
    cupboard.repository(tmp_path / "cache")
    java = Java(home=tmp_path, executable=tmp_path / "java", version=17, source="test")
    module._java.cache_clear()
    monkeypatch.setattr(module, "find_java", lambda: java)
    monkeypatch.setattr(module, "cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(module, "release_of", {"1.1.1": made}.__getitem__)
    launch = TARGET.launch(node(), "1.1.1", TARGET.rules("1.1.1", ["min.insync.replicas=2"]))
    module._java.cache_clear()
    assert (str(tmp_path / "java"), "-Xmx1m") == launch.argv[:2]
    assert ":".join(str(tmp_path / "cache" / path) for path in sorted(cupboard.CONTENTS)) in launch.argv
    assert {"server.properties", "log4j.properties"} == launch.files.keys()
    lines = launch.files["server.properties"].splitlines()
    assert "min.insync.replicas=2" in lines
    assert not [line for line in lines if line.startswith("release=")]  # it is no property of a broker


def test_launch_takes_java_and_jars_where_a_host_has_them_inside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = cupboard.release(tmp_path, "1.1.1")
    cupboard.repository(tmp_path / "cache")
    monkeypatch.setattr(module, "find_java", lambda: pytest.fail("this machine's Java is not inside"))
    monkeypatch.setattr(module, "cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(module, "release_of", {"1.1.1": made}.__getitem__)
    spec = node()
    spec = replace(spec, place=replace(spec.place, java="/opt/java", library="/library"))
    launch = TARGET.launch(spec, "1.1.1", TARGET.rules("1.1.1", []))
    assert (Runtime.JAVA, tmp_path / "cache") == (launch.runtime, launch.library)
    assert ("/opt/java", "-Xmx1m") == launch.argv[:2]
    assert ":".join(f"/library/{path}" for path in sorted(cupboard.CONTENTS)) in launch.argv


def test_kafka_tells_nothing_itself() -> None:
    assert not TARGET.traits("2.1.1", ()).emits_events


def test_partitions_cannot_be_removed() -> None:
    """V3's path of partitions to remove was never built."""
    assert {Ability.REMOVE} == OF_TARGETS - TARGET.abilities
    with pytest.raises(UsageError, match=r"remove partitions \[1, 2\] of orders: no release of Apache Kafka can"):
        elections.remove(Unused(), "orders", [1, 2])


class Unused:
    """ZooKeeper, of which nothing is asked."""

    def read(self, path: str) -> bytes | None:
        raise AssertionError(path)

    def update(self, path: str, change: object) -> None:
        raise AssertionError(path, change)
