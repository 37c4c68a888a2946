"""The logs of nodes are read by their target's reader, whatever it is; what it cannot do is refused by name."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from harness import limits
from harness.ability import Ability
from harness.bit_rot import Flip, Where
from harness.environment.node_logs import NodeLogs, why_lacking
from harness.launch import Address
from harness.logs.record import Record
from harness.logs.stream import RecordsReading
from harness.model import PreconditionError
from harness.target.logs import NodeFiles
from targets.broker_target.target import TARGET as BROKER
from targets.kafka.target import TARGET as KAFKA
from tests.logs.toy import TARGET, ToyLogs, toy

ADDRESS = Address(host="127.0.0.1", port=9)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """The data directory of node A, with three records."""
    (tmp_path / "A").mkdir()
    (tmp_path / "A" / "log").write_bytes(b"1 a\n1 b\n2 c\n")
    return tmp_path


def logs(disk: Path, target: Any = TARGET) -> NodeLogs:
    return NodeLogs(target, lambda name: disk / name, lambda _: ADDRESS, lambda _: None)


def test_log_of_one_file_is_read_and_its_end_with_it(disk: Path) -> None:
    log = logs(disk).whole("A", "log", 0)
    assert log is not None
    assert [(0, 1, "a"), (1, 1, "b"), (2, 2, "c")] == [(b.base, b.epoch, b.records[0][2]) for b in log.batches]
    assert (3, -1) == (logs(disk).end("A", "log", 0), logs(disk).end("A", "log", 1))
    assert logs(disk).whole("A", "other", 0) is None


def test_damaged_line_is_unread_and_a_half_written_one_too(disk: Path) -> None:
    (disk / "A" / "log").write_bytes(b"1 a\nx b\n2 c")
    log = logs(disk).whole("A", "log", 0)
    assert log is not None
    assert (((1, 2), (2, 3)), 3) == (log.unread, log.log_end_offset)
    assert ("log, line 2: b'x b\\n'", "log, line 3: b'2 c'") == log.problems


def test_node_whose_disk_is_a_link_is_not_read(disk: Path) -> None:
    (disk / "B").symlink_to(disk / "A")
    with pytest.raises(PreconditionError, match="a link; expected a folder, and no link is followed"):
        logs(disk).whole("B", "log", 0)
    with pytest.raises(PreconditionError, match="No such file or directory; expected a data directory"):
        logs(disk).end("C", "log", 0)


def test_link_in_the_place_of_the_log_is_a_problem_of_it(disk: Path) -> None:
    (disk / "A" / "log").rename(disk / "secret")
    (disk / "A" / "log").symlink_to(disk / "secret")
    log = logs(disk).whole("A", "log", 0)
    assert log is not None
    said = "a link; expected a regular file; expected the batches of a log"
    assert ((), (f"target toy, logs: RefusedError: {said}",)) == (log.batches, log.problems)


def test_what_a_target_s_logs_cannot_do_is_refused_by_name(disk: Path) -> None:
    with pytest.raises(PreconditionError, match="A: target toy: its logs have no byte to flip"):
        logs(disk).to_flip("A", "log", 0, Where.ACTIVE)
    with pytest.raises(PreconditionError, match="A: target toy: its logs have no segments"):
        logs(disk).newest_segment("A", "log", 0)
    assert "target toy: its logs have no segments" == why_lacking(TARGET, Ability.SEGMENTS)
    assert "" == why_lacking(TARGET, Ability.DISK_FULL)
    assert {""} == {why_lacking(target, ability) for target in (BROKER, KAFKA) for ability in Ability}


def test_reader_that_knows_no_file_of_a_state_is_not_asked_for_one(disk: Path) -> None:
    class Rotting(ToyLogs):
        def to_flip(self, node: NodeFiles, topic: str, partition: int, where: Where) -> Flip:
            return Flip(path="log", position=0, before=0, after=1)

    reader = logs(disk, toy(Rotting()))
    flip = reader.to_flip("A", "log", 0, Where.ACTIVE)
    assert "" == reader.read_again("A", flip)
    for where in Where:
        if where.is_state:
            with pytest.raises(
                PreconditionError, match=f"A: no sound file that keeps the {where} of log-0 to flip"
            ):
                reader.to_flip("A", "log", 0, where)


def test_reader_is_told_where_the_node_answers(disk: Path) -> None:
    seen: list[NodeFiles] = []

    class Asking(ToyLogs):
        def end(self, node: NodeFiles, topic: str, partition: int) -> int:
            seen.append(node)
            return 7

    assert 7 == logs(disk, toy(Asking())).end("A", "log", 0)
    assert [(ADDRESS, disk / "A")] == [(node.address, node.folder.path) for node in seen]


def test_reader_without_an_end_ends_in_an_error_that_names_it(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(ToyLogs):
        def reading(self, node: NodeFiles, topic: str, partition: int) -> RecordsReading:
            return RecordsReading(topic, partition, itertools.repeat(Record(offset=0, value=b"x")))

        def end(self, node: NodeFiles, topic: str, partition: int) -> Any:
            return "seven"

    monkeypatch.setattr(limits, "LOG_FINDINGS_MAX", 20)
    with pytest.raises(PreconditionError, match="target toy, logs: a batch at offset 0 after one that ends at 1"):
        logs(disk, toy(Endless())).whole("A", "log", 0)
    with pytest.raises(
        PreconditionError, match="target toy, logs: 'seven'; expected an offset of 64 bits, or None"
    ):
        logs(disk, toy(Endless())).end("A", "log", 0)
