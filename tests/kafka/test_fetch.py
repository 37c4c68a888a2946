"""Fetching jars: the announcement, the cache, and that only checked jars get their final names."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from harness.model import UsageError
from targets.kafka.fetch import INCOMING, PlainSource, fetch, plan
from targets.kafka.jars import Jar
from tests.kafka.cupboard import CONTENTS, jars, release, repository

WAIT_S_MAX = 20.0


class Stocked:
    """A source that returns its contents, and records the paths that it was asked for."""

    text = "a shelf"

    def __init__(self, contents: dict[str, bytes]) -> None:
        self.contents = contents
        self.asked: list[str] = []

    def bring(self, jars: Sequence[Jar], work: Path) -> Iterator[tuple[Jar, Path]]:
        for jar in jars:
            self.asked.append(jar.path)
            if jar.path not in self.contents:
                raise UsageError(f"{jar.path}: not on the shelf")
            file = work / jar.name
            file.write_bytes(self.contents[jar.path])
            yield jar, file


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.jar")}


def test_fetch_says_first_what_it_downloads_and_from_where(tmp_path: Path) -> None:
    said: list[str] = []
    fetch([release(tmp_path)], tmp_path / "cache", Stocked(dict(CONTENTS)), said.append)
    size = sum(map(len, CONTENTS.values())) / 1e6
    assert [f"Apache Kafka 9.9: 3 jars to download, {size:.1f} MB, from a shelf into {tmp_path / 'cache'}"] == said


def test_fetch_keeps_every_jar_at_its_path(tmp_path: Path) -> None:
    done = fetch([release(tmp_path)], tmp_path / "cache", Stocked(dict(CONTENTS)), print)
    assert CONTENTS == files(tmp_path / "cache")
    assert jars() == done.wanted
    assert not (tmp_path / "cache" / INCOMING).exists()


def test_fetch_asks_for_nothing_when_all_is_there(tmp_path: Path) -> None:
    repository(tmp_path / "cache")
    shelf, said = Stocked({}), list[str]()
    done = fetch([release(tmp_path)], tmp_path / "cache", shelf, said.append)
    assert ((), []) == (done.wanted, shelf.asked)
    assert [f"Apache Kafka 9.9: all 3 jars are in {tmp_path / 'cache'}, each as its checksum says"] == said


def test_jar_of_two_releases_is_fetched_once(tmp_path: Path) -> None:
    shelf = Stocked(dict(CONTENTS))
    fetch([release(tmp_path), release(tmp_path, "9.8")], tmp_path / "cache", shelf, print)
    assert sorted(CONTENTS) == sorted(shelf.asked)


def test_fetch_goes_on_where_it_failed(tmp_path: Path) -> None:
    first, *others = sorted(CONTENTS)
    with pytest.raises(UsageError, match="not on the shelf"):
        fetch([release(tmp_path)], tmp_path / "cache", Stocked({first: CONTENTS[first]}), print)
    shelf = Stocked(dict(CONTENTS))
    fetch([release(tmp_path)], tmp_path / "cache", shelf, print)
    assert others == shelf.asked


def test_jar_that_is_not_as_pinned_is_refused_and_not_kept(tmp_path: Path) -> None:
    wrong = {path: content[::-1] for path, content in CONTENTS.items()}
    with pytest.raises(UsageError, match=r"a shelf sent \d+ bytes with sha256 .*; expected .*; not kept"):
        fetch([release(tmp_path)], tmp_path / "cache", Stocked(wrong), print)
    assert {} == files(tmp_path / "cache")


def test_jar_that_was_changed_in_the_cache_is_fetched_again(tmp_path: Path) -> None:
    first = sorted(CONTENTS)[0]
    repository(tmp_path / "cache", {**CONTENTS, first: CONTENTS[first][::-1]})
    shelf = Stocked(dict(CONTENTS))
    fetch([release(tmp_path)], tmp_path / "cache", shelf, print)
    assert [first] == shelf.asked
    assert CONTENTS == files(tmp_path / "cache")


def test_what_a_killed_fetch_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "cache" / INCOMING / "half"
    left.mkdir(parents=True)
    fetch([release(tmp_path)], tmp_path / "cache", Stocked(dict(CONTENTS)), print)
    assert not left.exists()


def test_second_fetch_waits_and_takes_what_the_first_brought(tmp_path: Path) -> None:
    wanted, cache = release(tmp_path), tmp_path / "cache"
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Stocked):
        def bring(self, jars: Sequence[Jar], work: Path) -> Iterator[tuple[Jar, Path]]:
            begun.set()
            assert go_on.wait(WAIT_S_MAX)
            yield from super().bring(jars, work)

    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        go_on.set()

    first = threading.Thread(target=fetch, args=([wanted], cache, Slow(dict(CONTENTS)), print))
    first.start()
    assert begun.wait(WAIT_S_MAX)
    second = Stocked({})
    fetch([wanted], cache, second, say)
    first.join(WAIT_S_MAX)
    assert f"another fetch fills {cache}: waiting for it" == said[0]
    assert ([], CONTENTS) == (second.asked, files(cache))


def test_cache_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(UsageError, match=r"cache: File exists; expected a cache that can be written"):
        fetch([release(tmp_path)], tmp_path / "cache", Stocked({}), print)


def test_plan_counts_what_is_wanted(tmp_path: Path) -> None:
    first, *others = jars()
    repository(tmp_path / "cache", {first.path: CONTENTS[first.path]})
    found = plan([release(tmp_path)], tmp_path / "cache")
    assert (jars(), tuple(others)) == (found.jars, found.wanted)
    assert sum(jar.size for jar in others) == found.size


def test_plain_source_brings_the_files_of_a_repository(tmp_path: Path) -> None:
    repository(tmp_path / "shelf")
    fetch([release(tmp_path)], tmp_path / "cache", PlainSource((tmp_path / "shelf").as_uri()), print)
    assert CONTENTS == files(tmp_path / "cache")


def test_plain_source_reads_no_more_than_it_expects(tmp_path: Path) -> None:
    first = sorted(CONTENTS)[0]
    repository(tmp_path / "shelf", {**CONTENTS, first: CONTENTS[first] + b"x" * 1000})
    with pytest.raises(UsageError, match=rf"sent {len(CONTENTS[first]) + 1} bytes"):
        fetch([release(tmp_path)], tmp_path / "cache", PlainSource((tmp_path / "shelf").as_uri()), print)


def test_plain_source_says_that_it_cannot_be_reached(tmp_path: Path) -> None:
    source = PlainSource((tmp_path / "nowhere").as_uri())
    with pytest.raises(
        UsageError, match=r"nowhere cannot be reached: .*try again with a network, or name another"
    ):
        fetch([release(tmp_path)], tmp_path / "cache", source, print)


@pytest.mark.slow
def test_plain_source_tells_what_a_server_answered_instead(tmp_path: Path) -> None:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            """Log nothing."""

    (tmp_path / "shelf").mkdir()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "shelf")) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        try:
            source = PlainSource(f"http://127.0.0.1:{server.server_port}")
            with pytest.raises(UsageError, match=r"epoll-4\.1-linux-x86_64\.jar: 404 File not found"):
                fetch([release(tmp_path)], tmp_path / "cache", source, print)
        finally:
            server.shutdown()
            serving.join()
