"""Of copies from different moments it is said what the protocol allows: below both high watermarks, nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.logs.lawful import Law, Ruling, of_behind, of_difference, of_note, overall
from harness.logs.lineage import Behind, Difference, DifferenceKind, Holding
from harness.logs.soundness import Note
from harness.model import EXIT_CODES, Kind
from tests.targets.kafka_family.logs.build import TIME_MS, batch, partition, record

INVALID, VALID = EXIT_CODES["invalid"], EXIT_CODES["valid"]
L, F, U = Law.LAWFUL, Law.FORBIDDEN, Law.UNKNOWN


def difference(*groups: int | None, first: int = 2, end: int = 6) -> Difference:
    holdings = tuple(Holding(replica=name, group=group) for name, group in zip("ABC", groups, strict=False))
    return Difference(kind=DifferenceKind.CONTENT, first=first, end=end, holdings=holdings)


@pytest.mark.parametrize(
    ("groups", "marks", "expected"),
    [
        # Source: KIP-101, "Why does Kafka need the leader epoch?": what is below a high watermark is committed.
        ((0, 1), (6, 6), [(2, 6, F)]),
        ((0, 1), (9, 6), [(2, 6, F)]),
        ((0, 1), (4, 9), [(2, 4, F), (4, 6, L)]),
        ((0, 1), (9, 3), [(2, 3, F), (3, 6, L)]),
        ((0, 1), (2, 9), [(2, 6, L)]),
        ((0, 1), (0, 0), [(2, 6, L)]),
        # A hole is a difference like another.
        ((0, None), (5, 5), [(2, 5, F), (5, 6, L)]),
        # Two that agree prove nothing against each other, however high their high watermarks.
        ((0, 0, 1), (9, 9, 2), [(2, 6, L)]),
        ((0, 0, 1), (9, 2, 4), [(2, 4, F), (4, 6, L)]),
        ((0, 1, 2), (3, 5, 9), [(2, 5, F), (5, 6, L)]),
        # Nobody knows what is below a high watermark that is not known; the other one still bounds it.
        ((0, 1), (None, 9), [(2, 6, U)]),
        ((0, 1), (None, 4), [(2, 4, U), (4, 6, L)]),
        ((0, 1), (None, None), [(2, 6, U)]),
        ((0, 1), (None, 1), [(2, 6, L)]),
        ((0, 1, 1), (4, 4, None), [(2, 4, F), (4, 6, L)]),
        ((0, 1, 1), (5, 3, None), [(2, 3, F), (3, 5, U), (5, 6, L)]),
    ],
)
def test_difference_is_forbidden_where_both_sides_are_committed(
    groups: tuple[int | None, ...], marks: tuple[int | None, ...], expected: list[tuple[int, int, Law]]
) -> None:
    rulings = of_difference(difference(*groups), dict(zip("ABC", marks, strict=False)))
    assert expected == [(each.first, each.end, each.law) for each in rulings]
    assert all(each.why for each in rulings)


def test_worst_of_all_rulings_is_that_of_the_partition() -> None:
    def ruling(law: Law) -> Ruling:
        return Ruling(first=0, end=1, law=law, why="")

    assert [L, L, U, F] == [overall(map(ruling, laws)) for laws in ([], [L], [L, U], [L, U, F])]


def test_replica_that_is_behind_is_lawful_and_what_contradicts_a_log_is_not() -> None:
    behind = Behind(replica="B", log_end_offset=3, furthest=9)
    assert [L, L] == [of_behind(behind, {"A": mark, "B": 3}).law for mark in (3, 8)]
    assert "in-sync" in of_behind(behind, {"A": 8, "B": 3}).why

    def note(kind: Kind | None, *, after_crash: bool = False) -> Law:
        return of_note(Note(kind=kind, first=1, end=1, text="", after_crash=after_crash)).law

    assert [F, F, L] == [note(kind) for kind in (Kind.HOLE, Kind.DISORDER, None)]
    assert [U, U] == [note(kind, after_crash=True) for kind in (Kind.CHECKPOINT, None)]


def pair(folder: Path, *, marks: tuple[int, int], second: bytes) -> list[str]:
    """Store two replicas that agree at offset 0; return the words of the command that compares them."""
    for name, mark, tail in (("a", marks[0], batch(1, "x", epoch=1)), ("b", marks[1], second)):
        (folder / name).mkdir()
        partition(folder / name, batch(0, "m", epoch=0), tail, epochs=[(0, 0), (1, 1)])
        (folder / name / "replication-offset-checkpoint").write_text(f"0\n1\nt 0 {mark}\n")
    return ["lineage", str(folder / "a"), str(folder / "b")]


@pytest.mark.parametrize(
    ("marks", "law", "words"),
    [
        ((2, 2), F, "offset 1: no protocol allows this: committed on both sides: below "),
        ((2, 1), L, "offset 1: lawful: not committed from the high watermark on ("),
        ((0, 0), L, "offset 1: lawful: not committed from the high watermark on ("),
    ],
)
def test_command_says_it_in_words_and_in_json_and_exits_4_as_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], marks: tuple[int, int], law: Law, words: str
) -> None:
    command = pair(tmp_path, marks=marks, second=batch(1, "y", epoch=1))
    assert INVALID == main(command)
    text = capsys.readouterr().out
    assert words in text
    assert ("in 1 of them all of it is lawful" in text) == (law is L)
    assert INVALID == main([*command, "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    (one,) = found["partitions"]
    assert (law, [law]) == (one["law"], [each["law"] for each in one["differences"][0]["rulings"]])
    assert (law is L) == found["counts"]["lawful"]


def test_command_says_that_being_behind_is_lawful_and_exits_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = pair(tmp_path, marks=(2, 1), second=b"")
    (tmp_path / "b" / "t-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    assert VALID == main(command)
    assert "is behind: it ends at 1, another at 2; lawful: out of the in-sync replicas" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("second", "differs"),
    [
        (record(0, b"x", time_delta=5), f"timestamp {TIME_MS + 5}, value 1 bytes"),
        (record(0, b"x", key=b"k"), "key 'k', timestamp"),
        (record(0, b"x", headers=[(b"h", b"1")]), "headers 'h=1', digest"),
    ],
)
def test_records_whose_values_are_alike_are_not_printed_as_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], second: bytes, differs: str
) -> None:
    main(pair(tmp_path, marks=(2, 2), second=batch(1, "x", epoch=1, payload=second)))
    lines = capsys.readouterr().out.splitlines()
    about = [line for line in lines if "digest" in line]
    assert 2 == len({*about})
    assert differs in about[1]


def test_values_that_only_begin_alike_are_not_printed_as_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = pair(tmp_path, marks=(2, 2), second=batch(1, "y" * 90 + "2", epoch=1))
    partition_of_a = tmp_path / "a" / "t-0"
    segment = partition_of_a / f"{0:020d}.log"
    segment.write_bytes(batch(0, "m", epoch=0) + batch(1, "y" * 90 + "1", epoch=1))
    main(words)
    assert 2 == len({line for line in capsys.readouterr().out.splitlines() if "digest" in line})
