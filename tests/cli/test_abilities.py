"""`fencepost abilities` prints each row of the machine's table, why it is lacking, and what brings it."""

from __future__ import annotations

import pytest

from harness.cli import abilities
from harness.cli.main import main
from harness.machine.table import MACHINE, lacks
from harness.target.needs import Row

PLANTED = {
    "loop": Row(why_not=lambda: "", install="e2fsprogs", serves="power losses"),
    "tc": Row(why_not=lambda: "no tc\non PATH", install="iproute2", serves="late packets"),
}


def test_every_row_is_a_line_and_one_that_is_lacking_says_why_and_what_brings_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(abilities, "MACHINE", PLANTED)
    assert 0 == main(["abilities"])
    first, *rest = capsys.readouterr().out.splitlines()
    assert "loop             yes  power losses" == first
    lacking = ["tc               no   late packets", f"{'':22}no tc on PATH; install: iproute2"]
    assert lacking == rest
    assert 0 == main(["abilities", "--missing"])
    assert lacking == capsys.readouterr().out.splitlines()


def test_rows_answer_with_words_and_one_of_root_and_plain_user_is_lacking() -> None:
    assert 1 == sum(lacks(name) != "" for name in ("root", "plain-user"))
    assert all(row.install and row.serves for row in MACHINE.values())
    with pytest.raises(KeyError):
        lacks("no such row")
