"""Without an extra, what needs it says in one line which extra to install, and exits with 2; all else works."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cleanup.undo import UNDO
from harness.extras import EXTRAS, lacks, remedy
from harness.hosts import images
from harness.hosts.faulty import LIBRARY, missing
from harness.model import UsageError
from harness.workload.plan import Clients, ConsumerPlan, Library, Place
from targets.kafka_family.clients.libraries import MODULES, lacking, stack_of
from tests.package import sources

# Hides every package of an extra, then runs one command after the other: [exit code, what it said].
PROGRAM = """
import contextlib, io, json, sys
hidden, commands = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(hidden))
from harness.cli.main import main
found = []
for words in commands:
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        found.append([main(words), said.getvalue()])
print(json.dumps(found))
"""

COMMANDS = {
    "clean": ("docker", "docker", "fencepost clean"),
    "play --host docker --scenario kip101-1": ("docker", "docker", "host docker"),
    "run --host docker": ("docker", "docker", "host docker"),
    "test-kafka --host docker": ("docker", "docker", "host docker"),
    "test-kip101 --host ssh --hosts {folder}/none.toml": ("ssh", "paramiko", "host ssh"),
    "run --host ssh --hosts {folder}/none.toml": ("ssh", "paramiko", "host ssh"),
    "run --host local --target kafka:0.10.2.2": (
        *("kafka", "confluent-kafka"),
        "host local, target kafka:0.10.2.2: client librdkafka",
    ),
    "test-kafka --release 0.10.2.2 --scenario kip101-1": ("kafka", "confluent-kafka", "client librdkafka"),
    "run --host local --schedule {folder}/one.txt": ("kafka", "aiokafka", "client aiokafka"),
}


@pytest.mark.slow
def test_command_without_its_extra_says_which_to_install_and_others_work(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text(
        "title  One\nsource  this test\nnodes A B replicas, C controller\nrecords m1 1\n"
        "consumer c1 log-0 client=aiokafka\nproduce m1 acks=all\nexpect kip380: none\n"
    )
    able = [["scenarios", "kip101-1"], ["run", "--host", "sim", "--seed", "1", "--seeds", "2", "--jobs", "1"]]
    lines = [line.format(folder=tmp_path).split() for line in COMMANDS]
    hidden = [module for packages in EXTRAS.values() for module in packages]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([hidden, [*able, *lines]])],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert 0 == done.returncode, done.stderr
    found = json.loads(done.stdout)
    assert [[0, ""], [0, ""]] == found[:2]
    for line, (code, said) in zip(COMMANDS, found[2:], strict=True):
        extra, package, who = COMMANDS[line]
        assert 2 == code, (line, said)
        assert said.startswith("fencepost: ") and 1 == said.count("\n"), said
        assert f"{who}: no Python package {package}; expected it installed; {remedy(extra)}\n" in said, said


def test_disks_that_fail_need_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "" == lacks("fuse")
    monkeypatch.setitem(sys.modules, LIBRARY, None)
    assert "no Python package mfusepy; expected it installed; `pip install 'fencepost[fuse]'`" == lacks("fuse")
    monkeypatch.setattr(Path, "exists", lambda _: True)
    monkeypatch.setattr("harness.hosts.faulty.shutil.which", lambda _: "/bin/fusermount3")
    assert lacks("fuse") == missing()


@pytest.mark.parametrize("library", MODULES)
def test_workload_goes_on_without_a_library_and_says_why(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ConsumerPlan(name="c1", places=(Place("log", 0),), client=library)
    assert {} == lacking(Clients(consumers=(plan,)))
    monkeypatch.setitem(sys.modules, MODULES[library], None)
    why = lacking(Clients(consumers=(plan,)))[library]
    assert why.endswith("; expected it installed; `pip install 'fencepost[kafka]'`")
    with pytest.raises(UsageError, match=f"client {library}: no Python package"):
        stack_of(library)


@pytest.mark.parametrize("kind", ["container", "network"])
def test_what_a_dead_run_left_in_docker_does_not_stop_a_run_that_has_no_docker(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is of the user, and the dead run may be of another environment."""
    monkeypatch.setitem(sys.modules, "docker", None)
    problem = UNDO[kind]({"name": "fencepost-x-A", "label": "fencepost.run=x"})
    assert f"{kind}s fencepost-x-A: no Python package docker; expected it installed; {remedy('docker')}" == problem


def test_programs_of_the_package_import_no_extra_before_they_run() -> None:
    """`python -m harness.hosts.images` was a traceback without the extra docker."""
    tops = {module for packages in EXTRAS.values() for module in packages}
    programs = {name for name, module in sources.modules().items() if "__main__" in module.words}
    assert {"harness.hosts.images", "harness.cli.main", "harness.java"} <= programs
    assert set() == programs & sources.needing(tops)


def test_images_are_not_built_without_the_extra_and_a_line_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "docker", None)
    assert 2 == images.main([])
    assert (
        f"harness.hosts.images: images: no Python package docker; expected it installed; "
        f"{remedy('docker')}\n" == capsys.readouterr().err
    )
