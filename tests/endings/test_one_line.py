"""A missing prerequisite is one line (name, value, what was expected, what to do) and exit code 2."""

from __future__ import annotations

import gc
import os
import shutil
import socket
import subprocess
from collections import namedtuple
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness import java
from harness.cli.main import main
from harness.hosts import site
from tests.endings.command import left_of
from tests.needs import needs

PORTS_TRIED_MAX = 100
ONE_CELL = ("--scenario", "kip101-1", "--protocol", "hw", "--power-tier", "watermark")


def refused(capsys: pytest.CaptureFixture[str], folder: Path, *options: str, results: Path | None = None) -> str:
    """Run the command, check that it fails with one line and leaves nothing, and return the line."""
    results = results if results is not None else folder / "results"
    assert 2 == main(["test-kip101", *ONE_CELL, "--results", str(results), *options])
    error = capsys.readouterr().err
    assert 1 == error.count("\n"), error
    assert [] == left_of(folder)
    return error


@pytest.mark.usefixtures("java_found")
def test_taken_ports_are_named_with_how_to_free_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ExitStack() as taken:
        first = take_two(taken)
        error = refused(capsys, folder, "--ports", f"{first}-{first + 1}")
    assert (
        f"fencepost: ports {first} to {first + 1} on 127.0.0.1: all taken; expected a free one; end what listens "
        "there (`ss -ltnp`) or another Fencepost of yours, or name others (--ports)\n"
    ) == error


def take_two(taken: ExitStack) -> int:
    """Listen on two adjacent ports and return the first."""
    for first in range(32700, 32700 - PORTS_TRIED_MAX, -2):
        with ExitStack() as trial:
            try:
                for port in (first, first + 1):
                    trial.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            taken.push(trial.pop_all())
            return first
    raise AssertionError(f"no two free ports below 32702 in {PORTS_TRIED_MAX} tries")


@pytest.mark.parametrize("text", ["20000", "9-5", "0-10", "60000-70000", "a-b"])
def test_range_of_ports_that_is_none_is_wrong_usage(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["test-kip101", "--ports", text])
    assert f"--ports: '{text}': expected FIRST-LAST, from 1 to 65535, as in 20000-20999" in capsys.readouterr().err


@pytest.mark.usefixtures("java_found")
def test_range_of_ports_is_refused_where_nodes_take_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(capsys, folder, "--host", "docker", "--ports", "20000-20010")
    assert "ports 20000 to 20010: containers take none of this machine's; expected no range" in error


@pytest.mark.usefixtures("java_found")
def test_too_little_disk_is_told_with_how_much_is_free_and_how_much_is_wanted(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(site.shutil, "disk_usage", lambda _path: usage(2**40, 2**40 - 2**24, 2**24))
    error = refused(capsys, folder)
    assert ": 16 MiB free; expected 1024 MiB; free some, or put the results elsewhere" in error
    assert str(folder / "results") in error


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.usefixtures("java_found")
def test_small_filesystem_is_too_little_disk(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(small)], check=True)
    try:
        assert 2 == main(["test-kip101", *ONE_CELL, "--results", str(small / "results")])
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert ": 8 MiB free; expected 1024 MiB; free some" in capsys.readouterr().err
    assert [] == left_of(folder)


@pytest.mark.slow
def test_broken_java_is_told_with_what_it_said(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = folder / "bin" / "java"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho libjvm.so is not what it was >&2\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(broken.parent), prepend=os.pathsep)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "USUAL_PLACES", ())
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda _name: None)
    assert (
        f"fencepost: Java: {broken} (PATH): does not run: exit 1, it said 'libjvm.so is not what it was'; "
        "expected a Java 17 to 25 that runs; install one, or `pip install 'fencepost[java]'`\n"
    ) == refused(capsys, folder)


@pytest.mark.usefixtures("java_found")
def test_engine_that_does_not_answer_is_told_with_how_to_start_one(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = folder / "docker.sock"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(dead))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{dead}")
    error = refused(capsys, folder, "--host", "docker")
    gc.collect()
    assert error.startswith(f"fencepost: Docker: no engine answers at unix://{dead} (")
    assert "Connection refused" in error
    assert "expected one; start it (`systemctl start docker`, or as root `dockerd &`), or set DOCKER_HOST" in error


@pytest.mark.parametrize(
    ("options", "near"),
    [
        (["--scenario", "kip101-1c"], "unknown scenario 'kip101-1c': expected one of kafka-6361-elect-15, "),
        (["--protocol", "kip-101"], "unknown protocol 'kip-101': expected one of hw, kip101, "),
        (["--rule", "truncate-to=high_watermark"], "rule 'truncate-to': no such rule; expected one of "),
        (["--rule", "truncate_to=high-watermark"], "rule truncate_to='high-watermark': expected one of "),
        (["--host", "dokcer"], "unknown host 'dokcer': expected one of docker, local, sim, ssh."),
        (["--target", "brokers"], "unknown target 'brokers': expected one of "),
    ],
)
def test_unknown_name_is_told_with_those_there_are_and_the_nearest(
    options: list[str], near: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(capsys, folder, *options)
    assert error.startswith(f"fencepost: {near}")
    assert " Did you mean '" in error
    assert False is (folder / "results").exists()


@pytest.mark.parametrize("jobs", ["0", "-1", "two"])
def test_number_of_jobs_that_plays_nothing_is_wrong_usage(jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["test-kip101", f"--jobs={jobs}"])
    assert f"--jobs: '{jobs}': expected a whole number from 1 to 512" in capsys.readouterr().err


@pytest.mark.usefixtures("java_found")
def test_results_that_cannot_be_written_are_told_with_why(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "file").touch()
    results = folder / "file" / "results"
    assert (
        f"fencepost: results folder {results}: Not a directory; expected a folder that can be written; name "
        "another (--results)\n"
    ) == refused(capsys, folder, results=results)


@pytest.mark.usefixtures("java_found")
@needs("plain-user")
def test_results_of_somebody_else_are_told_with_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o500)
    assert f"results folder {closed / 'results'}: Permission denied" in refused(
        capsys, folder, results=closed / "results"
    )
    shutil.rmtree(closed)


@pytest.mark.usefixtures("java_found")
@needs("plain-user")
def test_loop_tier_without_root_is_told_before_anything_starts(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(capsys, folder, "--power-tier", "loop")
    assert "fencepost: power tier loop: not root; expected root and loop devices\n" == error
