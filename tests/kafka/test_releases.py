"""The table of releases: its names, the protocol that each entry models, and the names that it refuses."""

from __future__ import annotations

import pytest

from harness.model import UsageError
from targets.broker.core.rules import PROTOCOLS
from targets.kafka.releases import (
    FORMAT,
    SPEAKS,
    Entry,
    allowed,
    entries,
    older,
    release_of,
    releases,
    spoken_entry,
    version,
)

ASKED_FOR = ("0.10.2.2", "0.11.0.3", "1.1.1", "2.0.0", "2.0.1", "2.1.1", "2.8.2", "3.9.1")


def test_table_has_the_releases_oldest_first() -> None:
    assert ASKED_FOR == tuple(releases())
    assert sorted(releases(), key=version) == list(releases())


@pytest.mark.parametrize("name", ASKED_FOR)
def test_release_has_a_protocol_of_ours_and_its_own_coordinates(name: str) -> None:
    release = releases()[name]
    assert release.models in PROTOCOLS
    assert release.coordinates[0].endswith(f":{name}")
    assert allowed(release.speaks) == older(allowed(release.speaks), release.models) or release.models == "kip279"


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("0.10.2.2", "hw"),
        ("0.11.0.3", "kip101"),
        ("1.1.1", "kip101"),
        ("1.1.1@0.10.2", "hw"),
        ("2.0.0", "kip279"),
        ("2.0.1", "kip279-2.0.1"),
        ("2.1.1", "kip320"),
        ("2.1.1@1.1", "kip101"),
        ("2.1.1@2.0", "kip279-2.0.1"),
        ("2.8.2", "kip380"),
        ("3.9.1", "kip380"),
        ("3.9.1@0.10.2", "hw"),
        ("3.9.1@1.1", "kip101"),
    ],
)
def test_entry_models_what_release_and_protocol_version_leave_it(name: str, models: str) -> None:
    assert models == entries()[name].models


def test_entry_models_less_when_its_release_can_less_than_its_version_allows() -> None:
    old = Entry(name="x", release=release_of("2.0.0"), properties={"inter.broker.protocol.version": "2.0"})
    assert "kip279" == old.models


def test_variants_stand_behind_their_release() -> None:
    names = list(entries())
    assert names.index("3.9.1") + 1 == names.index("3.9.1@0.10.2")


@pytest.mark.parametrize(
    ("speaks", "protocol"),
    [("0.10.2", "hw"), ("0.10.2-IV0", "hw"), ("0.11.0", "kip101"), ("1.0", "kip101"), ("2.7-IV1", "kip380")],
)
def test_protocol_version_allows_the_newest_protocol_since_then(speaks: str, protocol: str) -> None:
    assert protocol == allowed(speaks)


def test_protocol_version_older_than_the_table_is_refused() -> None:
    with pytest.raises(UsageError, match=r"=0\.9: older than any release here; expected 0\.10\.2"):
        allowed("0.9")


def test_version_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match=r"version 'new': expected numbers and dots"):
        version("new")


def test_unknown_release_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"unknown release of Apache Kafka '3\.9\.2'.*Did you mean '3\.9\.1'"):
        release_of("3.9.2")


@pytest.mark.parametrize(("name", "properties", "models"), [
    ("3.9.1@2.1", {SPEAKS: "2.1"}, "kip320"),
    ("0.11.0.3@0.10.2", {SPEAKS: "0.10.2", FORMAT: "0.10.2"}, "hw"),
])  # fmt: skip
def test_a_release_may_speak_as_an_older_one_without_a_column_of_its_own(
    name: str, properties: dict[str, str], models: str
) -> None:
    """Source: Apache Kafka's upgrade notes: inter.broker.protocol.version first stays as it was."""
    found = spoken_entry(name)
    assert found is not None
    assert (properties, models) == (found.properties, found.models)
    assert name not in entries()


def test_a_column_of_the_tables_is_what_it_is_there() -> None:
    assert entries()["2.1.1@1.1"] is spoken_entry("2.1.1@1.1")
    assert spoken_entry("no release") is None


@pytest.mark.parametrize("name", ["0.11.0.3@2.1", "9.9@2.1", "3.9.1@0.8", "3.9.1@new"])
def test_a_release_that_cannot_speak_so_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        spoken_entry(name)
