"""A target's files come from a server: pinned, each once, and on from where a fetch was killed."""

from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from harness.downloads import PART, Download, bring, cache_of
from harness.model import UsageError

BODY = bytes(range(256)) * 40


@dataclass
class Shop:
    """A server of one file, and the ranges that were asked of it."""

    url: str = ""
    body: bytes = BODY
    knows_ranges: bool = True
    asked: list[str] = field(default_factory=list)

    def file(self, path: str = "lib/a.tgz") -> Download:
        return Download(url=self.url, sha256=hashlib.sha256(BODY).hexdigest(), size=len(BODY), path=path)


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range", "")
            shop.asked.append(wanted)
            first = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and shop.knows_ranges else 0
            self.send_response(206 if first else 200)
            self.send_header("Content-Length", str(len(shop.body) - first))
            self.end_headers()
            self.wfile.write(shop.body[first:])

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    shop.url = f"http://127.0.0.1:{server.server_port}/a.tgz"
    yield shop
    server.shutdown()
    thread.join()
    server.server_close()


def test_file_is_brought_once_and_said(shop: Shop, tmp_path: Path) -> None:
    said: list[str] = []
    assert (shop.file(),) == bring([shop.file()], tmp_path / "c", said.append)
    assert BODY == (tmp_path / "c" / "lib" / "a.tgz").read_bytes()
    assert () == bring([shop.file()], tmp_path / "c", said.append)
    assert [""] == shop.asked
    assert f"1 files to download, 0.0 MB, into {tmp_path / 'c'}; 0 are there" == said[0]
    assert f"all 1 files are in {tmp_path / 'c'}, each as its checksum says" == said[1]


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_fetch_that_was_killed_goes_on_where_it_was(shop: Shop, tmp_path: Path, knows_ranges: bool) -> None:
    shop.knows_ranges = knows_ranges
    (tmp_path / f"a{PART}").write_bytes(BODY[:1000])
    bring([shop.file("a")], tmp_path, print)
    assert BODY == (tmp_path / "a").read_bytes()
    assert ["bytes=1000-"] == shop.asked
    assert not (tmp_path / f"a{PART}").exists()


@pytest.mark.parametrize("body", [BODY[:-1], BODY + b"x", b"y" + BODY[1:]])
def test_wrong_file_is_not_kept(shop: Shop, tmp_path: Path, body: bytes) -> None:
    shop.body = body
    with pytest.raises(UsageError, match=f"a.tgz: {len(body)} bytes with sha256 .* expected {len(BODY)} bytes"):
        bring([shop.file("a")], tmp_path, print)
    assert ["fetch.lock"] == [each.name for each in tmp_path.iterdir()]


def test_damaged_file_is_brought_anew(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(BODY[:-1] + b"?")
    bring([shop.file("a")], tmp_path, print)
    assert BODY == (tmp_path / "a").read_bytes()


def test_server_that_is_not_there_is_told(shop: Shop, tmp_path: Path) -> None:
    gone = replace(shop.file("a"), url="http://127.0.0.1:1/a.tgz")
    with pytest.raises(UsageError, match=r"127.0.0.1:1/a.tgz: .*Connection refused.*try again with a network"):
        bring([gone], tmp_path, print)


def test_cache_that_cannot_be_written_is_told(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"file: .*expected a cache that can be written"):
        bring([shop.file("a")], tmp_path / "file", print)


@pytest.mark.parametrize(
    ("path", "digest"), [("../a", "0" * 64), ("/a", "0" * 64), ("", "0" * 64), ("a", "0" * 63), ("a", "A" * 64)]
)
def test_download_that_cannot_be_right_is_refused(path: str, digest: str) -> None:
    with pytest.raises(UsageError, match="download http://x: "):
        Download(url="http://x", sha256=digest, size=1, path=path)


def test_cache_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert Path("/x/fencepost/mine") == cache_of("mine")
