"""`fencepost agree` compares two suites run by run and names each difference down to the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from harness.cli.agree import End, differences
from harness.cli.main import main
from harness.model import EXIT_CODES, Anomaly, Kind
from harness.run.result import RunResult
from tests.checkers.story import Batches, Story
from tests.report.samples import sample_result, suite_of

LOG: Batches = [(0, ["m1.0", "m1.1"]), (1, ["m2.0"])]
LOST = Anomaly(
    kind=Kind.LOST, topic="t", partition=0, ranges=((1, 2),), nodes=("A",), epoch=3, sentence="at 0.1 s"
)


def suite(folder: Path, *, log: Batches = LOG, found: Sequence[Anomaly] = (LOST,), seed: int = 7) -> Path:
    """Store a suite of one run that ended with this log on A."""
    of = sample_result("kip101-1", "hw", anomalies=tuple(found))
    one = suite_of([of], seed=seed)
    (folder / of.run).mkdir(parents=True)
    one.write(folder / "suite.json")
    ops = Story({"m1": ["m1.0", "m1.1"], "m2": ["m2.0"]}).log("A", log).done().ops
    lines = "".join(op.to_json() + "\n" for op in ops)
    (folder / of.run / "history.jsonl").write_text(lines, encoding="utf-8")
    return folder


def agree(*folders: Path) -> int:
    return main(["agree", *map(str, folders)])


def test_suites_that_end_alike_agree_whatever_their_sentences_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = suite(tmp_path / "b", found=[replace(LOST, sentence="0.2 s")])
    assert EXIT_CODES["valid"] == agree(suite(tmp_path / "a"), other)
    assert "1 runs in both" in (out := capsys.readouterr().out)
    assert "1 agree in anomalies and in every record of every log, 0 differ; 0 in one suite only" in out


@pytest.mark.parametrize(("log", "printed"), [
    ([(0, ["m1.0", "m1.1"]), (2, ["m2.0"])], "epoch 1, m2.0 in the first, offset 2, epoch 2, m2.0 in the second"),
    ([(0, ["m1.0", "m1.9"]), (1, ["m2.0"])], "epoch 0, m1.1 in the first, offset 1, epoch 0, m1.9 in the second"),
    ([(0, ["m1.0", "m1.1"])], "offset 2, epoch 1, m2.0 in the first, no more record in the second"),
])  # fmt: skip
def test_record_that_differs_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], log: Batches, printed: str
) -> None:
    assert EXIT_CODES["invalid"] == agree(suite(tmp_path / "a"), suite(tmp_path / "b", log=log))
    (line, _) = capsys.readouterr().out.splitlines()
    assert line.startswith("kip101-1 under hw: log of A: offset ")
    assert line.endswith(printed)


@pytest.mark.parametrize(("found", "printed"), [
    ([], "only the first found lost 1-1 A (epoch 3)"),
    ([replace(LOST, epoch=4)], "only the second found lost 1-1 A (epoch 4)"),
    ([LOST, replace(LOST, kind=Kind.STUCK, ranges=(), epoch=None)], "only the second found stuck A"),
])  # fmt: skip
def test_anomaly_that_differs_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], found: list[Anomaly], printed: str
) -> None:
    assert EXIT_CODES["invalid"] == agree(suite(tmp_path / "a"), suite(tmp_path / "b", found=found))
    assert printed in capsys.readouterr().out


def test_log_that_one_side_lacks_is_a_difference() -> None:
    one = End(findings=[], logs={"A": [(0, 0, "m1.0")]})
    assert ["log of A: offset 0, epoch 0, m1.0 in the first, no more record in the second"] == differences(
        one, End(findings=[], logs={})
    )


class Counted(str):
    """A name that counts how often it is compared with another."""

    __slots__ = ()
    compared: ClassVar[int] = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def test_work_grows_with_the_number_of_runs_and_not_with_its_square() -> None:
    many = 400

    def named(number: int) -> RunResult:
        return replace(sample_result("kip101-1", "hw"), scenario=Counted(f"scenario-{number}"))

    one, other = suite_of(list(map(named, range(many)))), suite_of(list(map(named, range(many))))
    Counted.compared = 0
    assert all(other.result(each.scenario, each.protocol) for each in one.results)
    assert Counted.compared <= 4 * many


def test_work_grows_with_the_number_of_anomalies_and_not_with_their_square() -> None:
    many = 400

    def end() -> End:
        found = [(Counted(f"lost-{number}"), (), (), None) for number in range(many)]
        return End(findings=list(found), logs={})

    Counted.compared = 0
    assert [] == differences(end(), end())
    assert Counted.compared <= 6 * many


def test_suites_without_a_common_run_prove_nothing(tmp_path: Path) -> None:
    other = suite(tmp_path / "b")
    text = (other / "suite.json").read_text(encoding="utf-8").replace('"protocol": "hw"', '"protocol": "kip101"')
    (other / "suite.json").write_text(text, encoding="utf-8")
    assert EXIT_CODES["unknown"] == agree(suite(tmp_path / "a"), other)


def test_wrong_use_is_an_error_that_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert EXIT_CODES["usage"] == agree(suite(tmp_path / "a"), suite(tmp_path / "b", seed=8))
    assert "play one again with --seed" in capsys.readouterr().err
    assert EXIT_CODES["usage"] == agree(tmp_path / "a", tmp_path / "c")
    assert "suite.json: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(("broken", "why"), [
    (b"\x80\x04\x95\n\0\n", "history.jsonl: line 1: "),
    (b"", "history.jsonl: no line; expected a run's whole history"),
    (None, "history.jsonl: No such file or directory; expected a run's history"),
])  # fmt: skip
def test_run_whose_history_cannot_be_read_is_not_compared_and_the_rest_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: bytes | None, why: str
) -> None:
    """What was read of a broken history agreed with a whole one, since both lacked what was not read."""
    first, second = suite(tmp_path / "a"), suite(tmp_path / "b", found=[])
    (history,) = second.glob("*/history.jsonl")
    history.unlink()
    if broken is not None:
        history.write_bytes(broken)
    assert EXIT_CODES["unknown"] == agree(first, second)
    told, counts = capsys.readouterr().out.splitlines()
    assert told.startswith("kip101-1 under hw: not compared: ")
    assert why in told
    assert counts.endswith("0 agree in anomalies and in every record of every log, 0 differ; 0 in one suite only; "
                           "1 not compared")  # fmt: skip


def test_run_whose_folder_is_elsewhere_is_no_run_of_the_suite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = suite(tmp_path / "a")
    table = first / "suite.json"
    (run,) = [path.name for path in first.iterdir() if path.is_dir()]
    table.write_text(table.read_text("utf-8").replace(f'"run": "{run}"', f'"run": "../a/{run}"'), "utf-8")
    assert EXIT_CODES["usage"] == agree(first, first)
    assert "expected the name of a folder beside suite.json" in capsys.readouterr().err
