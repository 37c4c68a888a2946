"""A file that a user named is read whole, or told in one line with what was expected."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.input_file import read_text
from harness.model import UsageError


def test_text_is_read_without_its_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbfm\xc3\xa9\r\n")
    assert "m\u00e9\r\n" == read_text(tmp_path / "f", "a text", 8)


@pytest.mark.parametrize(("content", "said"), [
    (b"123456789", "f: more than 8 bytes; expected a text of at most that size"),
    (b"a\nb\n\xfe", "f:3: byte 0xfe is not UTF-8; expected a text, in UTF-8"),
])  # fmt: skip
def test_file_that_is_no_such_text_is_told(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "f").write_bytes(content)
    assert said == refused(tmp_path / "f")


def test_what_is_no_regular_file_is_told_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    (tmp_path / "g").symlink_to("/dev/zero")
    (tmp_path / "h").mkdir()
    assert [
        "f: not a regular file; expected a text",
        "g: not a regular file; expected a text",
        "h: Is a directory; expected a text",
        "i: No such file or directory; expected a text",
        "i" * 300 + ": File name too long; expected a text",
    ] == [refused(tmp_path / name) for name in ("f", "g", "h", "i", "i" * 300)]


def refused(path: Path) -> str:
    with pytest.raises(UsageError) as raised:
        read_text(path, "a text", 8)
    return str(raised.value).replace(f"{path.parent}/", "")
