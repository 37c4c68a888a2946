"""A seed determines its run, event by event and effect by effect; a difference is named at its first step."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from targets.simulator.engine.trace import Detail, Trace, first_difference
from tests.simulator.storm import Storm

ROOT = Path(__file__).resolve().parents[3]
HASH_SEEDS = ("0", "4711")
SEEDS = 3


def hashes(hash_seed: str) -> str:
    """Return the trace hashes of some storms, from a process with this hash seed."""
    found = subprocess.run(
        [sys.executable, "-m", "tests.simulator.storm", "0", str(SEEDS)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout


def traced(seed: int, detail: Detail) -> Trace:
    """Return a storm's trace, with every line kept."""
    trace = Trace(detail, keep=True)
    Storm(seed, trace=trace).run(actions=15)
    return trace


@pytest.mark.slow
def test_seeds_give_the_same_runs_in_processes_with_different_hash_seeds() -> None:
    one, other = (hashes(hash_seed) for hash_seed in HASH_SEEDS)
    assert one == other
    assert SEEDS == len({line.split()[1] for line in one.splitlines()})


def test_seed_gives_the_same_run_twice_whatever_the_detail() -> None:
    for detail in (Detail.EVENTS, Detail.FULL):
        one, other = traced(7, detail), traced(7, detail)
        assert None is first_difference(one.lines, other.lines)
        assert one.digest == other.digest
    assert traced(7, Detail.EVENTS).digest != traced(7, Detail.FULL).digest


def test_first_difference_of_two_runs_is_named_by_its_step() -> None:
    one, other = traced(7, Detail.FULL), traced(8, Detail.FULL)
    assert one.digest != other.digest
    named = first_difference(one.lines, other.lines)
    assert named is not None
    number = int(named.partition(":")[0].removeprefix("step "))
    assert one.lines[:number] == other.lines[:number]
    assert one.lines[number] != other.lines[number]
    assert {one.lines[number], other.lines[number]} <= {line.strip() for line in named.splitlines()}


def test_run_that_ends_sooner_differs_where_the_other_goes_on() -> None:
    assert "step 2:\n  nothing\n  c" == first_difference(["a", "b"], ["a", "b", "c"])


def test_trace_of_no_detail_keeps_and_hashes_nothing() -> None:
    trace = Trace(Detail.NONE, keep=True)
    Storm(7, trace=trace).run(actions=3)
    assert ([], Trace().digest) == (trace.lines, trace.digest)
