"""A run that is cancelled or that cannot be set up takes everything down."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from harness.cluster.cluster import Cluster, RunCancelled
from harness.environment.opening import open_machines
from harness.environment.real_time import RealTime
from harness.events import Done
from harness.history.file import History
from harness.launch import Address
from harness.model import HistoryError, OpType, Source, UsageError
from harness.run.player import Player
from harness.run.spec import RunSpec
from harness.run.store import Run
from harness.scenario.variant import Variant
from harness.target.metadata import TargetRun
from harness.target.traits import Traits
from targets.broker_target.target import TARGET
from tests.services import shared
from tests.specs import cluster_spec
from tests.suite.cells import spec_of

NOBODY = Address(host="127.0.0.1", port=1)


class Part:
    """A fake for any part of a cluster: it counts its calls of close and rejects every node."""

    name = "part"
    power_tier = "none"
    bind_address = "127.0.0.1"
    clients = SimpleNamespace(untold=lambda _plans: ())

    def __init__(self, **_: object) -> None:
        self.closed = 0

    def open(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Count the call."""
        self.closed += 1

    def note_flushed(self, *_: object) -> None:
        """Do nothing."""

    def add_node(self, name: str, *, disk: bool, fails: bool) -> None:
        """Reject the node."""
        raise UsageError(f"node {name}: no room")


def cluster_of(host: Part, history: History, others: Part) -> Cluster:
    """Return a cluster of fake parts."""
    part = cast(Any, others)
    return Cluster(
        host=cast(Any, host),
        target=part,
        protocol="hw",
        rules={},
        traits=Traits(emits_events=True),
        ids={},
        replicas=(),
        topic="log",
        partition=0,
        history=history,
        fabric=part,
        metadata=part,
        operator=part,
        time=RealTime(),
    )


class Telling:
    """A target whose connections are not read, and whose metadata are a fake part."""

    name = "telling"
    wire = None
    services = ()
    abilities: ClassVar[frozenset[str]] = frozenset()
    faults: ClassVar[dict[str, object]] = {}

    def __init__(self) -> None:
        self.part = Part()

    def metadata(self, _run: TargetRun) -> Any:
        """Return the part."""
        return self.part

    def operator(self, _run: TargetRun, _metadata: Any) -> Any:
        """Return the part."""
        return self.part


class Room:
    """An environment whose clusters consist of fake parts."""

    name = "room"

    def __init__(self) -> None:
        self.host, self.others = Part(), Part()
        self.histories: list[History] = []

    def open_cluster(self, _spec: RunSpec, _folder: Path, history: History) -> Cluster:
        """Keep the history and return a cluster of fake parts."""
        self.histories.append(history)
        return cluster_of(self.host, history, self.others)

    def make_client(self, _cluster: Cluster) -> Any:
        """Return a client that has the attribute `sends_once` and no methods."""
        return SimpleNamespace(sends_once=True)


def test_run_that_was_being_opened_when_all_were_cancelled_plays_nothing(tmp_path: Path) -> None:
    room = Room()
    player = Player(environment=cast(Any, room), faults={})
    player.cancel()
    with pytest.raises(RunCancelled):
        player.play(spec_of("kip101-1", Variant(protocol="hw"), TARGET, 1), Run(path=tmp_path))
    # cancel() and close() each close the host; the other count is the metadata and the fabric, once each.
    assert (2, 2) == (room.host.closed, room.others.closed)
    player.cancel()
    assert (2, 2) == (room.host.closed, room.others.closed)
    with pytest.raises(HistoryError, match="after the history was closed"):
        room.histories[0].record_line(Source.RUNNER, "runner", OpType.INFO, "late")


def test_cancelled_run_is_left_at_its_next_step_and_at_its_next_look(tmp_path: Path) -> None:
    host = Part()
    with History(tmp_path / "history.jsonl") as history:
        played = cluster_of(host, history, Part())
        played.cancel()
        assert 1 == host.closed
        with pytest.raises(RunCancelled, match=f"run {tmp_path.name}: cancelled"):
            played.record("runner", OpType.INVOKE, Done())
        with pytest.raises(RunCancelled):
            played.await_(lambda: True, lambda: "nothing")


def test_close_goes_on_when_a_part_of_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host, others = Part(), Part()
    monkeypatch.setattr(host, "close", lambda: 1 // 0)
    with History(tmp_path / "history.jsonl") as history:
        with pytest.raises(ZeroDivisionError):
            cluster_of(host, history, others).close()
        assert 2 == others.closed


def test_cluster_that_cannot_be_made_whole_is_taken_down(tmp_path: Path) -> None:
    host, target = Part(), Telling()
    threads = set(threading.enumerate())
    with pytest.raises(UsageError, match="node A: no room"):
        open_machines(
            cluster_spec(TARGET, "hw", {"A": 1}, ["A"]),
            tmp_path,
            History(tmp_path / "history.jsonl"),
            make_host=cast(Any, lambda *_, **__: host),
            target=cast(Any, target),
            shared=shared(NOBODY),
            power_tier=None,
        )
    assert (1, 1) == (host.closed, target.part.closed)
    assert set(threading.enumerate()) <= threads
