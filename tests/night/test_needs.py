"""A night leaves out the lines whose needs the machine lacks, says so when it begins, and is not red for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from harness.ability import Ability
from harness.model import EXIT_CODES, PreconditionError, UsageError
from harness.night import needs
from harness.night.opening import units_of
from harness.night.outcome import BAD, GOOD, LEFT_OUT, UNKNOWN, outcome_of
from harness.night.output import HTML, JUNIT, MARKDOWN, write_night
from harness.night.plan import default_text
from harness.night.schedule import Unit
from harness.night.state import State
from harness.run.spec import RunSpec
from harness.workload.plan import Library
from targets.kafka.target import KafkaTarget
from tests.night.nights import BOTH, SIMULATED, Fakes, options
from tests.night.test_night import journal_of, play_it

REAL = """
[[play]]
hosts = ["local", "docker", "ssh"]
protocols = ["kip380"]
"""
KAFKA = """
[[play]]
hosts = ["local"]
releases = ["3.9.1"]
"""
FAULTS = """
[[canary]]
hosts = ["local"]
protocols = ["hw"]
scenarios = ["clock-slow-loses-session", "suspend-shrinks-isr"]
"""
UPGRADE = """
[[canary]]
hosts = ["local"]
releases = ["2.1.1"]
scenarios = ["upgrade-releases"]
"""
CLIENTS = """
[[play]]
hosts = ["local"]
protocols = ["kip380"]
workloads = ["append", "mixed"]
"""
CANARY = """
[[canary]]
hosts = ["local"]
protocols = ["hw"]
scenarios = ["kip101-1"]
"""
NO_JAVA = "Java: none found; expected a Java 17 to 25 that runs; `pip install -r requirements-java.txt`"
NO_JARS = "`fencepost kafka fetch 3.9.1` brings them"
# A night of so many seconds in the simulator finds nothing from this seed on.
QUIET_S, QUIET_SEED = 1.0, 102


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be no jar of Apache Kafka on this machine, but those of 2.1.1."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    require = KafkaTarget.require

    def without(self: KafkaTarget, rules: Mapping[str, str]) -> None:
        if rules["release"] != "2.1.1":
            require(self, rules)

    monkeypatch.setattr(KafkaTarget, "require", without)


def quiet(folder: Path, plan: str, **more: object) -> object:
    return replace(options(folder, plan, seconds=QUIET_S, seed=QUIET_SEED), **more)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        pytest.param((REAL, {"local": NO_JAVA}, {}), {"local broker:kip380": NO_JAVA}, id="a Java"),
        pytest.param((REAL, {"docker": "no engine"}, {}), {"docker broker:kip380": "no engine"}, id="an engine"),
        pytest.param((REAL, {"ssh": "no list"}, {}), {"ssh broker:kip380": "no list"}, id="machines"),
        pytest.param((KAFKA, {}, {}), {"local kafka:3.9.1": NO_JARS}, id="a release's jars"),
        pytest.param(
            (UPGRADE, {}, {}), {"local kafka:2.1.1 upgrade-releases": NO_JARS}, id="the jars of a later release"
        ),
        pytest.param(
            (FAULTS, {}, {Ability.CLOCKS: "no libfaketime", Ability.WALL_CLOCK: "no libfaketime"}),
            {"local broker:hw clock-slow-loses-session suspend-shrinks-isr": "no libfaketime"},
            id="an ability",
        ),
    ],
)
def test_line_whose_need_the_machine_lacks_is_left_out_and_the_night_is_not_red_unless_it_is_strict(
    tmp_path: Path,
    fakes: Fakes,
    case: tuple[str, dict[str, str], dict[Ability, str]],
    expected: dict[str, str],
) -> None:
    plan, lacks, unable = case
    fakes.lacks, fakes.unable, fakes.tame = lacks, unable, {"kip380"}
    text = StringIO()
    outcome = play_it(quiet(tmp_path / "lax", SIMULATED + plan), fakes, text)
    left_out = {line.name: line.why for line in outcome.lines if line.status == LEFT_OUT}
    assert expected.keys() == left_out.keys()
    assert all(why in left_out[name] for name, why in expected.items())
    assert (GOOD, EXIT_CODES["valid"]) == (outcome.status, outcome.code)
    played = {host for host, _ in fakes.played}
    assert played == {"sim", "local", "docker", "ssh"} & {line.host for line in outcome.lines} - {
        line.host for line in outcome.lines if line.status == LEFT_OUT
    }
    # On the first screen, before the first unit, with what to do.
    printed = text.getvalue()
    for name, why in expected.items():
        assert printed.index(why) < printed.index(f" {name}\n") < printed.index("[  1/")
    strict = play_it(quiet(tmp_path / "strict", SIMULATED + plan, strict=True), fakes)
    assert (UNKNOWN, EXIT_CODES["unknown"]) == (strict.status, strict.code)
    assert left_out == {line.name: line.why for line in strict.lines if line.status == LEFT_OUT}


def test_default_night_without_jars_and_without_an_engine_leaves_out_what_needs_them_before_its_first_run(
    tmp_path: Path, fakes: Fakes
) -> None:
    fakes.lacks, fakes.tame = {"docker": "Docker: no engine answers"}, {"kip380"}
    text = StringIO()
    outcome = play_it(quiet(tmp_path, default_text()), fakes, text)
    left_out = {line.name for line in outcome.lines if line.status == LEFT_OUT}
    assert "local kafka:3.9.1" in left_out
    assert {line.name for line in outcome.lines if line.host == "docker"} <= left_out
    assert [] == outcome.not_run
    lines = journal_of(tmp_path)
    (asked,) = (number for number, line in enumerate(lines) if line["what"] == "asked")
    assert asked < next(number for number, line in enumerate(lines) if line["what"] == "begun")
    assert left_out == {name for _, name, _ in lines[asked]["left_out"]}
    assert ["docker", "local"] == sorted(fakes.asked)


@pytest.mark.parametrize(
    ("missing", "left"),
    [((Library.JAVA,), []), (tuple(Library), ["local broker:kip380 mixed"])],
)
def test_workload_is_left_out_if_none_of_its_clients_can_be_had(
    tmp_path: Path,
    fakes: Fakes,
    monkeypatch: pytest.MonkeyPatch,
    missing: tuple[Library, ...],
    left: list[str],
) -> None:
    def lacking(clients: object) -> dict[Library, str]:
        return {each: f"no {each}; make java" for each in missing if each in clients.libraries}  # type: ignore[attr-defined]

    monkeypatch.setattr("targets.kafka_family.clients.libraries.lacking", lacking)
    fakes.tame = {"kip380"}
    outcome = play_it(quiet(tmp_path, SIMULATED + CLIENTS), fakes)
    named = [line.name for line in outcome.lines if line.status == LEFT_OUT and line.name.endswith("mixed")]
    assert left == named
    assert GOOD == outcome.status


def test_what_is_left_out_is_asked_again_when_the_night_goes_on_and_played_if_the_machine_can_now(
    tmp_path: Path, fakes: Fakes
) -> None:
    def interrupt(spec: RunSpec) -> None:
        if spec.host == "sim" and str(spec.variant) == "kip380":
            raise KeyboardInterrupt

    fakes.lacks, fakes.begin, fakes.tame = {"local": NO_JAVA}, interrupt, {"kip380"}
    with pytest.raises(KeyboardInterrupt):
        play_it(quiet(tmp_path, SIMULATED + CANARY + REAL), fakes)
    fakes.lacks, fakes.begin = {"docker": "no engine"}, lambda _: None
    outcome = play_it(quiet(tmp_path, SIMULATED + CANARY + REAL), fakes)
    assert (2, ["docker broker:kip380"]) == (
        outcome.sessions,
        [line.name for line in outcome.lines if line.status == LEFT_OUT],
    )
    assert "local" in {host for host, _ in fakes.played}
    assert 2 == sum(line["what"] == "asked" for line in journal_of(tmp_path))


def test_line_that_was_played_in_part_before_its_need_went_is_unknown(tmp_path: Path, fakes: Fakes) -> None:
    def interrupt(spec: RunSpec) -> None:
        if (spec.host, len(fakes.played)) == ("local", 9):
            raise KeyboardInterrupt

    fakes.begin = interrupt
    with pytest.raises(KeyboardInterrupt):
        play_it(options(tmp_path, BOTH), fakes)
    fakes.begin, fakes.lacks = lambda _: None, {"local": NO_JAVA}
    outcome = play_it(options(tmp_path, BOTH), fakes)
    (line,) = (each for each in outcome.lines if each.name == "local broker:kip380")
    assert line.status in (UNKNOWN, BAD)
    assert [f"not played to its end: {NO_JAVA}"] == list(line.problems)


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (REAL + CANARY, "nothing but canaries could be played here"),
        (SIMULATED.partition("[[canary]]")[0] + CANARY, "no canary could be played here"),
    ],
)
def test_night_of_which_nothing_is_left_that_proves_something_is_unknown(
    tmp_path: Path, fakes: Fakes, plan: str, why: str
) -> None:
    fakes.lacks = dict.fromkeys(("local", "docker", "ssh"), NO_JAVA)
    fakes.tame = {"kip380"}
    outcome = play_it(quiet(tmp_path, plan), fakes)
    assert (UNKNOWN, EXIT_CODES["unknown"]) == (outcome.status, outcome.code)
    assert why in outcome.unproven


def test_time_of_what_is_left_out_goes_to_what_is_timed(tmp_path: Path, fakes: Fakes) -> None:
    fakes.lacks = {"docker": "no engine"}
    play_it(options(tmp_path, BOTH.replace('"local"', '"local", "docker"'), seconds=20.0), fakes)
    # One second is the canary's.
    assert 20 == sum(host == "local" for host, _ in fakes.played)


def test_page_markdown_and_junit_show_what_is_left_out_in_a_section_of_its_own(tmp_path: Path) -> None:
    about = {
        "night": "20261125T220000-7",
        "seed": 7,
        "started": "2026-11-25T22:00:00+00:00",
        "commit": "c0ffee",
        "known": [],
        "known_left_out": 0,
        "plan": SIMULATED + KAFKA,
        "seconds": 60.0,
        "hosts": [],
        "targets": [],
        "power_tier": "",
    }
    units = units_of(about, Path())
    state = State(about=about, sessions=[{"commit": "c0ffee"}])
    state.left_out = {("play", "local kafka:3.9.1"): f"<b>no jars</b>; {NO_JARS}"}
    outcome = outcome_of(state, units, finished=True)
    folder = tmp_path / outcome.name
    folder.mkdir()
    write_night(outcome, tmp_path, folder)
    html, text = ((folder / name).read_text("utf-8") for name in (HTML, MARKDOWN))
    section = html.partition('<h2 id="left-out">')[2].partition("</section>")[0]
    assert "<li>play local kafka:3.9.1</li>" in section
    assert "&lt;b&gt;no jars&lt;/b&gt;; `fencepost kafka fetch 3.9.1` brings them" in section
    assert "| play local kafka:3.9.1 | &lt;b>no jars&lt;/b>; `fencepost kafka fetch 3.9.1` brings them |" in text
    suite = next(each for each in ET.parse(folder / JUNIT).getroot() if each.get("name") == "local")
    assert ("1", "0", "0") == (suite.get("skipped"), suite.get("errors"), suite.get("failures"))
    assert NO_JARS in str(suite[0].find("skipped").get("message"))  # type: ignore[union-attr]
    (line,) = (
        each for each in json.loads((folder / "night.json").read_text())["lines"] if each["host"] == "local"
    )
    assert (LEFT_OUT, True) == (line["status"], NO_JARS in line["why"])


# --- the host that is really asked ------------------------------------------------------------------------------
class Opening:
    """An environment whose host cannot be opened, or whose ZooKeeper does not answer."""

    def __init__(self, error: Exception | None) -> None:
        self.error, self.closed = error, 0

    def open(self, _folder: Path) -> None:
        if self.error:
            raise self.error

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("error", "opens", "why"),
    [
        (None, True, ""),
        (UsageError(NO_JAVA), False, NO_JAVA),
        (PreconditionError("ZooKeeper: no answer"), False, ""),
        (OSError(28, "No space left on device"), False, ""),
        (ZeroDivisionError(), False, ""),
    ],
)
def test_host_is_opened_and_closed_and_only_a_refusal_is_a_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception | None, opens: bool, why: str
) -> None:
    environment = Opening(error)
    monkeypatch.setattr(needs, "RealEnvironment", lambda *_, **__: environment)
    (unit,) = _units(REAL.replace('"local", "docker", "ssh"', '"local"'))
    with needs.opened_host("local", unit.runs[0], None, tmp_path, pytest.fail) as (found, told):
        assert (opens, why) == (found is not None, told)
    assert 1 == environment.closed


def _units(plan: str) -> tuple[Unit, ...]:
    from harness.night.plan import parse_plan
    from harness.night.schedule import schedule_of

    return schedule_of(parse_plan(plan, "test.toml"), [], seed=1, seconds=60, folder=Path(), power_tier=None)
