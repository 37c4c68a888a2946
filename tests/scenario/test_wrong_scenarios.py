"""
A wrong scenario is rejected when its file is read, before anything is started. The error names the file and line,
what was found, what was expected, and the nearest word.
"""

from __future__ import annotations

import os
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
hold requests fetch A -> B
await held fetch A -> B
cut A -> C
under kip380: kill A
await checkpoint A >= end(m1)
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
        (5, "settings keys=3 tombstones=m1,mm2", "'mm2'; expected groups of records: of m1, m2", "m2"),
        (5, "settings keys=3 tombstones=m1,m1", "a group twice; expected each once", ""),
        (5, "settings tombstones=m1", "records without keys; expected keys=NUMBER too", ""),
        # Verbs, nodes, groups, numbers.
        (10, "kil A", "one of produce", "kill"),
        (10, "under kip380: powerloss A", "one of produce", "power-loss"),
        (10, "kill A D", "a node or an aim: one of C, B, A", ""),
        (10, "kill", "a node or an aim: one of C, B, A", ""),
        (6, "produce m1 acks=2", "acks=0, acks=1 or acks=all", ""),
        (6, "produce m1 singly", "acks=0|1|all", ""),
        (6, "produce mm1 acks=all", "a group of records of the head: one of m1, m2", "m1"),
        (6, "produce m1 acks=all codec=gzp", "a codec: one of none, gzip", "gzip"),
        (6, "produce m1 acks=0 refused", "one batch that waits for its answer", ""),
        (6, "produce m1 acks=all for=1s", "a time such as 12ms", ""),
        (6, "produce m1 acks=all meenwhile", "[refused|meanwhile]", "meanwhile"),
        (6, "produce m1 acks=all age=1h", "a time such as 12ms", ""),
        # Links.
        (7, "hold request Fetch A -> B", "one of answers, requests", "requests"),
        (7, "hold requests Fetch A -> metadat", "an end of a link: one of C, B, A, metadata, *", "metadata"),
        (7, "hold requests fetsh A -> B", "a message: one of fetch", "fetch"),
        (7, "hold requests fetch A to B", "'->'", ""),
        (7, "hold requests fetch A -> metadat", "an end of a link: one of C, B, A, metadata, *", "metadata"),
        (7, "hold requests fetch A -> B from edn(m1)", "one of end(m1)", "end(m1)"),
        (9, "cut A -> C clsoe", "the end of the line", ""),
        (9, "delay requests fetch A -> B 0", "seconds, a number above 0", ""),
        (8, "release answers fetch A -> B", "one of requests fetch A -> B", "requests fetch A -> B"),
        (11, "heal A -> B", "one of cut A -> C", "cut A -> C"),
        (8, "await delayed fetch A -> C", "no step above makes such a rule", ""),
        # Conditions.
        (11, "await chekpoint A >= end(m2)", "one of elected", "checkpoint"),
        (11, "await checkpoint A > end(m2)", "one of =, >=", ">="),
        (11, "await leader is A", "'='", ""),
        (11, "require acked m1", "no step above produces m1 meanwhile", ""),
        (11, "await elected = non", "a node or none", "none"),
        # Variants and expectations.
        (10, "under kip308: kill A", "protocol 'kip308'; expected one of hw", "kip380"),
        (
            10,
            "under kip320+fence_fech=no: kill A",
            "rule 'fence_fech': no such rule; expected one of",
            "fence_fetch",
        ),
        (10, "under kip380 kill A", "'under PROTOCOL[, PROTOCOL]: STEP'", ""),
        (12, "expect hw: lsot m1", "expected none, hang, or one of lost", "lost"),
        (12, "expect hw: lost m3", "a group of records of the head: one of m1, m2", ""),
        (12, "expect hw: stuck D", "a node of the head: one of C, B, A", ""),
        (13, "expect kafak:2.1.1: none", "protocol 'kafak:2.1.1'; expected one of", "kafka"),
        # What would weaken a scenario in silence.
        (3, "nodes    A B replicas, C D replicas, E controller", "expected replicas once, and one controller", ""),
        (3, "nodes    A B replicas, C controller, A controller", "expected replicas once, and one controller", ""),
        (6, "nodes    A B replicas, C controller", "a second 'nodes'; expected one", ""),
        (1, "title", "'title' ends too soon", ""),
        (5, "settings min_isr=2 min_isr=1", "min_isr has a value already", ""),
        (6, "settings min_isr=1", "setting 'min_isr' has a value already", ""),
        (5, "settings min_isr=3", "expected at most 2, the number of replicas", ""),
        (10, "unless kip999: kill A", "protocol 'kip999'; expected one of hw", "kip279"),
        (10, "under kip380, kip380: kill A", "a protocol twice", ""),
        (10, "under kafka:9.9.9: kill A", "protocol 'kafka:9.9.9'; expected one of kafka:0.10.2.2", "kafka:3.9.1"),
        (10, "under kip380:2.2: kill A", "protocol 'kip380:2.2'; expected one of hw", "kip380"),
        (10, "under kip320+fence_fetch=off: kill A", "rule fence_fetch='off': expected one of", ""),
        (10, "under kip320+fence_fetch=no+fence_fetch=yes: kill A", "'fence_fetch' is changed twice", ""),
        (10, "under kip320+fence_fetch=yes: kill A", "kip320+fence_fetch=yes is kip320 itself", ""),
        (10, "kill A A", "'A' twice", ""),
        (10, "await isr = A B A", "'A' twice", ""),
        (10, "cut A -> A", "A -> A; expected two ends", ""),
        (10, "produce m1 acks=1", "line 6 sends m1 already", ""),
        (10, "under kip380: produce m1 acks=1", "line 6 sends m1 already", ""),
        (11, "await checkpoint A >= end(m2)", "no step produces m2", ""),
        (12, "expect hw: lost m2", "no step has m2 acknowledged", ""),
        (12, "expect hw: lost m1, lost m1", "'lost' twice", ""),
        (12, "expect hw: lost m1 m1", "a word twice", ""),
        (12, "expect hw: lost 15-11", "the smaller offset first", ""),
        (12, "expect hw: stuck A epoch 1 epoch 2", "a second epoch", ""),
        # Numbers that no run can reach.
        (4, "records  m1 100000000000", "expected at most 100000 records", ""),
        (4, f"records  m1 1..{'9' * 3000}", "expected at most 100000 records", ""),
        (4, "records  m1 60000, m2 50000", "110000 in all groups; expected at most 100000", ""),
        (4, "records  m1 60000, m2 m1+1", "120001 in all groups; expected at most 100000", ""),
        (4, "records  m1 0..4", "a group without a record", ""),
        (5, "settings heal_within_s=inf", "expected heal_within_s=a number above 0, up to 86400", ""),
        (5, "settings heal_within_s=1e300", "expected heal_within_s=a number above 0, up to 86400", ""),
        (5, f"settings replica_lag_ms_max={'9' * 3000}", "expected replica_lag_ms_max=a whole number from 1", ""),
        (3, f"nodes    {' '.join(f'A{n}' for n in range(99))} replicas, B controller", "100 of them", ""),
        (10, "pass 100000000000ms", "a time such as 12ms or 0.5ms, up to 86400000ms", ""),
        (10, f"pass {'9' * 3000}ms", "a time such as 12ms", ""),
        (10, "delay requests fetch A -> B 100000000000", "seconds, a number above 0 such as 0.5, up to 86400", ""),
        (6, "produce m1 acks=all for=100000000000ms", "a time such as 12ms", ""),
        (11, "await log A = 100000000000", "an offset: a number up to 1000000", ""),
        (11, f"await log A = {'9' * 3000}", "an offset: a number up to 1000000", ""),
        (12, "expect hw: lost 1-100000000000", "expected a whole number from 0 to 1000000", ""),
        (12, f"expect hw: lost {'9' * 3000}", "expected a whole number from 0 to 1000000", ""),
        (12, "expect hw: stuck A epoch 100000000000", "expected a whole number from 0 to 2147483647", ""),
        # What no editor shows.
        (1, "title    A\0title", "character U+0000 is not visible", ""),
        (1, "title    A\u202etitle", "character U+202E is not visible", ""),
        (10, "kill\u00a0A", "character U+00A0 is not visible", ""),
        (10, f"# {'x' * 5000}", "a line of 5002 characters; expected at most 4000", ""),
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


