"""Where a log ends and what is wrong with it: as its broker says while it runs, else as its files show."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.launch import Address
from harness.logs.lineage import holes
from harness.logs.replica import ReplicaLog
from harness.target.log_client import Refused
from targets.rocketmq.asking import Epochs
from tests.targets.rocketmq.records import (
    Says,
    blank,
    commit_log,
    end_of,
    epochs,
    log_of,
    path_of,
    record,
    scan,
    topics,
    values,
)
from tests.targets.rocketmq.server import Serve, answers, epoch_cache, hangs_up, nobody, server

THREE = log_of(b"m0", b"m1", b"m2")
SIZE = len(THREE) // 3
ADDRESS = Address(host="127.0.0.1", port=1)
STALE = log_of(b"x3", b"x4", at=3 * SIZE, offset=3)


class Running:
    """A broker that runs: what it says of the end of its log, and what is read of it then."""

    def __init__(self, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.data = data
        self.asked: list[str] = []
        self.told: Epochs | None = None
        monkeypatch.setattr("targets.rocketmq.logs.reader.epochs_told", self._asked)

    def _asked(self, address: str, *, within_s: float) -> Epochs:
        self.asked.append(address)
        assert within_s > 0
        if self.told is None:
            raise Refused(address)
        return self.told

    def scan(self, end: int | None, topic: str = "log") -> ReplicaLog:
        self.told = None if end is None else Epochs(leads=True, end=end, starts={})
        return scan(self.data, topic, address=ADDRESS)

    def end(self, end: int) -> int | None:
        self.told = Epochs(leads=True, end=end, starts={})
        return end_of(self.data, address=ADDRESS)


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    return Running(tmp_path, monkeypatch)


# --- stale records ---------------------------------------------------------------------------------------------
def test_records_behind_the_end_that_a_broker_says_are_no_part_of_its_log(running: Running) -> None:
    commit_log(running.data, (0, THREE + STALE + bytes(100)))
    for count in range(6):
        log = running.scan(count * SIZE)
        assert (count, (), ()) == (log.log_end_offset, log.problems, log.unread)
        assert ["m0", "m1", "m2", "x3", "x4"][:count] == values(log)
        assert count == running.end(count * SIZE)
    assert {str(ADDRESS)} == {*running.asked}


def test_broker_that_is_down_has_each_record_up_to_the_first_that_is_none(
    running: Running,
) -> None:
    """So it takes them at its next start: a truncation does not last."""
    commit_log(running.data, (0, THREE + STALE + bytes(100)))
    for log in (scan(running.data), running.scan(None)):
        assert (["m0", "m1", "m2", "x3", "x4"], 5, ()) == (values(log), log.log_end_offset, log.problems)
    # The copy of a folder has no address: nobody is asked.
    assert 1 == len(running.asked)


def test_end_is_asked_for_at_the_broker_s_own_address(tmp_path: Path) -> None:
    commit_log(tmp_path, (0, THREE + STALE))
    epochs(tmp_path, (1, 0))
    with server(answers(body=epoch_cache(2, 3 * SIZE))) as served:
        log = scan(tmp_path, address=served.address)
    assert ["GetEpochCache"] == [each.what for each in served.asked]
    assert (["m0", "m1", "m2"], ()) == (values(log), log.problems)


def test_broker_where_nobody_listens_is_down(tmp_path: Path) -> None:
    commit_log(tmp_path, (0, THREE + STALE))
    with nobody() as address:
        assert 5 == end_of(tmp_path, address=address)
        assert 5 == scan(tmp_path, address=address).log_end_offset


@pytest.mark.parametrize(
    "serve", [hangs_up, answers(code=1), answers(body=b"no JSON"), answers(body=b"[]"), answers(body=b"{}")]
)
def test_log_of_a_broker_that_runs_and_does_not_say_where_it_ends_is_not_read(
    tmp_path: Path, serve: Serve
) -> None:
    """What lies behind its end may be what it has cut off."""
    commit_log(tmp_path, (0, THREE + STALE))
    with server(serve) as served:
        assert end_of(tmp_path, address=served.address) is None
        log = scan(tmp_path, address=served.address)
    (problem,) = log.problems
    assert problem.startswith("commitlog: ")
    assert (0, ((0, None),), ()) == (log.log_end_offset, log.unread, log.batches)


def test_files_behind_the_end_are_not_read(running: Running) -> None:
    commit_log(running.data, (0, THREE), (3 * SIZE, STALE), (9000, b"\xff" * 500))
    log = running.scan(3 * SIZE)
    assert (["m0", "m1", "m2"], ()) == (values(log), log.problems)


def test_end_may_be_in_a_later_file(running: Running) -> None:
    at = 3 * SIZE + 80
    more = log_of(b"m3", b"m4", at=at, offset=3)
    commit_log(running.data, (0, THREE + blank(80)), (at, more + bytes(50)))
    for end, count in ((at, 3), (at + SIZE, 4), (at + 2 * SIZE, 5)):
        log = running.scan(end)
        assert ([f"m{number}" for number in range(count)], ()) == (values(log), log.problems)


# --- records that do not fit -----------------------------------------------------------------------------------
def test_record_that_says_another_byte_ends_the_log_of_a_broker_that_is_down(tmp_path: Path) -> None:
    """What a file had before it was used anew."""
    misplaced = record(b"old", 3 * SIZE, 3, says=Says(position=7))
    commit_log(tmp_path, (0, THREE + misplaced + log_of(b"m4", at=3 * SIZE + len(misplaced), offset=4)))
    log = scan(tmp_path)
    assert (["m0", "m1", "m2"], 3, ()) == (values(log), log.log_end_offset, log.problems)


def test_record_that_says_another_byte_is_a_problem_before_the_end(running: Running) -> None:
    misplaced = record(b"old", 3 * SIZE, 3, says=Says(position=7))
    commit_log(running.data, (0, THREE + misplaced))
    log = running.scan(3 * SIZE + len(misplaced))
    assert (["m0", "m1", "m2"], ((3, None),)) == (values(log), log.unread)
    assert (f"commitlog, byte {3 * SIZE}: a record that says that it is at byte 7",) == log.problems


@pytest.mark.parametrize("number", [0, 1, 2])
def test_damaged_record_ends_the_log_of_a_broker_that_is_down(tmp_path: Path, number: int) -> None:
    data = bytearray(THREE)
    data[number * SIZE + THREE.index(b"m0")] ^= 1
    commit_log(tmp_path, (0, bytes(data)))
    log = scan(tmp_path)
    assert (["m0", "m1", "m2"][:number], number, ()) == (values(log), log.log_end_offset, log.problems)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_damaged_record_is_a_problem_before_the_end_and_the_rest_is_read(running: Running, number: int) -> None:
    data = bytearray(THREE)
    data[number * SIZE + THREE.index(b"m0")] ^= 1
    commit_log(running.data, (0, bytes(data)))
    log = running.scan(3 * SIZE)
    assert [f"m{each}" for each in range(3) if each != number] == values(log)
    assert ((number, None),) == log.unread
    assert (
        f"commitlog, byte {number * SIZE}: record of {SIZE} bytes: its body has another checksum than it says"
    ) == log.problems[0]


def test_damage_is_a_problem_of_each_queue(running: Running) -> None:
    """Which queue it is of nobody knows: it says so itself."""
    data = THREE + record(b"x", 3 * SIZE, topic="etc", says=Says(crc=7))
    commit_log(running.data, (0, data))
    log = running.scan(len(data))
    assert (["m0", "m1", "m2"], 1, 1) == (
        values(log),
        len(log.problems),
        len(running.scan(len(data), "o").problems),
    )


@pytest.mark.parametrize("behind", [b"\xff" * 500, b"\0\0\0\x40\xda\xa3\x20\xa7"[:6] + b"\0" * 90])
def test_what_no_record_begins_with_ends_the_reading_and_is_a_problem_before_the_end(
    running: Running, behind: bytes
) -> None:
    commit_log(running.data, (0, THREE + behind + STALE))
    log = running.scan(3 * SIZE + len(behind) + 2 * SIZE)
    assert (["m0", "m1", "m2"], ((3, None),)) == (values(log), log.unread)
    assert log.problems[0].startswith(f"commitlog, byte {3 * SIZE}: size ")
    assert (["m0", "m1", "m2"], ()) == (values(scan(running.data)), scan(running.data).problems)


@pytest.mark.parametrize("tail", [bytes(500), b"", bytes(3)])
def test_log_that_ends_before_its_broker_says_is_a_problem(running: Running, tail: bytes) -> None:
    """Zeros, or a file that is shorter, where records were."""
    commit_log(running.data, (0, THREE + tail))
    log = running.scan(5 * SIZE)
    assert (["m0", "m1", "m2"], ((3, None),)) == (values(log), log.unread)
    said = f"commitlog, byte {3 * SIZE}: no record; expected one, as the log ends at byte {5 * SIZE}"
    assert (said,) == log.problems


def test_end_within_a_record_is_a_problem(running: Running) -> None:
    commit_log(running.data, (0, THREE))
    log = running.scan(3 * SIZE - 1)
    assert (["m0", "m1"], ((2, None),)) == (values(log), log.unread)


def test_file_that_is_missing_before_the_end_is_a_problem(running: Running) -> None:
    at = 3 * SIZE + 80
    commit_log(running.data, (0, THREE + blank(80)), (at, log_of(b"m3", at=at, offset=3)))
    path_of(running.data, at).unlink()
    log = running.scan(at + SIZE)
    assert (["m0", "m1", "m2"], ((3, None),)) == (values(log), log.unread)


def test_log_without_files_whose_broker_says_that_it_has_bytes_is_a_problem(running: Running) -> None:
    topics(running.data, {"log": 1})
    assert ((0, None),) == running.scan(SIZE).unread
    assert () == running.scan(0).problems


# --- any byte --------------------------------------------------------------------------------------------------
def is_noticed(log: ReplicaLog) -> bool:
    """Whether the log is told from a sound one: by a problem, a hole, or where it ends."""
    wrong = log.problems or log.unread or any(each.problem for each in log.batches)
    return bool(wrong or holes(log) or log.log_end_offset != 3)


def test_every_changed_byte_is_noticed_or_changes_nothing_that_is_compared(running: Running) -> None:
    commit_log(running.data, (0, THREE))
    sound = running.scan(len(THREE))
    assert not is_noticed(sound)
    for at in range(len(THREE)):
        path_of(running.data).write_bytes(THREE[:at] + bytes((THREE[at] ^ 1,)) + THREE[at + 1 :])
        log = running.scan(len(THREE))
        assert is_noticed(log) or [each.records for each in sound.batches] == [e.records for e in log.batches], at


def test_log_that_is_cut_at_any_byte_has_its_whole_records(running: Running) -> None:
    path = path_of(commit_log(running.data, (0, b"")))
    for at in range(len(THREE)):
        path.write_bytes(THREE[:at])
        whole = at // SIZE
        down, told = scan(running.data), running.scan(len(THREE))
        assert (whole, whole, ()) == (down.log_end_offset, told.log_end_offset, down.problems)
        assert ((whole, None),) == told.unread
