"""
A wrong scenario is rejected when its file is read, before anything is started. The error names the file and line,
what was found, what was expected, and the nearest word.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model import UsageError
from harness.suite.scenario_files import read_scenario

RIGHT = """title    A title
source   KIP-101, Scenario 1
nodes    B A replicas, C controller
records  m1 1..4, m2 m1+1..m1+3
settings min_isr=2
produce m1 acks=all
hold requests Fetch A -> B
await held Fetch A -> B
cut A -> C
under kip380: kill A
await checkpoint A >= end(m2)
expect hw: lost m1
expect kip320+fence_fetch=no: none
"""


def read(folder: Path, text: str) -> str:
    """Read a file with this text; return the error, with the folder left out."""
    path = folder / "s.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        read_scenario(path)
    return str(raised.value).replace(f"{folder}/", "")


def test_right_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_text(RIGHT, encoding="utf-8")
    assert RIGHT.splitlines()[5:11] == [step.text for step in read_scenario(path).steps]


@pytest.mark.parametrize(
    ("line", "wrong", "expected", "near"),
    [
        # Heads.
        (1, "titel    A title", "no line 'title'", "title"),
        (3, "nodes    B A replica, C controller", "'A B replicas' or 'C controller'", "replicas"),
        (4, "records  m1 1..4, m2 m0+1..m0+3", "'m0' is not counted before it", ""),
        (4, "records  m1 4..1, m2 2", "the smaller number first", ""),
        (5, "settings min_irs=2", "NAME=VALUE with a name of unclean_election, min_isr", "min_isr"),
        # Verbs, nodes, groups, numbers.
        (10, "kil A", "one of produce", "kill"),
        (10, "under kip380: powerloss A", "one of produce", "power-loss"),
        (10, "kill A D", "a node: one of C, B, A", ""),
        (10, "kill", "a node: one of C, B, A", ""),
        (6, "produce m1 acks=2", "acks=0, acks=1 or acks=all", ""),
        (6, "produce m1 singly", "acks=0|1|all", ""),
        (6, "produce mm1 acks=all", "a group of records of the head: one of m1, m2", "m1"),
        (6, "produce m1 acks=all codec=gzp", "a codec: one of none, gzip", "gzip"),
        (6, "produce m1 acks=0 refused", "one batch that waits for its answer", ""),
        (6, "produce m1 acks=all for=1s", "a time such as 12ms", ""),
        (6, "produce m1 acks=all meenwhile", "[refused|meanwhile]", "meanwhile"),
        # Links.
        (7, "hold request Fetch A -> B", "one of answers, requests", "requests"),
        (7, "hold requests Fetsh A -> B", "an api: one of question", "Fetch"),
        (7, "hold requests Fetch A to B", "'->'", ""),
        (7, "hold requests Fetch A -> zookeper", "an end of a link: one of C, B, A, zookeeper, *", "zookeeper"),
        (7, "hold requests Fetch A -> B from edn(m1)", "one of end(m1)", "end(m1)"),
        (9, "cut A -> C clsoe", "the end of the line", ""),
        (9, "delay requests Fetch A -> B 0", "seconds, a number above 0", ""),
        (8, "release answers Fetch A -> B", "one of requests Fetch A -> B", "requests Fetch A -> B"),
        (11, "heal A -> B", "one of cut A -> C", "cut A -> C"),
        (8, "await delayed Fetch A -> C", "no step above makes such a rule", ""),
        # Conditions.
        (11, "await chekpoint A >= end(m2)", "one of elected", "checkpoint"),
        (11, "await checkpoint A > end(m2)", "one of =, >=", ">="),
        (11, "await leader is A", "'='", ""),
        (11, "require acked m1", "no step above produces m1 meanwhile", ""),
        (11, "await elected = non", "a node or none", "none"),
        # Variants and expectations.
        (10, "under kip308: kill A", "protocol 'kip308'; expected one of hw", "kip380"),
        (10, "under kip320+fence_fech=no: kill A", "rule 'fence_fech'; expected one of", "fence_fetch"),
        (10, "under kip380 kill A", "'under PROTOCOL[, PROTOCOL]: STEP'", ""),
        (12, "expect hw: lsot m1", "expected none, hang, or one of lost", "lost"),
        (12, "expect hw: lost m3", "a group of records of the head: one of m1, m2", ""),
        (12, "expect hw: stuck D", "a node of the head: one of C, B, A", ""),
        (13, "expect kafak:2.1.1: none", "protocol 'kafak'; expected one of", "kafka"),
    ],
)
def test_wrong_line_is_said_with_its_place_what_was_expected_and_the_nearest_word(
    tmp_path: Path, line: int, wrong: str, expected: str, near: str
) -> None:
    lines = RIGHT.splitlines()
    lines[line - 1] = wrong
    said = read(tmp_path, "\n".join(lines))
    assert said.startswith(f"s.txt:{line}: ")
    assert expected in said
    assert (f"{near!r}?" if near else "") == said.partition("Did you mean ")[2]


def test_word_too_many_is_said_with_the_form_that_was_read(tmp_path: Path) -> None:
    said = read(tmp_path, RIGHT.replace("cut A -> C", "cut A -> C close now"))
    assert (
        "s.txt:9: 'cut A -> C close now': 'now'; expected the end of the line, after 'cut A ->|<-> B [close]'"
        == said
    )


def test_second_title_is_wrong(tmp_path: Path) -> None:
    assert "s.txt:2: 'title another': a second 'title'; expected one" == read(
        tmp_path, RIGHT.replace("source   KIP-101, Scenario 1", "title another\nsource x")
    )


def test_option_twice_is_wrong(tmp_path: Path) -> None:
    said = read(tmp_path, RIGHT.replace("acks=all", "acks=all acks=1"))
    assert said.startswith("s.txt:6: 'produce m1 acks=all acks=1': 'acks=1'; expected some of [singly]")
