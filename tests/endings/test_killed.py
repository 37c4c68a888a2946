"""The harness is killed at any moment; the next run cleans up everything it left."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cleanup.ledger import reap
from harness.cleanup.process import until
from harness.hosts import HOSTS
from tests.endings.command import (
    END_S_MAX,
    Running,
    all_outstanding,
    cutting_power,
    left_of,
    op,
    opened,
    runs,
    started,
    starting_zookeeper,
)
from tests.kept import exhaustive, keep
from tests.needs import lacks, needs

pytestmark = [pytest.mark.slow, needs("java")]

# Seven moments in runs with power losses, drawn once: about 140 ops in a run, two runs in parallel.
DRAWN = sorted(random.Random(101).sample(range(270), 7))
CELLS = ("--scenario", "kip101-2", "--scenario", "kip101-3", "--protocol", "hw", "--seed", "1")
MOMENTS = [
    pytest.param(opened, id="opened"),
    pytest.param(starting_zookeeper, id="zookeeper"),
    *(pytest.param(op(number), id=f"op{number}") for number in DRAWN),
]


def kinds(left: list[str]) -> set[str]:
    """Return the first word of each entry of what was left."""
    return {text.split()[0] for text in left}


@pytest.mark.parametrize(
    "moment", keep([*MOMENTS, pytest.param(cutting_power, id="power-loss")], "zookeeper", "power-loss")
)
def test_reap_leaves_nothing_of_a_command_killed_at_any_moment(
    folder: Path, moment: Callable[[Running], bool]
) -> None:
    with started(folder, *CELLS) as running:
        running.reach(moment)
        running.kill()
    assert () == reap().left
    # A tool or a JVM that noticed the end of its parent may still be exiting.
    assert until(lambda: left_of(folder) == [], END_S_MAX), left_of(folder)


def test_reap_ends_what_is_paused_mounted_and_listening(folder: Path, paused: str) -> None:
    with started(folder, "--protocol", "hw", scenarios=paused) as running:
        running.reach(all_outstanding)
        running.kill()
    assert {"process", "listener", "ledger"} | (set() if lacks("loop") else {"mount", "image"}) <= kinds(
        left_of(folder)
    )
    assert () == reap().left
    assert [] == left_of(folder)


@pytest.mark.spark
@pytest.mark.parametrize("program", keep(["org.apache.spark", "checkers.spark.daemon"], "org.apache.spark"))
def test_spark_ends_by_itself_when_the_command_is_killed(folder: Path, program: str) -> None:
    with started(folder, "--scenario", "kip101-3", "--protocol", "hw") as running:
        running.reach(runs(program))
        running.kill()
    assert until(lambda: left_of(folder) == [], END_S_MAX), left_of(folder)


@exhaustive
@pytest.mark.spark
def test_new_run_is_as_expected_and_leaves_nothing_of_a_killed_one(folder: Path) -> None:
    with started(folder, *CELLS) as running:
        running.reach(cutting_power)
        running.kill()
    assert [] != left_of(folder)
    with started(folder, "--scenario", "kip101-1", "--protocol", "kip101") as running:
        assert 0 == running.end(), running.output()
    assert until(lambda: left_of(folder) == [], END_S_MAX), left_of(folder)


@pytest.mark.docker
class TestContainers:
    """The same on host docker, where the engine's containers and networks outlive the harness too."""

    @pytest.mark.parametrize(
        "moment", keep([*MOMENTS[::2], pytest.param(cutting_power, id="power-loss")], "power-loss")
    )
    @exhaustive
    def test_next_host_leaves_nothing_of_a_command_killed_at_any_moment(
        self, folder: Path, moment: Callable[[Running], bool]
    ) -> None:
        with started(folder, "--host", "docker", *CELLS) as running:
            running.reach(moment)
            running.kill()
        open_and_close(folder)
        assert until(lambda: left_in_engine(folder) == [], END_S_MAX), left_in_engine(folder)

    def test_next_host_ends_what_is_paused_and_mounted(self, folder: Path, paused: str) -> None:
        with started(folder, "--host", "docker", "--protocol", "hw", scenarios=paused) as running:
            running.reach(all_outstanding)
            running.kill()
        assert {"container", "network", "ledger"} | (set() if lacks("loop") else {"mount"}) <= kinds(
            left_in_engine(folder)
        )
        open_and_close(folder)
        assert [] == left_in_engine(folder)

    @exhaustive
    @pytest.mark.spark
    def test_new_run_is_as_expected_and_leaves_nothing_of_a_killed_one(self, folder: Path) -> None:
        with started(folder, "--host", "docker", *CELLS) as running:
            running.reach(cutting_power)
            running.kill()
        with started(folder, "--host", "docker", "--scenario", "kip101-1", "--protocol", "kip101") as running:
            assert 0 == running.end(), running.output()
        assert until(lambda: left_in_engine(folder) == [], END_S_MAX), left_in_engine(folder)


def open_and_close(folder: Path) -> None:
    """Open a host as a new run does, then close it."""
    host = HOSTS["docker"](folder / "next")
    host.open()
    host.close()


def left_in_engine(folder: Path) -> list[str]:
    """Return everything left on the machine, and the engine's containers and networks with this state's label."""
    from harness.cleanup.engine import connect
    from harness.hosts.docker import HOME_LABEL, _home

    client = connect()
    try:
        mark = {"label": f"{HOME_LABEL}={_home()}"}
        found = [
            f"container {each.name}"
            for each in client.containers.list(all=True, filters=mark, ignore_removed=True)
        ]
        found += [f"network {each.name}" for each in client.networks.list(filters=mark)]
    finally:
        client.close()
    return found + left_of(folder)
