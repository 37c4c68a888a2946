"""Words for messages are general ones, or a target's own; old ones are read as those of today."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.model import PreconditionError, UsageError
from harness.random_schedule.chaos import kinds_of
from harness.random_schedule.profile import profile_of
from harness.scenario.file import parse
from harness.scenario.words import MessageWords, messages
from harness.target.wire import Stands, Word, words_of
from nemesis import NEMESES
from targets.broker_target.target import TARGET as BROKER
from targets.fluss.target import TARGET as FLUSS
from targets.kafka.target import TARGET as KAFKA
from targets.nats.target import TARGET as NATS
from targets.rocketmq.target import TARGET as ROCKETMQ

HEAD = """title    x
source   x
nodes    B A replicas, C controller
records  m1 2

"""
BEFORE = """hold requests LeaderAndIsr * -> A
hold answers Fetch A -> B from 1
hold requests OffsetForLeaderEpoch A -> B
delay requests StopReplica * -> A 0.5
double UpdateMetadata C -> A
cut-from-zookeeper A
hold answers ZooKeeper A -> zookeeper
cut A -> zookeeper close
resign C
"""
NOW = """hold requests command * -> A
hold answers fetch A -> B from 1
hold requests epoch-question A -> B
delay requests stop-command * -> A 0.5
double UpdateMetadata C -> A
cut-from-metadata A
hold answers metadata-request A -> metadata
cut A -> metadata close
depose-controller C
"""


def steps(text: str) -> list[str]:
    read = parse("s", f"{HEAD}{text}expect hw: none\n", "s.txt", NEMESES)
    return [step.text for step in read.steps]


def test_schedule_of_before_is_read_with_the_words_of_today() -> None:
    assert NOW.splitlines() == steps(BEFORE) == steps(NOW)


def test_old_name_of_a_fault_is_read_in_options() -> None:
    assert ("cut-from-metadata", "kill") == kinds_of(["cut-from-zookeeper", "kill"], NEMESES)
    assert "cut-from-metadata" not in kinds_of(["all", "-cut-from-zookeeper"], NEMESES)
    assert profile_of(["depose-controller"], faults=NEMESES) == profile_of(["resign"], faults=NEMESES)


def test_word_that_no_target_has_is_an_error_with_the_nearest_one() -> None:
    with pytest.raises(
        UsageError, match=r"s.txt:6: .*'comand'; expected a message: one of .*Did you mean 'command'"
    ):
        steps("hold requests comand C -> A\n")


@pytest.mark.parametrize("word", [word for word in messages() if word != Word.QUESTION])
def test_word_means_itself_where_a_wire_has_it(word: str) -> None:
    targets: tuple[tuple[Any, str], ...] = (
        (BROKER, "kip101"),
        (FLUSS, "0.9.1"),
        (NATS, "2.15.3"),
        (ROCKETMQ, "5.5.0"),
    )
    having = (each for each in targets if word in words_of(each[0].wire))
    target, protocol = next(having, targets[0])
    assert word == MessageWords(target, target.rules(protocol, ())).api_of(word)


@pytest.mark.parametrize(
    ("target", "protocol", "api"),
    [(BROKER, "hw", "fetch"), (BROKER, "kip101", "epoch-question"), (KAFKA, "1.1.1", "epoch-question")],
)
def test_question_is_what_a_restarted_follower_asks_first(target: Any, protocol: str, api: str) -> None:
    assert api == MessageWords(target, target.rules(protocol, ())).api_of("question")


def raises(_: object) -> Any:
    raise RuntimeError("a bug")


def toy(**wire: Any) -> MessageWords:
    target: Any = SimpleNamespace(name="toy", wire=SimpleNamespace(messages=("beg",), **wire) if wire else None)
    return MessageWords(target, {})


def test_word_for_which_nothing_stands_is_not_played_and_says_why() -> None:
    words = toy(stands=lambda _: {Word.COMMAND: Stands(api="", own="a file says who leads")})
    assert "beg" == words.api_of("beg")
    with pytest.raises(
        PreconditionError, match="not played: toy has no command on its wire: a file says who leads"
    ):
        words.api_of("command")
    assert "toy has no question on its wire" == words.lack("question")
    assert "toy has no UpdateMetadata on its wire" == words.lack("UpdateMetadata")


def test_target_without_a_wire_has_no_word_but_rules_for_all_messages() -> None:
    assert "toy has no fetch on its wire" == toy().lack("fetch")
    assert "*" == toy().api_of("*")


def test_wire_that_cannot_say_what_stands_for_a_word_is_named() -> None:
    with pytest.raises(PreconditionError, match=r"target toy, wire: stands raised RuntimeError\('a bug'\)"):
        toy(stands=raises).lack("fetch")
