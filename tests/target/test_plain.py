"""The plain parts of a target: what a target says of itself at least, a wire of lines, and logs of lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from harness.ability import OF_TARGETS, Ability
from harness.beneath import Folder
from harness.environment.of_target import BROUGHT, why_lacking
from harness.events import Fetch
from harness.launch import Launch
from harness.logs.stream import read_whole
from harness.model import UsageError
from harness.target.logs import NodeFiles
from harness.target.metadata import Metadata, TargetRun
from harness.target.plain import PlainOperator, PlainTarget
from harness.target.plain_logs import PlainLogs
from harness.target.plain_wire import PlainWire
from harness.target.target import NodeSpec, traits_under
from harness.target.wire import Between, Direction, Word
from targets.broker_target.target import TARGET as OURS
from tests.logs.toy import ToyLogs


class Electing(PlainOperator):
    def elect(self, topic: str, partition: int, name: str) -> str:
        return f"{self.run.target}: {name} asked for, for {topic}-{partition}"


class Lines(PlainWire):
    words: ClassVar[Mapping[Word, str]] = {Word.FETCH: "copy"}
    messages = ("hello",)

    def asks(self, question: bytes) -> tuple[str, Sequence[tuple[str, int, int]]]:
        word, *offset = question.split()
        return ("hello", ()) if word == b"hello" else (Word.FETCH, [("log", 0, int(offset[0]))])


class Epochs(PlainLogs):
    def record(self, line: bytes) -> tuple[int, bytes]:
        epoch, value = line.split(b" ", 1)
        return int(epoch), value


class Least(PlainTarget):
    name = "least"
    versions: ClassVar[Mapping[str, Mapping[str, str]]] = {"1": {"early": "no"}, "2": {"early": "yes"}}
    clients: Any = None
    logs = Epochs()

    def launch(self, spec: NodeSpec, protocol: str, rules: Mapping[str, str]) -> Launch:
        raise NotImplementedError

    def metadata(self, run: TargetRun) -> Metadata:
        raise NotImplementedError


class More(Least):
    name = "more"
    asked = Electing
    shows = (Ability.MEMBERS,)
    wire = Lines()
    patterns: ClassVar[Mapping[str, str]] = {"truncate": r"cut to (?P<to>\d+)$", "stuck": "cannot go on"}


# --- the target ------------------------------------------------------------------------------------------------
def test_version_has_its_rules_and_a_change_of_one_that_there_is() -> None:
    assert {"early": "yes"} == Least().rules("2", ())
    assert {"early": "maybe"} == Least().rules("2", ["early=maybe"])
    for change in ("late=yes", "early"):
        with pytest.raises(UsageError, match=f"rule '{change}'; expected NAME=VALUE with a name of early"):
            Least().rules("1", [change])
    with pytest.raises(UsageError, match="unknown version of least '3': expected one of 1, 2"):
        Least().rules("3", ())


def test_what_its_operator_has_a_method_for_can_be_asked() -> None:
    assert (frozenset(), {Ability.ELECT, Ability.MEMBERS}) == (Least().abilities, More().abilities)
    run = TargetRun(target="more", ids={"A": 1}, folder=Path("/"), record=print, give_up=print)
    metadata: Any = None
    assert "more: A asked for, for log-0" == More().operator(run, metadata).elect("log", 0, "A")


def test_traits_say_what_its_metadata_show() -> None:
    least, more = (traits_under(each, "1", ()) for each in (Least(), More()))
    assert (False, False) == (least.names_controller, least.shows_members)
    assert (False, True) == (more.names_controller, more.shows_members)
    ours = traits_under(OURS, "kip380", ())
    assert (True, True) == (ours.names_controller, ours.shows_members)


def test_line_means_what_its_pattern_is_of() -> None:
    cut, stuck = More().printed("B: cut to 17"), More().printed("B cannot go on")
    assert cut is not None
    assert stuck is not None
    assert [("truncate", 17), ("stuck", None)] == [(each.what, each.to) for each in (cut, stuck)]
    assert ("log", 0) == (cut.topic, cut.partition)
    assert None is More().printed("cut to the bone") is Least().printed("cut to 17")


def test_what_a_target_does_not_bring_faults_lack_with_the_reason() -> None:
    assert [] == [each for each in BROUGHT if why_lacking(OURS, each)]
    assert all(why_lacking(OURS, each) == "" for each in OF_TARGETS)
    assert "target more: its wire has no links to the metadata" == why_lacking(More(), Ability.METADATA_LINKS)
    # Without a wire links of every kind can be cut.
    assert "" == why_lacking(Least(), Ability.METADATA_LINKS) == why_lacking(Least(), Ability.CLIENT_LINKS)
    assert "target least: its nodes print no clocks" == why_lacking(Least(), Ability.CLOCKS)
    assert "target least: its logs have no byte to flip" == why_lacking(Least(), Ability.BIT_ROT)


# --- the wire --------------------------------------------------------------------------------------------------
def test_connection_is_split_into_lines_and_an_answer_is_about_the_last_question() -> None:
    wire = Lines()
    (kind,) = wire.links
    reading = wire.hear({}).reading(kind, ("B", "A"))
    assert reading is not None
    assert Between.NODES is kind.between
    assert [7, 0, 0] == [reading.size(b"copy 4\ncopy", at, Direction.REQUEST) for at in (0, 7, 11)]
    asked = reading.read(b"copy 4\n", Direction.REQUEST)
    assert (Fetch(link=("B", "A"), topic="log", partition=0, offset=4),) == asked.events
    answer = reading.read(b"x y\n", Direction.ANSWER)
    assert ((), "fetch", (("log", 4),)) == (answer.events, answer.seen.api, answer.seen.offsets)
    hello = reading.read(b"hello\n", Direction.REQUEST)
    assert ((), "hello", ()) == (hello.events, hello.seen.api, hello.seen.offsets)


def test_restarted_follower_asks_by_a_fetch_and_nothing_stands_for_what_is_left_out() -> None:
    stands = Lines().stands({})
    assert {Word.FETCH, Word.QUESTION} == {*stands}
    assert ("fetch", "copy") == (stands[Word.QUESTION].api, stands[Word.QUESTION].own)


# --- the logs --------------------------------------------------------------------------------------------------
def test_line_is_a_record_one_without_an_end_is_none_and_one_that_is_wrong_is_unread(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"1 a\nx b\n2 c d\n2 torn")
    with Folder.at(tmp_path) as folder:
        node, logs = NodeFiles(folder=folder), Epochs()
        assert [("log", 0)] == logs.partitions(node)
        log = read_whole(lambda: logs.reading(node, "log", 0))
    assert [(0, 1), (2, 2)] == [(batch.base, batch.epoch) for batch in log.batches]
    (problem,) = log.problems
    assert "log, line 2" in str(problem)


def test_node_without_the_file_has_no_replica(tmp_path: Path) -> None:
    with Folder.at(tmp_path) as folder:
        assert [] == Epochs().partitions(NodeFiles(folder=folder))
    assert "a file `log`, one record a line" == Epochs().expected == ToyLogs().expected
