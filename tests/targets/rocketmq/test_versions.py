"""Each version is a release and a set of settings; each release is the jars that its lock pins."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from harness.ability import OF_TARGETS, Ability
from harness.model import UsageError
from harness.scenario.file import TOPIC
from harness.target.operator import requests_of
from harness.target.traits import Epochs, Seen
from harness.target.words import OF_TARGETS as ALL_WORDS
from targets.rocketmq import commands
from targets.rocketmq.operating import RocketOperator
from targets.rocketmq.target import TARGET
from targets.rocketmq.versions import NEWEST, RELEASES, SAFE, VERSIONS, release_of


# --- versions --------------------------------------------------------------------------------------------------
def test_every_release_has_three_versions_from_the_oldest_to_the_newest() -> None:
    assert [f"{name}{kind}" for name in RELEASES for kind in ("", "-async", "-defaults")] == [*TARGET.protocols()]
    numbers = [tuple(map(int, name.split("."))) for name in RELEASES]
    assert sorted(numbers) == numbers
    assert NEWEST == [*RELEASES][-1]


@pytest.mark.parametrize("version", VERSIONS)
def test_version_is_its_release_and_its_settings(version: str) -> None:
    name, _, kind = version.partition("-")
    flush = {"async": {"flushDiskType": "ASYNC_FLUSH"}}.get(kind, {})
    settings = {} if kind == "defaults" else {**SAFE, **flush}
    assert {"release": name, **settings} == TARGET.rules(version, ())
    assert (name, f"{name}.lock") == (release_of(version).name, release_of(version).lock.name)


def test_safest_settings_flush_and_wait_for_two_and_for_all_of_the_set() -> None:
    assert ("SYNC_FLUSH", "true", "2") == tuple(
        SAFE[name] for name in ("flushDiskType", "allAckInSyncStateSet", "minInSyncReplicas")
    )


@pytest.mark.parametrize("version", ["5.4.0", "", "5.5.0-", "async", "5.5.0-async-async", "v5.5.0"])
def test_other_version_is_refused_with_those_that_there_are(version: str) -> None:
    for ask in (release_of, lambda name: TARGET.rules(name, ())):
        with pytest.raises(UsageError, match=f"unknown version of RocketMQ '{version}': expected one of 5.3.3, "):
            ask(version)


def test_rules_of_a_version_are_not_changed_by_those_that_are_asked_for() -> None:
    before = dict(VERSIONS["5.5.0"])
    changed = TARGET.rules("5.5.0", ("inSyncReplicas=3", "slaveTimeout=1"))
    assert {**before, "inSyncReplicas": "3", "slaveTimeout": "1"} == changed
    assert before == VERSIONS["5.5.0"] == TARGET.rules("5.5.0", ())


def test_usual_versions_are_versions() -> None:
    assert {*commands.USUAL_VERSIONS} <= {*VERSIONS}


# --- locks -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", RELEASES)
def test_lock_pins_each_jar_once_by_its_checksum(name: str) -> None:
    release = RELEASES[name]
    lines = release.lock.read_text().splitlines()
    jars = release.files
    assert [f"{jar.sha256}  {jar.size}  {jar.path}" for jar in jars] == lines
    paths = [jar.path for jar in jars]
    assert len(paths) == len({*paths})
    for jar in jars:
        group, artifact, version, file = PurePosixPath(jar.path).parts[-4:]
        assert file.startswith(f"{artifact}-{version}") and file.endswith(".jar") and group
        assert 64 == len(jar.sha256) and {*jar.sha256} <= {*"0123456789abcdef"}
        assert 100 < jar.size < 100_000_000
        assert f"https://repo.maven.apache.org/maven2/{jar.path}" == jar.url


@pytest.mark.parametrize("name", RELEASES)
def test_lock_has_the_jars_of_its_release_and_one_version_of_each_artifact(name: str) -> None:
    paths = [jar.path for jar in RELEASES[name].files]
    found = {PurePosixPath(path).parts[:-1] for path in paths}
    assert len(found) == len({artifact[:-1] for artifact in found})
    for part in ("broker", "controller", "namesrv", "remoting", "store", "common"):
        assert f"org/apache/rocketmq/rocketmq-{part}/{name}/rocketmq-{part}-{name}.jar" in paths
    # These two have numbers of their own.
    own = {"rocketmq-proto", "rocketmq-rocksdb"}
    of_rocketmq = {artifact[3]: artifact[4] for artifact in found if artifact[:3] == ("org", "apache", "rocketmq")}
    assert {name} == {version for artifact, version in of_rocketmq.items() if artifact not in own}


# --- traits ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("version", VERSIONS)
def test_system_is_polled_and_keeps_its_epochs_beside_its_records(version: str) -> None:
    found = TARGET.traits(version, ())
    assert (Seen.POLLED, Epochs.BESIDE, False, "the controller") == (
        found.seen,
        found.epochs,
        found.tells_flushes,
        found.metadata,
    )
    assert (f"rocketmq:{version}", "rocketmq") == found.names
    assert "" == TARGET.traits(version, ("slaveTimeout=1",)).named
    # Heartbeats are missed for 10 s; a slave dials after 5, and asks where its master is after 10.
    assert found.election_s > 10
    assert found.catch_up_s > 10 + 5


def test_what_it_can_be_asked_for_is_what_its_operator_has_methods_for() -> None:
    assert {Ability.ELECT} == requests_of(RocketOperator) == TARGET.abilities & OF_TARGETS


def test_every_word_of_scenarios_has_a_meaning_or_a_reason() -> None:
    assert {*ALL_WORDS} == {*TARGET.words}


def test_what_brokers_print_of_bytes_is_not_read() -> None:
    for line in ("12:00:00.000 WARN  Log append failed", "INFO  RocketmqStore truncate dirty files to 442", ""):
        assert TARGET.printed(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "01:18:16.690 ERROR RocketmqStore Error occurred when force data to disk.",
        "01:18:16.690 ERROR RocketmqStore Error occurred when append message to mappedFile.",
        "java.lang.InternalError: a fault occurred in a recent unsafe memory access operation in compiled code",
        "java.lang.InternalError: a fault occurred in an unsafe memory access operation",
        "01:18:16.690 ERROR RocketmqStore Failed to flush /store/checkpoint",
    ],
)
def test_broker_whose_disk_failed_it_says_so(line: str) -> None:
    found = TARGET.printed(line)
    assert found is not None
    assert ("failed", TOPIC) == (found.what, found.topic)
