"""Whole runs on metadata of a target's own code: polled ones serve a run; broken ones make it unknown, in time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkers.judge import judge
from harness import limits
from harness.cluster.cluster import Cluster
from harness.history.file import History, read_history
from harness.metadata.polled import Polled
from harness.model import Verdict
from harness.run.player import Player
from harness.run.result import Status
from harness.run.spec import RunSpec
from harness.run.store import create_suite
from harness.scenario.variant import Variant
from harness.target.metadata import Look, PartitionTruth
from nemesis import NEMESES
from targets.broker_target.target import TARGET
from targets.simulator.broker.environment import SimEnvironment
from tests.clusters import run_of
from tests.suite.cells import spec_of

MakeLook = Callable[[Cluster], Callable[[], Any]]


class Asked(SimEnvironment):
    """A simulator whose metadata are those that a function shows."""

    def __init__(self, make_look: MakeLook) -> None:
        super().__init__("sim", TARGET)
        self._make_look = make_look

    def open_cluster(self, spec: RunSpec, folder: Path, history: History) -> Cluster:
        """Open a world, and hide its own metadata behind the function."""
        cluster = super().open_cluster(spec, folder, history)
        metadata = Polled(run_of(history, ids=cluster.ids), self._make_look(cluster))
        cluster.metadata = metadata
        for each in cluster.watched:
            each.metadata = metadata
        return cluster


def shown(cluster: Cluster) -> Callable[[], Look]:
    """Return what shows all of a world's own metadata."""
    own, places = cluster.metadata, [each.place for each in cluster.watched]

    def look() -> Look:
        states = {place: found for place in places if (found := own.truth(*place)) is not None}
        members = {name: number for name in cluster.ids if (number := own.incarnation(name))}
        return Look(
            states={tuple(at): state for at, state in states.items()}, members=members, office=own.office()
        )

    return look


@pytest.mark.parametrize(("protocol", "found"), [("hw", "lost m2"), ("kip101", "none")])
def test_scenario_on_polled_metadata_ends_as_on_those_that_are_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, found: str
) -> None:
    monkeypatch.setattr(limits, "METADATA_POLL_S", 60.0)  # so that only questions make it look
    spec = spec_of("kip101-1", Variant(protocol=protocol), TARGET, 1)
    run = Player(environment=Asked(shown), faults=NEMESES).attempt(spec, create_suite(tmp_path, "suite"))
    assert "" == run.failure
    result = judge(spec, read_history(run.history))
    assert (Status.AS_EXPECTED, found) == (result.status, result.found), result.reason


def raises(_cluster: Cluster) -> Callable[[], Look]:
    def look() -> Look:
        raise ZeroDivisionError("a bug")

    return look


def talks_nonsense(_cluster: Cluster) -> Callable[[], Look]:
    return lambda: Look(states={("log", 0): PartitionTruth(leader="Z", epoch=1, in_sync=())})


def hangs(_cluster: Cluster) -> Callable[[], Look]:
    hang = threading.Event()

    def look() -> Look:
        hang.wait()
        return Look()

    return look


@pytest.mark.parametrize(("make_look", "says"), [
    (raises, "ZeroDivisionError: a bug"),
    (talks_nonsense, "state of log-0: PartitionTruth(leader='Z'"),
    (hangs, "no answer within 0.05 s; expected a look to end"),
])  # fmt: skip
def test_run_on_broken_metadata_is_unknown_and_names_the_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_look: MakeLook, says: str
) -> None:
    monkeypatch.setattr(limits, "METADATA_LOOK_S_MAX", 0.05)
    monkeypatch.setattr(limits, "METADATA_END_S_MAX", 0.05)
    spec = spec_of("kip101-1", Variant(protocol="hw"), TARGET, 1)
    run = Player(environment=Asked(make_look), faults=NEMESES).attempt(spec, create_suite(tmp_path, "suite"))
    assert f"target broker, metadata: {says}" in run.failure
    assert Verdict.UNKNOWN is judge(spec, read_history(run.history)).verdict
