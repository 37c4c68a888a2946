"""Every target of the Makefile that plays runs stores them where RESULTS says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def command_of(target: str, *variables: str) -> str:
    """Return the command that a target would run."""
    make = ["make", "-n", "--no-print-directory", target, *variables]
    done = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    (found,) = (
        line
        for line in done.stdout.replace("\\\n", " ").splitlines()
        if line.strip().startswith(".venv/bin/fencepost")
    )
    return " ".join(found.split())


@pytest.mark.parametrize("target", ["test-kip101", "scenarios", "search", "test-kafka", "conform"])
def test_target_that_plays_runs_stores_them_where_results_says(target: str) -> None:
    assert '--results "a folder/kept"' in command_of(target, "RESULTS=a folder/kept")
    assert '--results "results"' in command_of(target)


def test_what_args_says_comes_last_and_counts() -> None:
    assert command_of("search", "ARGS=--results there").endswith('--results "results" --results there')


def test_summary_reads_where_the_others_store() -> None:
    assert "fencepost summary kept" in command_of("summary", "RESULTS=kept")


def test_every_target_has_a_test_of_its_own_beside_those_that_the_makefile_names() -> None:
    assert ".venv/bin/fencepost test mine --host local" in command_of("test-mine")
    words = command_of("test-mine", "TARGETS=/some/where", "PROTOCOL=2", "SCENARIO=one two", "HOST=docker")
    assert "fencepost test mine:2 --host docker --targets /some/where --scenario one --scenario two" in words
    assert command_of("test-kafka").startswith(".venv/bin/fencepost test-kafka --host local")
    assert command_of("test-kip101").startswith(".venv/bin/fencepost test-kip101 --host local")
