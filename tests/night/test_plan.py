"""A plan is read as it was written; a wrong key or value is an error that says where and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model import UsageError
from harness.night.plan import Play, default_text, parse_plan, read_plan
from harness.night.schedule import Role, schedule_of
from harness.target.found import also_in
from tests.target.own import make_target

PLAY = '[[play]]\nhosts = ["sim"]\nprotocols = ["kip380"]\n'
CANARY = '[[canary]]\nhosts = ["sim"]\nprotocols = ["hw"]\n'


def test_default_plan_has_every_host_canaries_that_must_fail_and_a_release() -> None:
    plan = read_plan()
    assert ("sim", "local", "docker") == plan.hosts
    broken = {("broker", "hw"), ("broker", "kip101"), ("fluss", "0.9.1"), ("nats", "2.15.3")}
    broken |= {("rocketmq", "5.5.0")}
    assert broken == {one for each in plan.canaries for one in each.targets}
    assert {("broker", "kip380"), ("kafka", "3.9.1")} == {one for each in plan.plays for one in each.targets}
    assert default_text() == plan.text
    units = schedule_of(plan, (), seed=1, seconds=8 * 3600.0, folder=Path(), power_tier=None)
    assert {"sim", "local", "docker"} == {unit.host for unit in units if unit.role is Role.CANARY}


def test_play_has_what_was_written_and_defaults_for_the_rest() -> None:
    text = '[[play]]\nhosts = ["local"]\nprotocols = ["hw"]\nreleases = ["3.9.1"]\n'
    text += 'workloads = ["drawn", "append"]\nshare = 2.5\n'
    (play,) = parse_plan(text, "p.toml").plays
    targets = (("broker", "hw"), ("kafka", "3.9.1"))
    assert Play(hosts=("local",), targets=targets, workloads=("drawn", "append"), share=2.5) == play


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("play = [", "p.toml: Invalid value (at end of document); expected a plan of a night"),
        ("", "p.toml: no [[play]]; expected at least one"),
        (f"{PLAY}chaos = 60\n", "play 1, key chaos = 60: expected a play without narrow, on hosts other than sim"),
        (f"{PLAY}chaos = 0\n", "play 1, key chaos = 0: expected a whole number from 1 to 3600"),
        (f"dsk_mb = 3\n{PLAY}", "p.toml: no key 'dsk_mb'; expected one of play, canary, disk_mb, seeds_a_minute"),
        (
            f"{PLAY}worklods = []\n",
            "p.toml: play 1: no key 'worklods'; expected one of hosts, protocols, releases",
        ),
        (f"{PLAY}worklods = []\n", "Did you mean 'workloads'?"),
        (
            f'{PLAY}workloads = ["apend"]\n',
            "p.toml: play 1, key workloads: unknown workload 'apend': expected one of",
        ),
        (f'{PLAY}workloads = ["apend"]\n', "Did you mean 'append'?"),
        (PLAY.replace('["sim"]', '["lokal"]'), "play 1, key hosts: unknown host 'lokal'"),
        (PLAY.replace('["sim"]', '"sim"'), "play 1, key hosts = 'sim': expected a list of names"),
        (PLAY.replace("kip380", "kip3800"), "play 1, key protocols: unknown protocol 'kip3800': expected one of"),
        (PLAY.replace("kip380", "kip380+truncate=no"), "no such rule"),
        (
            '[[play]]\nhosts = ["sim"]\n',
            "play 1, key protocols: expected versions of a target by one of protocols, ",
        ),
        (
            f'{PLAY}releases = ["3.9.1"]\n',
            "key releases = ['3.9.1']: the host sim runs broker alone; expected it in",
        ),
        ('[[play]]\nhosts = ["local"]\nreleases = ["9.9"]\n', "unknown version of kafka '9.9'"),
        (f"{PLAY}share = 0\n", "play 1, key share = 0: expected a number above 0"),
        (f"{PLAY}share = true\n", "play 1, key share = True: expected a number above 0"),
        (f"{PLAY}jobs = 1.5\n", "play 1, key jobs = 1.5: expected a whole number from 1"),
        (f'{PLAY}narrow = "yes"\n', "play 1, key narrow = 'yes': expected true or false"),
        (f'{PLAY}narrow = true\nworkloads = ["append"]\n', "narrow schedules have no clients besides their steps"),
        (f'{PLAY}nemeses = ["kil"]\n', "unknown nemesis 'kil'"),
        (f"{PLAY}{CANARY}", "p.toml: canary 1, key seeds: expected either seeds"),
        (f'{PLAY}{CANARY}seeds = 5\nscenarios = ["kip101-1"]\n', "canary 1, key seeds = 5: expected either seeds"),
        (f'{PLAY}{CANARY}scenarios = ["kip101-9"]\n', "canary 1, key scenarios: unknown scenario 'kip101-9'"),
        (f"{PLAY}{CANARY}share = 1\n", "canary 1: no key 'share'"),
        ("play = 3\n", "p.toml, key play = 3: expected [[play]] before its keys"),
        (f"disk_mb = 0\n{PLAY}", "p.toml, key disk_mb = 0: expected a whole number from 1"),
    ],
)
def test_wrong_plan_is_one_line_that_says_where_and_what_was_expected(text: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_plan(text, "p.toml")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_plan_that_is_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml: No such file or directory; expected a plan of a night"):
        read_plan(tmp_path / "none.toml")


def test_plan_on_some_hosts_has_nothing_of_the_others() -> None:
    plan = read_plan().on(["sim"])
    assert ("sim",) == plan.hosts
    assert all(each.hosts == ("sim",) for each in (*plan.plays, *plan.canaries))
    with pytest.raises(UsageError, match="unknown host 'moon'"):
        plan.on(["moon"])
    with pytest.raises(UsageError, match="option --host docker: the plan has no play there; expected one of sim"):
        plan.on(["docker"])


@pytest.mark.parametrize(
    ("asked", "systems"),
    [
        ("kafka:3.9.1", {"broker"}),
        ("broker:kip279", {"broker"}),
        ("fluss:0.9.1", {"broker", "fluss"}),
        ("nats:2.15.3", {"broker", "nats"}),
        ("rocketmq:5.5.0", {"broker", "rocketmq"}),
    ],
)
def test_plan_with_other_targets_keeps_canaries_of_these_and_of_our_broker(asked: str, systems: set[str]) -> None:
    plan = read_plan()
    kept = [each for each in plan.canaries if {system for system, _ in each.targets} <= systems]
    assert [*kept] == [*plan.of([asked]).canaries]
    assert systems == {system for each in kept for system, _ in each.targets}


def test_plan_with_other_targets_plays_kafka_on_processes_alone() -> None:
    plan = read_plan().of(["kafka:2.8.2", "broker:kip279"])
    assert {(("broker", "kip279"),), (("kafka", "2.8.2"), ("broker", "kip279"))} == {
        each.targets for each in plan.plays
    }
    assert {"sim"} == {
        host for each in plan.plays if each.targets == (("broker", "kip279"),) for host in each.hosts
    }
    with pytest.raises(UsageError, match="option --target kip279: expected TARGET:PROTOCOL"):
        plan.of(["kip279"])
    with pytest.raises(UsageError, match="the plan has plays in the simulator alone"):
        plan.on(["sim"]).of(["kafka:3.9.1"])


def test_key_targets_has_versions_of_any_target() -> None:
    text = '[[play]]\nhosts = ["local"]\nprotocols = ["hw"]\ntargets = ["kafka:3.9.1", "broker:hw"]\n'
    (play,) = parse_plan(text, "p.toml").plays
    assert (("broker", "hw"), ("kafka", "3.9.1")) == play.targets
    with pytest.raises(UsageError, match=r"play 1, key targets: target kafka: expected TARGET:PROTOCOL"):
        parse_plan(text.replace("kafka:3.9.1", "kafka"), "p.toml")


def test_default_plan_has_what_a_target_of_ones_own_adds(tmp_path: Path) -> None:
    mine = make_target(tmp_path / "mine")
    (mine / "night.toml").write_text('[[play]]\nhosts = ["local"]\ntargets = ["mine:kip380"]\n')
    with also_in([str(mine)]):
        assert (("mine", "kip380"),) == read_plan().plays[-1].targets
        (mine / "night.toml").write_text("[[play\n")
        with pytest.raises(UsageError, match=r"mine/night.toml: .*expected a plan of a night, .* in TOML"):
            read_plan()
    assert all("mine" not in text for text in default_text().split())


@pytest.mark.parametrize(("target", "other"), [("nats:2.15.3", "always"), ("rocketmq:5.5.0", "async")])
def test_plan_of_chance_has_two_settings_chaos_and_our_own_broker_beside_it(target: str, other: str) -> None:
    name, _, version = target.partition(":")
    plan = read_plan(Path(f"targets/{name}/chaos.toml"))
    played = {(one, each.chaos > 0) for each in plan.plays for one in each.targets}
    versions = {(name, version), (name, f"{version}-{other}"), ("broker", "kip380")}
    assert {(one, chaos) for one in versions for chaos in (False, True)} == played
    assert {("all",)} == {each.nemeses for each in plan.plays}
