"""Whatever a target's log reader does, a log ends in a bounded reading that names the target and the part."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import limits
from harness.bit_rot import Flip
from harness.logs import stream
from harness.logs.asked import ReaderError
from harness.logs.compare import compare
from harness.logs.guard import Guard
from harness.logs.record import Record
from harness.logs.replica import ReplicaLog
from harness.logs.stream import Open, RecordsReading, Unread, read_whole
from harness.model import UsageError, Verdict
from tests.logs.replicas import replica, seen

GUARD = Guard("toy")
ONE = Record(offset=0, epoch=1, value=b"a")
NAMED = "target toy, logs: "


class Reader:
    """A reading that does as it is told, and is a sound one of an empty log elsewhere."""

    def __init__(self, batches: Callable[[], Any] = lambda: iter(()), log: Callable[[], Any] = replica) -> None:
        self._batches = batches
        self._log = log
        self.closed = 0

    def batches(self, value_characters_max: int | None) -> Any:
        return self._batches()

    def log(self) -> Any:
        return self._log()

    def unsettled(self) -> str:
        return ""

    def close(self) -> None:
        self.closed += 1
        raise KeyError("close")


def of_batches(*batches: object, end: int = 0) -> Reader:
    return Reader(lambda: iter(batches), lambda: replica(end=end))


def guarded(opened: Open, files: Path) -> Open:
    return GUARD.opening(opened, "log", 0, files)


def read(opened: Callable[[], Any], files: Path) -> ReplicaLog:
    return read_whole(guarded(opened, files))


def problem_of(log: ReplicaLog) -> str:
    """Return the only problem, which is known to leave the rest of the log unread."""
    (problem,) = log.problems
    assert None in [end for _, end in log.unread]
    return problem


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the limits small enough to be met at once."""
    monkeypatch.setattr(limits, "LOG_BATCHES_MIN", 100)
    monkeypatch.setattr(limits, "LOG_FINDINGS_MAX", 20)
    monkeypatch.setattr(limits, "LOG_TEXT_CHARACTERS_MAX", 1_000)
    monkeypatch.setattr(limits, "FOLDER_NAMES_MAX", 10)


def test_sound_log_is_passed_as_it_is(tmp_path: Path) -> None:
    two = seen(2, "c d", epoch=1)
    log = read(lambda: Reader(lambda: iter([seen(0, "a b"), two]), lambda: replica(end=4)), tmp_path)
    assert replace(replica(seen(0, "a b"), two), topic="log") == log


def test_same_record_for_ever_ends(tmp_path: Path, few: None) -> None:
    log = read(lambda: RecordsReading("log", 0, itertools.repeat(ONE)), tmp_path)
    assert (1, 1) == (len(log.batches), log.log_end_offset)
    found = "a batch at offset 0 after one that ends at 1, and so for the 22th time"
    assert f"{NAMED}{found}; expected offsets that rise" == problem_of(log)


def test_damage_without_end_ends(tmp_path: Path, few: None) -> None:
    damage = (Unread(why=f"line {at}", first=at, end=at + 1) for at in itertools.count())
    log = read(lambda: RecordsReading("log", 0, damage), tmp_path)
    assert ("line 0", "more than 20 unreadable parts; the rest is not read") == (log.problems[0], log.problems[-1])
    assert (21, (20, None), 20) == (len(log.problems), log.unread[-1], log.log_end_offset)


def test_log_that_goes_back_says_so_although_its_reader_does_not(tmp_path: Path) -> None:
    records = [ONE, replace(ONE, offset=1), ONE, replace(ONE, offset=2), ONE]
    log = read(lambda: RecordsReading("log", 0, records), tmp_path)
    assert [0, 1, 0, 2, 0] == [batch.base for batch in log.batches]
    goes_back = "base offset is 0; expected {} or later, the end of the batch before it"
    problems = ["", "", goes_back.format(2), "", goes_back.format(3)]
    assert (problems, ()) == ([batch.problem for batch in log.batches], log.problems)


def test_problem_that_the_reader_found_is_passed_at_once(tmp_path: Path, few: None) -> None:
    back = replace(seen(0, "a"), problem="it goes back")
    log = read(lambda: Reader(lambda: itertools.repeat(back), lambda: replica(end=1)), tmp_path)
    assert {"it goes back"} == {batch.problem for batch in log.batches}
    assert (22, True) == (len(log.batches), "offsets that rise" in problem_of(log))


def test_new_records_for_ever_end_where_no_file_has_bytes_for_them(tmp_path: Path, few: None) -> None:
    (tmp_path / "log").write_bytes(bytes(150))
    endless = (Record(offset=at, value=b"") for at in itertools.count())
    log = read(lambda: RecordsReading("log", 0, endless), tmp_path)
    assert 150 == len(log.batches) == log.log_end_offset
    assert "number 151; expected at most 150, as the node's files have that many bytes or fewer" in problem_of(log)


