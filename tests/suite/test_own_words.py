"""A scenario may name the messages of each target that is found; what is wrong names the nearest of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main
from harness.model import EXIT_CODES, PreconditionError, UsageError
from harness.scenario.words import MessageWords, messages
from harness.search.random_runs import RandomRuns
from harness.suite.scenario_files import read_for, read_scenario
from harness.target.found import Found, also_in, found, target
from tests.target.own import make_target
from workloads import SCENARIOS

# Our broker with a wire that has two messages more; Kafka's older word for one of the general ones is the second.
TARGET = """
from targets.broker_target.target import BrokerTarget
from targets.kafka_family.wire.wire import KafkaWire


class Wire(KafkaWire):
    messages = MESSAGES


class Mine(BrokerTarget):
    name = {name!r}
    wire = Wire(lambda rules: True, commands=False)


TARGET = Mine()
"""
OWN = """title    Its own words
source   S
nodes    A B replicas, C controller
records  m1 1..4

hold answers beg A -> B
produce m1 acks=all
await held answers beg A -> B
release beg A -> B
delay requests Fetch B -> A 0.5
expect kip380: none
"""


def folder_of(place: Path, messages: str = "('beg', 'Fetch')") -> Path:
    folder = make_target(place / "mine", TARGET.replace("MESSAGES", messages))
    (folder / "scenarios").mkdir()
    (folder / "scenarios" / "begging.txt").write_text(OWN)
    return folder


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return folder_of(tmp_path)


def steps(name: str, path: Path) -> list[str]:
    return [step.text for step in read_for(name, path).steps]


def test_scenario_of_a_target_names_the_messages_of_its_wire(mine: Path) -> None:
    with also_in([str(mine)]):
        read = steps("mine", mine / "scenarios" / "begging.txt")
        assert OWN.splitlines()[5:-1] == read
        words = MessageWords(target("mine"), target("mine").rules("kip380", ()))
        assert ["beg", "Fetch", "fetch"] == [words.api_of(word) for word in ("beg", "Fetch", "fetch")]
        with pytest.raises(PreconditionError, match="broker has no beg on its wire"):
            MessageWords(target("broker"), {}).api_of("beg")


def test_schedule_anywhere_is_read_with_the_words_of_the_target_that_plays_it(mine: Path, tmp_path: Path) -> None:
    schedule = tmp_path / "schedule.txt"
    schedule.write_text(OWN)
    with also_in([str(mine)]):
        runs = RandomRuns(target="mine", variant="kip380", host="local", schedule=schedule)
        assert OWN.splitlines()[5:-1] == [step.text for step in runs.spec(1).scenario.steps]
        assert "" == runs.lacks_clients(1)


def test_word_of_before_is_read_as_that_where_the_target_has_no_such_message(mine: Path) -> None:
    with also_in([str(mine)]):
        assert "delay requests fetch B -> A 0.5" == steps("broker", mine / "scenarios" / "begging.txt")[-1]


def test_word_of_a_target_that_is_not_found_is_an_error_with_the_known_ones(mine: Path) -> None:
    with pytest.raises(UsageError, match=r"begging.txt:6: .*'beg'; expected a message: one of fetch, "):
        read_scenario(mine / "scenarios" / "begging.txt")
    assert "beg" not in messages()


def test_wrong_word_names_the_nearest_one_of_the_target(
    mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule = tmp_path / "schedule.txt"
    schedule.write_text(OWN.replace("beg", "begg"))
    words = ["run", "--targets", mine, "--target", "mine:kip380", "--host", "local", "--schedule", schedule]
    assert EXIT_CODES["usage"] == main(list(map(str, words)))
    said = capsys.readouterr().err
    assert f"{schedule}:6: 'hold answers begg A -> B': 'begg'; expected a message: one of fetch, " in said
    assert "Did you mean 'beg'?" in said


@pytest.mark.parametrize(("names", "says"), [
    ("7", "7; expected a collection of words"),
    ("'beg'", "'beg'; expected a collection of words"),
    ("('beg for more',)", "('beg for more',); expected a collection of words"),
    ("(1,)", "(1,); expected a collection of words"),
])  # fmt: skip
def test_names_that_are_no_words_are_told_and_harm_no_other_target(tmp_path: Path, names: str, says: str) -> None:
    folder = folder_of(tmp_path, names)
    with also_in([str(folder)]):
        with pytest.raises(UsageError) as raised:
            read_for("mine", folder / "scenarios" / "begging.txt")
        assert f"target mine: {folder}: part wire: messages {says}" == str(raised.value)
        assert read_for("broker", SCENARIOS / "kip101-1.txt").steps
        assert "UpdateMetadata" in messages()


def test_words_are_those_of_the_targets_that_are_found_now(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = messages()
    with also_in([str(mine)]):
        loaded: list[str] = []
        load = Found.load
        monkeypatch.setattr(Found, "load", lambda one: (loaded.append(one.name), load(one))[1])
        assert {"beg", "Fetch", *before} == {*messages()}
        assert [*found()] == loaded
        assert messages() == messages()
        assert len(found()) == len(loaded)
    assert before == messages()
