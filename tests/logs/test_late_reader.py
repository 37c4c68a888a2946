"""A log reader that neither yields nor returns is asked no more, and what it should have read is unread."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from checkers.judge import judge
from harness import limits
from harness.beneath import Folder
from harness.bit_rot import Where
from harness.cluster.cluster import Cluster
from harness.environment.node_logs import NodeLogs
from harness.history.file import History, read_history
from harness.logs.compare import compare
from harness.logs.guard import Guard
from harness.logs.record import Record
from harness.logs.stream import RecordsReading
from harness.model import EXIT_CODES, PreconditionError, Verdict
from harness.run.player import Player
from harness.run.spec import RunSpec
from harness.run.store import create_suite
from harness.scenario.variant import Variant
from harness.target.logs import NodeFiles
from nemesis import NEMESES
from targets.broker_target.target import TARGET
from targets.simulator.broker.environment import SimEnvironment
from tests.logs.toy import ToyLogs, toy
from tests.suite.cells import spec_of

ROOT = Path(__file__).resolve().parents[2]
CALL_S = 0.2
SAYS = f"target toy, logs: no answer within {CALL_S:g} s; expected "
ONE = Record(offset=0, epoch=1, value=b"a")
Hang = Callable[[], Any]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_CALL_S_MAX", CALL_S)


@pytest.fixture(params=["spins", "waits"])
def hang(request: pytest.FixtureRequest) -> Iterator[Hang]:
    """What never returns, in Python or in C; the latter does after the test."""
    over = threading.Event()

    def spins() -> None:
        for _ in itertools.count():
            pass

    yield {"spins": spins, "waits": over.wait}[request.param]
    over.set()


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    (tmp_path / "A").mkdir()
    (tmp_path / "A" / "log").write_bytes(b"1 a\n")
    return tmp_path


class Hanging(ToyLogs):
    """A reader that hangs in one of its methods, and counts what it is asked."""

    def __init__(self, at: str, hang: Hang) -> None:
        self.asked = 0
        self.folders: list[Folder] = []
        self._hangs = {at: hang}

    def at(self, place: str) -> None:
        self.asked += 1
        self._hangs.get(place, lambda: None)()

    def partitions(self, node: NodeFiles) -> Any:
        self.folders.append(node.folder)
        self.at("partitions")
        return super().partitions(node)

    def reading(self, node: NodeFiles, topic: str, partition: int) -> Any:
        self.at("reading")
        return HangingReading(self)

    def end(self, node: NodeFiles, topic: str, partition: int) -> int:
        self.at("end")
        return 1

    def to_flip(self, node: NodeFiles, topic: str, partition: int, where: Where) -> None:
        self.at("to_flip")

    def newest_segment(self, node: NodeFiles, topic: str, partition: int) -> list[str]:
        self.at("newest_segment")
        return []


class HangingReading(RecordsReading):
    def __init__(self, logs: Hanging) -> None:
        super().__init__("log", 0, self._found(logs))
        self._at = logs.at

    def _found(self, logs: Hanging) -> Iterator[Record]:
        logs.at("first record")
        yield ONE
        logs.at("next record")

    def log(self) -> Any:
        self._at("log")
        return super().log()

    def unsettled(self) -> str:
        self._at("unsettled")
        return super().unsettled()

    def close(self) -> None:
        self._at("close")
        super().close()


class Node:
    """The logs of a node whose reader hangs, and why its run is given up."""

    def __init__(self, disk: Path, at: str, hang: Hang) -> None:
        self.reader = Hanging(at, hang)
        self.lost: list[str] = []
        self.logs = NodeLogs(
            toy(self.reader), lambda name: disk / name, lambda _: None, lambda error: self.lost.append(str(error))
        )

    def fails(self, call: Callable[[], object], expected: str) -> None:
        """Make the call twice: the reader hangs in the first, and is not asked in the second."""
        for _ in range(2):
            with pytest.raises(PreconditionError) as raised:
                call()
            assert f"{SAYS}{expected}" == str(raised.value)
            asked, self.reader.asked = self.reader.asked, 0
        assert (0, [f"{SAYS}{expected}"]) == (asked, self.lost)


PARTITIONS = f"the (topic, partition) of at most {limits.FOLDER_NAMES_MAX} replicas"


@pytest.mark.parametrize(("at", "expected"), [
    ("partitions", PARTITIONS),
    ("reading", "a reading of the log"),
    ("first record", "the batches of a log"),
    ("next record", "the batches of a log"),
    ("log", "a log's start, end, epochs and findings"),
    ("unsettled", "why the log may mix two states"),
    ("close", "the end of a reading"),
])  # fmt: skip
def test_reader_that_hangs_is_given_up_wherever_it_does(disk: Path, at: str, expected: str, hang: Hang) -> None:
    node = Node(disk, at, hang)
    node.fails(lambda: node.logs.whole("A", "log", 0), expected)
    assert [-1] == [folder.fileno() for folder in node.reader.folders]


def test_conditions_and_faults_end_too(disk: Path, hang: Hang) -> None:
    node = Node(disk, "end", hang)
    node.fails(lambda: node.logs.end("A", "log", 0), "an offset of 64 bits, or None")
    node = Node(disk, "to_flip", hang)
    flip = "a Flip of one byte in a file below the node's folder, or None"
    node.fails(lambda: node.logs.to_flip("A", "log", 0, Where.ACTIVE), flip)
    node = Node(disk, "newest_segment", hang)
    paths = f"at most {limits.FOLDER_NAMES_MAX} paths below the node's folder"
    node.fails(lambda: node.logs.newest_segment("A", "log", 0), paths)


def test_comparison_is_unknown_and_the_replica_of_another_reader_is_read(disk: Path, hang: Hang) -> None:
    late, sound = Guard("toy"), Guard("sound")
    reader = Hanging("next record", hang)
    replicas = {
        "A": late.opening(lambda: HangingReading(reader), "log", 0, disk),
        "B": sound.opening(lambda: RecordsReading("log", 0, [ONE]), "log", 0, disk),
    }
    found = late.run(lambda: compare("log-0", replicas))
    assert Verdict.UNKNOWN is found.verdict
    a, b = (found.replicas[name].log for name in ("A", "B"))
    assert ((f"{SAYS}the batches of a log",), ((0, None),)) == (a.problems, a.unread)
    assert ((), 1) == (b.problems, b.log_end_offset)


class Asking(SimEnvironment):
    """A simulator whose logs end where a reader says, which hangs."""

    def __init__(self, hang: Hang) -> None:
        super().__init__("sim", TARGET)
        self._hang = hang

    def open_cluster(self, spec: RunSpec, folder: Path, history: History) -> Cluster:
        """Open a world, and have the ends of its logs asked of the reader."""
        cluster = super().open_cluster(spec, folder, history)
        guard = Guard("toy", history.give_up)
        cluster.host.log_end = lambda *_: guard.run(lambda: guard.end(self._hang))  # type: ignore[method-assign]
        return cluster


def test_run_is_unknown_and_names_the_part(tmp_path: Path, hang: Hang) -> None:
    spec = spec_of("kip101-1", Variant(protocol="hw"), TARGET, 1)
    run = Player(environment=Asking(hang), faults=NEMESES).attempt(spec, create_suite(tmp_path, "suite"))
    assert f"{SAYS}an offset of 64 bits, or None" in run.failure
    assert Verdict.UNKNOWN is judge(spec, read_history(run.history)).verdict


READER = """
import threading

from tests.logs.toy import ToyLogs, toy


class Waits(ToyLogs):
    def partitions(self, node):
        threading.Event().wait()


from harness import limits
from harness.cli import lineage
from harness.cli.main import main

limits.LOG_CALL_S_MAX = 0.2
lineage.target_of = lambda name: toy(Waits())
raise SystemExit(main(["lineage", "--target", "toy", "A"]))
"""


def test_command_ends_although_the_reader_of_its_logs_still_waits(disk: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READER],
        cwd=disk,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (EXIT_CODES["unknown"], "") == (done.returncode, done.stderr)
    assert f"{SAYS}{PARTITIONS}" in " ".join(done.stdout.split())
