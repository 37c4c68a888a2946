"""The command line prints its help, and one clear line for each usage error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.commands import commands
from harness.cli.main import main
from harness.model import EXIT_CODES


@pytest.mark.parametrize("command", [[], *([name] for name in commands())])
def test_help_names_the_exit_codes(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    assert 0 == ended.value.code
    printed = " ".join(capsys.readouterr().out.split())
    assert all(f"{code} {word}" in printed for word, code in EXIT_CODES.items())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--scenario", "kip101-4"], "unknown scenario 'kip101-4': expected one of"),
        (["--protocol", "kip102"], "unknown protocol 'kip102': expected one of"),
        (["--rule", "truncate=x"], "rule 'truncate': no such rule; expected one of"),
        (
            ["--rule", "truncate_to=moon"],
            "rule truncate_to='moon': expected one of high_watermark, first_fetch, one_answer",
        ),
        (["--target", "kafca"], "unknown target 'kafca'"),
        (
            ["--host", "lokal", "--scenario", "kip101-1"],
            "unknown host 'lokal': expected one of docker, local, sim, ssh. Did",
        ),
    ],
)
def test_wrong_option_is_one_line_that_says_what_was_expected(
    options: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert EXIT_CODES["usage"] == main(["test-kip101", "--results", str(tmp_path), *options])
    error = capsys.readouterr().err
    assert expected in error
    assert 1 == len(error.strip().splitlines())


def test_command_without_a_name_is_wrong_usage() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "harness.cli.main"],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    line = f"fencepost: no command; expected one of {', '.join(commands())}. See `fencepost --help`\n"
    assert (2, line) == (ended.returncode, ended.stderr)


def test_command_waits_for_no_library_before_it_knows_that_it_needs_it() -> None:
    """They take from a quarter of a second to a second each, and a mistyped option needs none of them."""
    slow = ("pandas", "pyarrow", "pyspark", "networkx", "kio", "docker", "paramiko")
    modules = [commands()[name].module for name in ("run", "play", "test-kip101", "check", "lineage", "shrink")]
    script = (
        f"import sys, importlib; [importlib.import_module(name) for name in {modules}]; "
        f"print([name for name in {slow} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "[]\n" == done.stdout
