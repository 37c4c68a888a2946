"""harness/history/file.py: order, durability, torn and bad lines."""

from __future__ import annotations

import errno
import itertools
import logging
import threading
from pathlib import Path

import pytest

from harness.events import LineUnreadable
from harness.history.file import History, read_history
from harness.model import HistoryError, Op, OpType, Source


def _record(history: History, f: str = "step", **value: object) -> Op:
    return history.record_line(Source.RUNNER, "runner", OpType.INFO, f, value)


def test_history_reads_back_what_was_recorded(tmp_path: Path) -> None:
    ticks = itertools.count(1_000, 10)
    with History(tmp_path / "history.jsonl", clock=lambda: next(ticks)) as history:
        recorded = [_record(history, text="first\nline"), _record(history, "done")]
    assert [(0, 10, "step"), (1, 20, "done")] == [(op.index, op.time_ns, op.f) for op in recorded]
    assert recorded == read_history(tmp_path / "history.jsonl")


def test_history_has_line_in_the_file_when_record_returns(tmp_path: Path) -> None:
    with History(tmp_path / "history.jsonl") as history:
        op = _record(history, text="now")
        assert [op] == read_history(tmp_path / "history.jsonl")


def test_history_gives_one_order_when_many_threads_record(tmp_path: Path) -> None:
    heard: list[int] = []
    with History(tmp_path / "history.jsonl") as history:
        history.listeners.append(lambda op: heard.append(op.index))
        threads = [
            threading.Thread(target=lambda: [_record(history, pad="x" * 3_000) for _ in range(50)])
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ops = read_history(tmp_path / "history.jsonl")
    assert list(range(400)) == [op.index for op in ops]
    assert list(range(400)) == heard
    assert sorted(op.time_ns for op in ops) == [op.time_ns for op in ops]


def test_history_keeps_index_when_value_is_not_json(tmp_path: Path) -> None:
    with History(tmp_path / "history.jsonl") as history:
        with pytest.raises(TypeError):
            _record(history, value=object())
        assert 0 == _record(history).index


def test_history_copies_value_when_caller_changes_it_later(tmp_path: Path) -> None:
    value = {"text": "as recorded"}
    with History(tmp_path / "history.jsonl") as history:
        op = history.record_line(Source.RUNNER, "runner", OpType.INFO, "step", value)
    value["text"] = "changed"
    assert {"text": "as recorded"} == op.value


def test_history_refuses_a_listener_that_records(tmp_path: Path) -> None:
    with History(tmp_path / "history.jsonl") as history:
        history.listeners.append(lambda _op: (_record(history), None)[1])
        with pytest.raises(AssertionError, match="must not record"):
            _record(history)


def test_history_refuses_record_when_closed(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    history.close()
    history.close()
    with pytest.raises(HistoryError, match="'late' after the history was closed"):
        _record(history, "late")


def test_history_refuses_a_file_that_is_there(tmp_path: Path) -> None:
    History(tmp_path / "history.jsonl").close()
    with pytest.raises(HistoryError, match="already there"):
        History(tmp_path / "history.jsonl")


def test_read_history_drops_last_line_when_torn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "history.jsonl"
    with History(path) as history:
        first = _record(history)
        _record(history)
    path.write_bytes(path.read_bytes()[:-9])
    with caplog.at_level(logging.WARNING):
        assert [first] == read_history(path)
    assert "dropped the torn last line" in caplog.text


@pytest.mark.parametrize("bad", [b"{}", b"nonsense", b"\xff", b""])
def test_line_that_is_no_op_reads_as_an_op_that_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, bad: bytes
) -> None:
    path = tmp_path / "history.jsonl"
    with History(path) as history:
        _record(history)
    path.write_bytes(path.read_bytes() + bad + b"\n" + path.read_bytes())
    with caplog.at_level(logging.WARNING):
        first, strange, last = read_history(path)
    assert first == last
    assert "history.jsonl:2: " in caplog.text
    assert isinstance(strange.event, LineUnreadable)
    assert strange.event.error.startswith("line 2: ")
    assert ("collector", 1, first.time_ns) == (strange.process, strange.index, strange.time_ns)


def test_indexes_read_as_they_are_when_one_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with History(path) as history:
        for _ in range(3):
            _record(history)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    assert [0, 2] == [op.index for op in read_history(path)]


def test_history_that_lost_an_op_to_a_full_disk_refuses_all_later_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost op leaves no gap in the indexes, so a history that went on would look whole."""
    with History(tmp_path / "history.jsonl") as history:
        _record(history)
        with monkeypatch.context() as patch:
            patch.setattr(history, "_write", _full)
            with pytest.raises(HistoryError, match=r"lacks what was observed after op 0: .*No space left"):
                _record(history)
        with pytest.raises(HistoryError, match="No space left"):
            _record(history)
    assert 1 == len(read_history(tmp_path / "history.jsonl"))


def _full(_op: Op) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")
