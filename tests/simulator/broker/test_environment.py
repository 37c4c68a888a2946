"""Scenarios run in the simulator as on any host: same runner, same faults, same history; deterministically."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cluster.cluster import RunCancelled
from harness.environment import ENVIRONMENTS
from harness.history.file import History, read_history
from harness.model import HistoryError, OpType, Source, UsageError
from harness.registry import load
from harness.run.player import Player
from harness.run.spec import RunSpec
from harness.run.store import Run, create_suite
from harness.scenario.variant import Variant
from harness.search.random_runs import RandomRuns
from harness.target.found import target as target_of
from harness.target.settings import MessageFormat, Settings
from harness.target.target import Target
from targets import VIRTUAL_HOST as SIM
from targets.broker_target.target import TARGET
from targets.simulator.broker import environment as module
from targets.simulator.broker.environment import SimEnvironment, make_environment
from tests.faults import NEMESES
from tests.specs import cluster_spec
from tests.suite.cells import spec_of

SCENARIO = "kip101-2"


def play(folder: Path, protocol: str = "hw") -> Run:
    """Play KIP-101's second scenario; return its run."""
    environment = SimEnvironment("sim", TARGET)
    environment.open(folder)
    spec = spec_of(SCENARIO, Variant(protocol=protocol), TARGET, 11)
    run = create_suite(folder, "suite").create_run(spec.name)
    Player(environment=environment, faults=NEMESES).play(spec, run)
    environment.close()
    return run


def one_node(settings: Settings) -> RunSpec:
    """Return the spec of a cluster of one node."""
    return cluster_spec(TARGET, "kip101", {"A": 1}, ["A"], settings=settings, host="sim")


def test_sim_is_a_host_like_others() -> None:
    made = load("host", ENVIRONMENTS, "sim", "make_environment")("sim", target=TARGET, power_tier=None, ports=None)
    assert ("sim", 1) == (made.name, made.jobs)
    assert module.make_environment is make_environment


def test_same_cell_gives_the_same_history_to_the_last_byte(tmp_path: Path) -> None:
    one, other = (play(tmp_path / name).history.read_bytes() for name in ("one", "other"))
    assert one == other
    assert one != play(tmp_path / "third", "kip101").history.read_bytes()


def test_history_has_every_source_and_virtual_time(tmp_path: Path) -> None:
    ops = read_history(play(tmp_path).history)
    assert set(Source) == {op.source for op in ops}
    assert [] == [op for op in ops if op.type is OpType.FAIL]
    assert 0 == ops[0].time_ns
    # No session expires and no wait is long: the run takes seconds of virtual time, even on a slow machine.
    assert 0 < ops[-1].time_ns < 10 * 10**9
    assert [op.time_ns for op in ops] == sorted(op.time_ns for op in ops)


def test_replicas_logs_are_kept_as_the_history_has_them(tmp_path: Path) -> None:
    run = play(tmp_path)
    kept = (run.logs / "A-data" / "log-0.jsonl").read_text().splitlines()
    told = [op for op in read_history(run.history) if (op.source, op.process) == (Source.LOG, "A")]
    assert [{"f": op.f, **op.value} for op in told] == [json.loads(line) for line in kept]


def test_settings_of_a_scenario_reach_every_core(tmp_path: Path) -> None:
    settings = Settings(min_isr=2, unclean_election=True, message_format=MessageFormat.WITHOUT_EPOCHS)
    cluster = SimEnvironment("sim", TARGET).open_cluster(
        one_node(settings), tmp_path, History(tmp_path / "history.jsonl")
    )
    cluster.start("A")
    (world,) = [getattr(cluster.host, "_world")]  # noqa: B009
    config = world.nodes["A"].config
    assert (2, True, 1) == (config.min_isr, config.unclean_election, config.message_format)
    cluster.close()


def test_no_topic_of_a_runs_clients_is_left_out_of_its_history(tmp_path: Path) -> None:
    """`--workload topics --seed 2` had a topic of the administrator's name, which nobody was seen to lead."""
    spec = RandomRuns(target="broker", variant="kip380", host=SIM, workload="topics").spec(2)
    cluster = SimEnvironment("sim", TARGET).open_cluster(spec, tmp_path, History(tmp_path / "history.jsonl"))
    (world,) = [getattr(cluster.host, "_world")]  # noqa: B009
    topics = {partition.place.topic for partition in (*cluster.partitions, *cluster.churned.partitions)}
    assert {"temp", "spare", "log"} <= topics
    assert world.aside
    assert topics.isdisjoint(world.aside)
    cluster.close()


def test_cancelling_touches_no_world_that_another_thread_steps(tmp_path: Path) -> None:
    """The thread that plays the run stops by itself; its history may be closed already."""
    history = History(tmp_path / "history.jsonl")
    cluster = SimEnvironment("sim", TARGET).open_cluster(one_node(Settings()), tmp_path, history)
    cluster.start("A")
    held = cluster.fabric.hold("metadata-request", "A", "metadata", "request")
    cluster.await_(lambda: bool(held.held), lambda: "a request of A is held")
    history.close()
    cluster.cancel()
    assert cluster.host.alive("A")
    with pytest.raises(RunCancelled):
        cluster.await_(lambda: False, lambda: "nothing")
    cluster.close()


def test_history_that_has_begun_keeps_its_clock(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    history.record_line(Source.RUNNER, "runner", OpType.INFO, "note", {})
    with pytest.raises(HistoryError, match="1 ops have their time by another clock"):
        SimEnvironment("sim", TARGET).open_cluster(one_node(Settings()), tmp_path, history)
    history.close()


def test_target_whose_core_it_has_not_is_refused() -> None:
    kafka: Target = target_of("kafka")
    with pytest.raises(UsageError, match="target kafka; expected broker"):
        make_environment("sim", target=kafka, power_tier=None, ports=None)
    with pytest.raises(UsageError, match="power tier 'loop'; expected none"):
        make_environment("sim", target=TARGET, power_tier="loop", ports=None)
