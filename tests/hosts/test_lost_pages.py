"""A power loss is counted byte by byte, and a torn one leaves whole pages and zeros."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from harness.beneath import Folder
from harness.hosts.lost_pages import PAGE_BYTES, Lost, chosen_pages, contents, keep_pages, lost_between


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ({"log": b"abcd"}, {"log": b"abcd"}, Lost(written=4)),
        ({"log": b"abcd"}, {"log": b"ab"}, Lost(written=4, gone=2)),
        ({"log": b"abcd"}, {}, Lost(written=4, gone=4, names=1)),
        ({"log": b"ab"}, {"log": b"abcd"}, Lost(written=2, back=2)),
        ({}, {"log": b"abcd"}, Lost(back=4, names=1)),
        ({"log": b"abcd"}, {"log": b"a\0\0d"}, Lost(written=4, gone=2, zeros=2)),
        ({"log": b"abcd"}, {"log": b"axcd"}, Lost(written=4, gone=1)),
    ],
)
def test_loss_is_counted(before: dict[str, bytes], after: dict[str, bytes], lost: Lost) -> None:
    assert lost == lost_between(before, after)


def torn(tmp_path: Path, flushed: dict[str, bytes], written: dict[str, bytes], seed: int) -> dict[str, bytes]:
    """Return what a torn power loss leaves of files, of which some bytes were flushed."""
    with Folder.at(tmp_path) as folder:
        for name in contents(folder):
            folder.unlink(name)
        for path, content in flushed.items():
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_bytes(content)
        keep_pages(folder, written, Random(seed))
        return contents(folder)


def test_pages_that_chance_chooses_are_there_and_zeros_in_place_of_those_before_them(tmp_path: Path) -> None:
    old = b"x" * (5 * PAGE_BYTES + 100)
    seen = set()
    for seed in range(40):
        new = torn(tmp_path, {"t-0/log": old[:10]}, {"t-0/log": old}, seed)["t-0/log"]
        kept = chosen_pages(len(old), Random(seed))
        end = max([10, *(min(at + PAGE_BYTES, len(old)) for at in kept)])
        assert end == len(new)
        assert old[:10] == new[:10]
        for at in range(PAGE_BYTES, end, PAGE_BYTES):
            assert (b"x" if at in kept else b"\0") == new[at : at + 1]
        seen.add(lost_between({"log": old}, {"log": new}).zeros > 0)
    assert {True, False} == seen


def test_names_and_cuts_reached_the_disk_with_the_journal(tmp_path: Path) -> None:
    left = torn(tmp_path, {"gone": b"1", "log": b"abcdef"}, {"log": b"abc", "new": b""}, 1)
    assert {"log": b"abc", "new": b""} == left