def test_file_as_windows_writes_it_is_read_alike(tmp_path: Path) -> None:
    path, other = tmp_path / "s.txt", tmp_path / "t" / "s.txt"
    other.parent.mkdir()
    path.write_text(RIGHT, encoding="utf-8")
    other.write_bytes(b"\xef\xbb\xbf" + RIGHT.replace("\n", "\r\n").replace("acks=all", "acks=all\t").encode())
    assert read_scenario(path) == read_scenario(other)


@pytest.mark.parametrize(
    ("under", "other"),
    [
        ("under hw", "under kip101"),
        ("under hw", "unless hw"),
        ("unless hw, kip380", "under kip380, hw"),
        ("under kip380+fence_fetch=no", "unless kip380"),
    ],
)
def test_group_may_be_sent_by_two_steps_of_which_each_variant_plays_one(
    tmp_path: Path, under: str, other: str
) -> None:
    path = tmp_path / "s.txt"
    steps = f"{under}: produce m2 acks=all\n{other}: produce m2 acks=1\n"
    path.write_text(RIGHT.replace("expect hw", f"{steps}expect hw"), encoding="utf-8")
    assert 8 == len(read_scenario(path).steps)
    path.write_text(RIGHT.replace("expect hw", f"{steps}unless kip279: produce m2 acks=1\nexpect hw"), "utf-8")
    with pytest.raises(UsageError, match=r"s.txt:14: .* sends m2 already"):
        read_scenario(path)


