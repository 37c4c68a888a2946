"""Each version is a release and how often it flushes; a server is started by the program that was built."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from harness.ability import OF_TARGETS, Ability
from harness.launch import Address, Launch, Place
from harness.model import UsageError
from harness.target.operator import requests_of
from harness.target.target import NodeSpec
from harness.target.traits import Commit, Epochs, Promise, Seen, Traits
from targets.nats.building import why_not
from targets.nats.needs import ROWS
from targets.nats.operating import NatsOperator
from targets.nats.target import TARGET
from targets.nats.versions import HASH, RELEASES, VERSIONS, library, program_of, release_of

ALWAYS = [version for version in VERSIONS if version.endswith("-always")]
OTHERS = [version for version in VERSIONS if not version.endswith("-always")]
BUILT = b"a server"


def traits(version: str) -> Traits:
    return TARGET.traits(version, ())


# --- versions --------------------------------------------------------------------------------------------------
def test_every_release_has_two_versions_from_the_oldest_to_the_newest() -> None:
    assert [each for name in RELEASES for each in (name, f"{name}-always")] == [*TARGET.protocols()]
    numbers = [tuple(map(int, name.split("."))) for name in RELEASES]
    assert sorted(numbers) == numbers


@pytest.mark.parametrize("version", VERSIONS)
def test_version_is_its_release_and_a_sync_interval(version: str) -> None:
    sync = "always" if version in ALWAYS else "2m"
    assert {"release": version.removesuffix("-always"), "sync_interval": sync} == TARGET.rules(version, ())
    assert version.removesuffix("-always") == release_of(version).name
    assert f"github.com/nats-io/nats-server/v2@v{version.removesuffix('-always')}" == release_of(version).module


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_checksum_is_one_of_go_s(release: object) -> None:
    checksum = getattr(release, "checksum", "")
    assert checksum.startswith("h1:")
    assert 1 == [each.checksum for each in RELEASES.values()].count(checksum)


@pytest.mark.parametrize("version", ["2.15.2", "", "2.15.3-", "always", "2.15.3-always-always", "v2.15.3"])
def test_other_version_is_refused_with_those_that_there_are(version: str) -> None:
    for ask in (release_of, lambda name: TARGET.rules(name, ()), traits):
        with pytest.raises(UsageError, match=f"unknown version of NATS '{version}': expected one of 2.12.1, "):
            ask(version)


@pytest.mark.parametrize("ask", [TARGET.rules, TARGET.traits])
def test_rule_is_refused_since_variants_are_versions(ask: object) -> None:
    assert callable(ask)
    with pytest.raises(UsageError) as raised:
        ask("2.15.3", ("sync_interval=1s", "x=y"))
    said = f"rule 'sync_interval=1s': nats has none; expected a version, one of {', '.join(VERSIONS)}"
    assert said == str(raised.value)


# --- traits ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("version", "promise"),
    [*((version, Promise.MEMORY) for version in OTHERS), *((version, Promise.DISK) for version in ALWAYS)],
)
def test_promise_is_the_disk_only_where_every_write_is_flushed(version: str, promise: Promise) -> None:
    found = traits(version)
    assert (promise, Commit.QUORUM, f"nats:{version}") == (found.promise, found.commit, found.named)
    assert (f"nats:{version}", "nats") == found.names


def test_versions_differ_in_nothing_else() -> None:
    rest = {
        tuple((key, value) for key, value in traits(version).as_text().items() if key not in ("promise", "named"))
        for version in VERSIONS
    }
    assert 1 == len(rest)


def test_system_is_a_raft_group_that_is_polled_and_whose_offsets_begin_with_1() -> None:
    found = traits("2.15.3")
    assert (False, 1, Seen.POLLED, Epochs.BESIDE) == (found.dense, found.first_offset, found.seen, found.epochs)
    assert (False, False, "") == (found.emits_events, found.tells_flushes, found.models)
    # An election begins after up to 9 s, a leader steps down after 10, and a catch-up is begun anew after 10.
    assert found.election_s > 9 + 10
    assert found.catch_up_s > 10


def test_what_it_can_be_asked_for_is_what_its_operator_has_methods_for() -> None:
    assert {Ability.ELECT, Ability.MOVE, Ability.REMOVE, Ability.DEPOSE} == requests_of(NatsOperator)
    assert requests_of(NatsOperator) | {Ability.CONTROLLER} == TARGET.abilities & OF_TARGETS


# --- launch ----------------------------------------------------------------------------------------------------
@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a library that has a program for each release."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for release in RELEASES.values():
        program = program_of(release, library())
        program.parent.mkdir(parents=True)
        program.write_bytes(BUILT)
        program.with_name(HASH).write_text(hashlib.sha256(BUILT).hexdigest())
    return library()


def launched(version: str, there: str = "") -> Launch:
    address = Address(host="127.0.0.1", port=2001)
    place = Place(
        data_dir="/data/A",
        conf_dir="/conf/A",
        python="python",
        client=address,
        internal=Address(host="127.0.0.1", port=2002),
        client_outside=Address(host="10.0.0.1", port=2001),
        internal_outside=address,
        java="java",
        library=there,
    )
    spec = NodeSpec(
        name="A",
        broker_id=1,
        place=place,
        advertised_internal=address,
        services=(),
        folder=Path("/results/suite/run"),
        collector=address,
        peers={"B": Address(host="127.0.0.1", port=3001)},
    )
    return TARGET.launch(spec, version, TARGET.rules(version, ()))


@pytest.mark.parametrize("version", VERSIONS)
def test_server_is_started_by_its_release_s_program_with_its_file(programs: Path, version: str) -> None:
    launch = launched(version)
    program = programs / version.removesuffix("-always") / "nats-server"
    assert (str(program), "-c", "/conf/A/nats.conf") == launch.argv
    file = launch.files["nats.conf"]
    assert ["nats.conf"] == [*launch.files]
    sync = "always" if version in ALWAYS else "2m"
    for line in (
        f'sync_interval: "{sync}"',
        'listen: "127.0.0.1:2001"',
        'listen: "127.0.0.1:2002"',
        'store_dir: "/data/A"',
        "routes: [ nats-route://127.0.0.1:3001 ]",
    ):
        assert line in file
    assert ({"GOMEMLIMIT": "200MiB"}, programs) == (launch.env, launch.library)


@pytest.mark.usefixtures("programs")
def test_host_with_a_copy_of_the_library_has_the_program_there() -> None:
    assert "/there/2.12.1/nats-server" == launched("2.12.1-always", "/there").argv[0]


@pytest.mark.parametrize("as_", ["gone", "another"])
def test_program_that_is_another_is_not_started(programs: Path, as_: str) -> None:
    program = programs / "2.15.3" / "nats-server"
    program.unlink()
    if as_ == "another":
        program.write_bytes(BUILT + b"!")
    why = why_not(RELEASES["2.15.3"], programs)
    for version in ("2.15.3", "2.15.3-always"):
        with pytest.raises(UsageError) as raised:
            launched(version)
        assert f"A: {why}" == str(raised.value)
        with pytest.raises(UsageError) as raised:
            TARGET.require(TARGET.rules(version, ()))
        assert f"nats: {why}" == str(raised.value)
    assert "`fencepost fetch nats:2.15.3` builds it" in why
    TARGET.require(TARGET.rules("2.14.10", ()))
    assert launched("2.14.10").argv


@pytest.mark.parametrize("name", RELEASES)
def test_row_of_a_release_is_lacking_until_its_program_is_there(programs: Path, name: str) -> None:
    row = ROWS[f"nats-{name}"]
    assert "" == row.why_not()
    program = programs / name / "nats-server"
    program.unlink()
    assert f"{program} is not there" == row.why_not()
    assert f"fencepost fetch nats:{name}" in row.install


def test_every_release_and_the_library_have_a_row() -> None:
    assert {*(f"nats-{name}" for name in RELEASES), "nats-py"} == {*ROWS}