def test_log_that_grows_while_it_is_read_is_read(tmp_path: Path, few: None) -> None:
    def growing() -> Iterator[Record]:
        for at in range(300):
            with (tmp_path / "log").open("ab") as file:
                file.write(b"x")
            yield Record(offset=at, value=b"")

    log = read(lambda: RecordsReading("log", 0, growing()), tmp_path)
    assert (300, ()) == (len(log.batches), log.problems)


def test_text_without_end_ends(tmp_path: Path, few: None) -> None:
    large = (Record(offset=at, value=b"x" * 400) for at in itertools.count())
    log = read(lambda: RecordsReading("log", 0, large), tmp_path)
    assert 2 == len(log.batches)
    assert f"{NAMED}values of 1200 characters, up to offset 2; expected at most 1000 at a time" == problem_of(log)


def test_comparison_holds_a_batch_s_text_alone_and_cuts_it(tmp_path: Path, few: None) -> None:
    (tmp_path / "log").write_bytes(bytes(1_000))
    large = (replace(seen(at, "x"), records=((at, "d", "x" * 400),)) for at in range(90))
    reading = guarded(lambda: Reader(lambda: large, lambda: replica(end=90)), tmp_path)()
    texts = {text for batch in reading.batches(5) for _, _, text in batch.records}
    assert ({"xxxxx…"}, ()) == (texts, reading.log().problems)


BATCH = seen(0, "a")


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        (None, "None"),
        ("a", "'a'"),
        (replace(BATCH, base="0"), "a batch whose numbers are ('0', 0, 0, 2, 0, 0)"),
        (replace(BATCH, last=2**70), "a batch whose numbers are (0, 1180591620717411303424, 0, 2, 0, 0)"),
        (replace(BATCH, epoch=True), "a batch whose numbers are (0, 0, True, 2, 0, 0)"),
        (replace(BATCH, segment=b"x"), "a batch at offset 0 whose texts are ('none', b'x', '', '')"),
        (replace(BATCH, records=[]), "records, or no tuple"),
        (replace(BATCH, records=((0, "d", "v"),) * (limits.LOG_BATCH_RECORDS_MAX + 1)), "records, or no tuple"),
        (replace(BATCH, records=((0, "d"),)), "a record (0, 'd') in the batch at offset 0"),
        (replace(BATCH, records=((0, b"d", "v"),)), "a record (0, b'd', 'v') in the batch at offset 0"),
        (replace(BATCH, records=((0, "d", b"v"),)), "a record (0, 'd', b'v') in the batch at offset 0"),
        (replace(BATCH, records=((0.5, "d", "v"),)), "a record (0.5, 'd', 'v') in the batch at offset 0"),
        (replace(BATCH, about=("a", "b")), "a batch at offset 0 with other texts about its 1 records"),
        (replace(BATCH, about=(1,)), "a batch at offset 0 with other texts about its 1 records"),
    ],
)
def test_batch_that_is_none_ends_the_log(batch: Any, says: str, tmp_path: Path) -> None:
    log = read(lambda: of_batches(seen(0, "first"), batch, seen(1, "never"), end=1), tmp_path)
    assert ["first"] == [text for each in log.batches for _, _, text in each.records]
    assert says in problem_of(log)
    assert problem_of(log).startswith(NAMED)


EMPTY = replica()


@pytest.mark.parametrize(
    ("log", "says"),
    [
        (None, "None"),
        (replace(EMPTY, log_end_offset=-1), "a log from 0 to -1, whose batches reach to None"),
        (replace(EMPTY, log_end_offset="9"), "a log from 0 to '9', cleaned to 0"),
        (replace(EMPTY, cleaned_to=None), "a log from 0 to 0, cleaned to None"),
        (replace(EMPTY, high_watermark="1"), "a high watermark '1'"),
        (replace(EMPTY, epochs=((1,),)), "epochs ((1,),)"),
        (replace(EMPTY, epochs=(("1", 0),)), "epochs (('1', 0),)"),
        (replace(EMPTY, epochs=((0, 0),) * (limits.EPOCHS_MAX + 1)), "epochs ((0, 0), (0, 0)"),
        (replace(EMPTY, unread=((0, "1"),)), "findings (((0, '1'),), (), ())"),
        (replace(EMPTY, unread=(0,)), "TypeError: "),
        (replace(EMPTY, problems=(1,)), "findings ((), (1,), ())"),
        (replace(EMPTY, problems=("x",) * (2 * limits.LOG_FINDINGS_MAX + 1)), "more than 20000 findings"),
    ],
)
def test_log_that_is_none_is_unread_as_a_whole(log: Any, says: str, tmp_path: Path) -> None:
    found = read(lambda: Reader(log=lambda: log), tmp_path)
    assert says in problem_of(found)
    assert problem_of(found).startswith(NAMED)
    assert ("log", 0, 0, 0) == (found.topic, found.partition, found.log_start_offset, found.log_end_offset)