@pytest.mark.parametrize(("content", "expected"), [
    (b"", "s.txt:1: no line 'title'; expected one"),
    (b"\n\n", "s.txt:1: no line 'title'; expected one"),
    (b'{"cells": []}', "s.txt:1: no line 'title'; expected one"),
    (b"title    A title\nsource   \xff\n", "s.txt:2: byte 0xff is not UTF-8; expected a scenario file, in UTF-8"),
    (b"\x7fELF\x02\x01\x01\0\0", "s.txt:1: character U+007F is not visible; expected text and ordinary spaces"),
    (b"x" * 10_000_000, "s.txt: more than 1,048,576 bytes; expected a scenario file of at most that size"),
    (b"x" * 1_000_000, "s.txt:1: a line of 1000000 characters; expected at most 4000"),
    (b"\n" * 100_000, "s.txt: 100000 lines; expected at most 10000"),
    (None, "s.txt: Is a directory; expected a scenario file"),
])  # fmt: skip
def test_file_that_is_no_scenario_is_said_in_one_line(
    tmp_path: Path, content: bytes | None, expected: str
) -> None:
    path = tmp_path / "s.txt"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(UsageError) as raised:
        read_scenario(path)
    assert expected == str(raised.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize("of", [None, "pipe", "/dev/zero", "loop"])
def test_what_is_no_file_is_not_read(tmp_path: Path, of: str | None) -> None:
    path = tmp_path / "s.txt"
    if of == "pipe":
        os.mkfifo(path)
    elif of is not None:
        path.symlink_to(path if of == "loop" else of)
    expected = {None: "No such file", "loop": "Too many levels of symbolic links"}.get(of, "not a regular file")
    with pytest.raises(UsageError, match=f"s.txt: {expected}.*; expected a scenario file"):
        read_scenario(path)


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
