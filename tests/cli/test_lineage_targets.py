"""`lineage` reads the logs of the target that is named, in whose words it refuses a folder."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from harness import limits
from harness.cli import lineage
from harness.cli.main import main
from harness.logs.record import Record
from harness.logs.stream import RecordsReading
from harness.model import EXIT_CODES
from harness.target.logs import NodeFiles
from tests.logs.toy import TARGET, ToyLogs, toy

VALID, USAGE, UNKNOWN, INVALID = (EXIT_CODES[name] for name in ("valid", "usage", "unknown", "invalid"))


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the command find the toy."""
    found = lineage.target_of
    monkeypatch.setattr(lineage, "target_of", lambda name: TARGET if name == "toy" else found(name))


def written(folder: Path, text: str) -> str:
    folder.mkdir()
    (folder / "log").write_text(text)
    return str(folder)


def test_logs_of_one_file_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = written(tmp_path / "a", "1 m1\n1 m2\n2 m3\n"), written(tmp_path / "b", "1 m1\n1 m2\n3 x\n")
    assert INVALID == main(["lineage", "--target", "toy", one, other])
    printed = capsys.readouterr().out
    assert "log-0\n" in printed
    assert "histories fork at offset 2" in printed
    (tmp_path / "b" / "log").write_text("1 m1\n1 m2\n")
    assert VALID == main(["lineage", "--target", "toy", one, other])
    assert "is behind: it ends at 2, another at 3" in capsys.readouterr().out


def test_folder_of_another_system_is_refused_with_what_is_expected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = written(tmp_path / "a", "1 m1\n")
    assert USAGE == main(["lineage", one])
    assert "a: no logs of broker; expected segments (00000000000000000000.log), or" in capsys.readouterr().err
    (tmp_path / "a" / "log").unlink()
    assert USAGE == main(["lineage", "--target", "toy", one])
    assert "a: no logs of toy; expected a file `log`, one record a line" in capsys.readouterr().err


def test_target_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert USAGE == main(["lineage", "--target", "kafak", str(tmp_path)])
    assert (
        "unknown target 'kafak': expected one of broker, fluss, kafka, nats, rocketmq. Did you mean 'kafka'?"
        in capsys.readouterr().err
    )


class Endless(ToyLogs):
    """Yields one record for ever."""

    def reading(self, node: NodeFiles, topic: str, partition: int) -> RecordsReading:
        return RecordsReading(topic, partition, itertools.repeat(Record(offset=0, value=b"x")))


class Nonsense(ToyLogs):
    """Names replicas that are none."""

    def partitions(self, node: NodeFiles) -> list[tuple[str, int]]:
        return ["log-0"]  # type: ignore[list-item]


def test_reader_that_misbehaves_is_named_and_the_answer_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOG_FINDINGS_MAX", 20)
    one = written(tmp_path / "a", "1 m1\n")
    for logs, says in (
        (Endless(), "not read: target toy, logs: a batch at offset 0 after one that ends at 1, and so for"),
        (Nonsense(), "not read: target toy, logs: 'log-0'; expected the (topic, partition) of at most"),
    ):
        monkeypatch.setattr(lineage, "target_of", lambda _, logs=logs: toy(logs))
        assert UNKNOWN == main(["lineage", "--target", "toy", one])
        assert says in capsys.readouterr().out