def test_log_that_ends_before_its_batches_is_none(tmp_path: Path) -> None:
    found = read(lambda: of_batches(seen(0, "a b c"), end=2), tmp_path)
    assert "a log from 0 to 2, whose batches reach to 3" in problem_of(found)
    assert 3 == found.log_end_offset


def raising(*_: object) -> Any:
    raise KeyError("why\x1b[2J")


@pytest.mark.parametrize("opened", [raising, lambda: Reader(raising), lambda: Reader(log=raising)])
def test_reader_that_raises_is_a_problem_of_the_log(opened: Callable[[], Any], tmp_path: Path) -> None:
    assert f"{NAMED}KeyError: 'why\\\\x1b[2J'; expected " in problem_of(read(opened, tmp_path))


def test_reader_that_is_never_done_ends_with_its_last_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "SETTLE_S_MAX", 0.0)
    monkeypatch.setattr(Reader, "unsettled", lambda _: "it goes on")
    assert ("log-0: it goes on",) == read(Reader, tmp_path).problems
    monkeypatch.setattr(Reader, "unsettled", raising)
    assert NAMED in read(Reader, tmp_path).problems[0]


def test_reading_is_closed_and_may_fail_at_it(tmp_path: Path) -> None:
    reader = Reader()
    assert () == read(lambda: reader, tmp_path).problems
    assert 1 == reader.closed


def test_comparison_with_an_endless_log_is_unknown_and_names_the_part(tmp_path: Path, few: None) -> None:
    def endless() -> RecordsReading:
        return RecordsReading("log", 0, (Record(offset=at, value=b"") for at in itertools.count()))

    found = compare("log-0", {"A": guarded(endless, tmp_path), "B": guarded(endless, tmp_path)})
    assert Verdict.UNKNOWN is found.verdict
    assert all(NAMED in each.log.problems[0] for each in found.replicas.values())


def endless_names() -> Iterator[tuple[str, int]]:
    return (("t", number) for number in itertools.count())


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (endless_names, "more, up to ('t', 10)"),
        (lambda: [("t", -1)], "('t', -1)"),
        (lambda: [("t", "0")], "('t', '0')"),
        (lambda: ["t-0"], "'t-0'"),
        (lambda: [None], "None"),
        (lambda: 7, "TypeError: 'int' object is not iterable"),
        (raising, "KeyError"),
    ],
)
def test_partitions_that_are_none_are_an_error(ask: Any, says: str, few: None) -> None:
    with pytest.raises(ReaderError) as raised:
        GUARD.partitions(ask)
    expected = "expected the (topic, partition) of at most 10 replicas"
    assert str(raised.value).startswith(f"{NAMED}{says}")
    assert str(raised.value).endswith(expected)


def test_partitions_are_named_once() -> None:
    assert [("t", 0), ("t", 1)] == GUARD.partitions(lambda: [("t", 0), ("t", 1), ("t", 0)])


@pytest.mark.parametrize("path", ["../other/log", "/etc/passwd", "", 7, "a//b", None])
def test_file_outside_of_the_node_s_folder_is_an_error(path: Any) -> None:
    with pytest.raises(ReaderError, match=r"expected at most \d+ paths below the node's folder"):
        GUARD.paths(lambda: ["log", path])
    with pytest.raises(ReaderError, match="expected a Flip of one byte in a file below the node's folder"):
        GUARD.flip(lambda: Flip(path=path, position=0, before=0, after=1))


def test_answers_that_are_none_are_errors() -> None:
    assert (None, 3) == (GUARD.end(lambda: None), GUARD.end(lambda: 3))
    for end in ("3", 3.0, True, 2**80):
        with pytest.raises(ReaderError, match="expected an offset of 64 bits, or None"):
            GUARD.end(lambda end=end: end)
    with pytest.raises(ReaderError, match=r"expected a \(topic, partition\), or None"):
        GUARD.place(lambda: "log-0")  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("error", [OSError("disk"), UsageError("name")])
def test_errors_that_a_reader_may_raise_are_passed(error: Exception) -> None:
    def ask() -> int:
        raise error

    with pytest.raises(type(error)) as raised:
        GUARD.end(ask)
    assert error is raised.value


class Unshown:
    def __repr__(self) -> str:
        raise ValueError


def test_value_that_cannot_be_shown_is_named_by_its_type() -> None:
    with pytest.raises(ReaderError, match=r"a Unshown that cannot be shown \(ValueError\)"):
        GUARD.end(Unshown)  # type: ignore[arg-type, return-value]
