"""Ctrl-C or SIGTERM at any moment ends the command with exit code 130 and one line; it cleans up by itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cleanup.process import until
from tests.endings.command import (
    END_S_MAX,
    Running,
    all_outstanding,
    catching,
    cutting_power,
    left_of,
    op,
    opened,
    runs,
    started,
    starting_zookeeper,
)
from tests.endings.test_killed import left_in_engine
from tests.kept import exhaustive, keep
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("java")]

ONE_LINE = "fencepost: interrupted; everything that was started is down again\n"
CELLS = ("--scenario", "kip101-2", "--scenario", "kip101-3", "--protocol", "hw", "--seed", "1")
ONE_CELL = ("--scenario", "kip101-3", "--protocol", "hw", "--seed", "1")
SIGNALS = pytest.mark.parametrize(
    "number", keep([signal.SIGINT, signal.SIGTERM], signal.SIGTERM), ids=lambda number: number.name
)


@pytest.mark.parametrize(
    ("moment", "number"),
    keep(
        [
            pytest.param(catching, signal.SIGINT, id="importing"),
            pytest.param(opened, signal.SIGTERM, id="opened"),
            pytest.param(starting_zookeeper, signal.SIGINT, id="zookeeper"),
            pytest.param(op(0), signal.SIGTERM, id="first-op"),
            pytest.param(op(20), signal.SIGINT, id="starting-brokers"),
            pytest.param(cutting_power, signal.SIGTERM, id="power-loss"),
        ],
        "power-loss",
    ),
)
def test_signal_leaves_nothing_whatever_is_under_way(
    folder: Path, moment: Callable[[Running], bool], number: signal.Signals
) -> None:
    with started(folder, *CELLS) as running:
        running.reach(moment)
        running.process.send_signal(number)
        assert 130 == running.end(), running.output()
    assert ONE_LINE == running.errors()
    assert [] == left_of(folder)


@SIGNALS
def test_signal_takes_down_what_is_paused_held_and_mounted(
    folder: Path, paused: str, number: signal.Signals
) -> None:
    with started(folder, "--protocol", "hw", scenarios=paused) as running:
        running.reach(all_outstanding)
        assert [] != left_of(folder)
        running.process.send_signal(number)
        assert 130 == running.end(), running.output()
    assert ONE_LINE == running.errors()
    assert [] == left_of(folder)


def test_signals_that_follow_do_not_disturb_the_taking_down(folder: Path, paused: str) -> None:
    with started(folder, "--protocol", "hw", scenarios=paused) as running:
        running.reach(all_outstanding)
        # Like a terminal whose user holds Ctrl-C down: again and again, to the whole process group.
        until(lambda: not _interrupt_group(running) or running.process.poll() is not None, END_S_MAX)
        assert 130 == running.end(), running.output()
    assert ONE_LINE == running.errors()
    assert [] == left_of(folder)


def _interrupt_group(running: Running) -> bool:
    """Send SIGINT to the process group; return False when it no longer exists."""
    try:
        os.killpg(running.process.pid, signal.SIGINT)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.spark
@pytest.mark.parametrize(
    ("program", "number"),
    keep(
        [
            pytest.param("org.apache.spark", signal.SIGINT, id="starting"),
            pytest.param("checkers.spark.daemon", signal.SIGTERM, id="checking-SIGTERM"),
            pytest.param("checkers.spark.daemon", signal.SIGINT, id="checking-SIGINT"),
        ],
        "checking-SIGINT",
    ),
)
def test_signal_ends_spark_too(folder: Path, program: str, number: signal.Signals) -> None:
    with started(folder, *ONE_CELL) as running:
        running.reach(runs(program))
        os.killpg(running.process.pid, number)
        assert 130 == running.end(), running.output()
    assert running.errors().endswith(ONE_LINE)
    assert "Traceback" not in running.output()
    assert until(lambda: left_of(folder) == [], END_S_MAX), left_of(folder)


@pytest.mark.spark
@SIGNALS
@exhaustive
def test_signal_ends_spark_while_it_starts_beside_the_simulator(folder: Path, number: signal.Signals) -> None:
    with started(folder, "--host", "sim") as running:
        running.reach(runs("org.apache.spark"))
        os.killpg(running.process.pid, number)
        assert 130 == running.end(), running.output()
    assert running.errors().endswith(ONE_LINE)
    assert "Traceback" not in running.output()
    assert until(lambda: left_of(folder) == [], END_S_MAX), left_of(folder)


@pytest.mark.docker
@pytest.mark.parametrize(
    ("moment", "number"),
    keep(
        [
            pytest.param(opened, signal.SIGINT, id="network"),
            pytest.param(starting_zookeeper, signal.SIGTERM, id="zookeeper"),
            pytest.param(op(10), signal.SIGINT, id="starting-brokers"),
            pytest.param(cutting_power, signal.SIGTERM, id="power-loss"),
        ],
        "power-loss",
    ),
)
@exhaustive
def test_signal_leaves_no_container_and_no_network(
    folder: Path, moment: Callable[[Running], bool], number: signal.Signals
) -> None:
    with started(folder, "--host", "docker", *CELLS) as running:
        running.reach(moment)
        running.process.send_signal(number)
        assert 130 == running.end(), running.output()
    assert ONE_LINE == running.errors()
    assert [] == left_in_engine(folder)
