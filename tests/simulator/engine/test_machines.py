"""The simulated machines, as the runner and the nemeses use them; a fault that has no effect raises an error."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.cluster.interfaces import Machines, Time
from harness.model import PreconditionError
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.world import World
from targets.simulator.engine.machines import SimMachines, SimTime
from tests.simulator.worlds import TOPIC, cluster, registered


@pytest.fixture
def world() -> World:
    made = cluster()
    SimClient(made).produce(TOPIC, 0, "m1", ["m1.0", "m1.1"], acks=-1)
    return made


@pytest.fixture
def machines(world: World) -> SimMachines:
    return SimMachines(world, ("A", "B"))


def test_parts_are_what_every_ground_has(world: World, machines: SimMachines) -> None:
    general: Machines = machines
    time: Time = SimTime(world)
    assert ("sim", "sim", True) == (general.name, general.power_tier, time.until(lambda: True, 1))


def test_time_passes_in_waiting_and_in_nothing_else(world: World, machines: SimMachines) -> None:
    before, time = world.clock.now_ns, SimTime(world)
    assert ["killed", "killed"] == [seen.split()[0] for seen in time.together(machines.kill, ["A", "B"])]
    assert before == world.clock.now_ns
    machines.boot("A")
    assert time.until(lambda: registered(world, "A"), 1)
    assert before < world.clock.now_ns


def test_node_is_killed_and_started_again(machines: SimMachines) -> None:
    assert machines.alive("A")
    machines.kill("A")
    assert not machines.alive("A")
    machines.boot("A")
    assert machines.alive("A")


def test_paused_node_is_alive_and_resumes(machines: SimMachines) -> None:
    machines.pause("A")
    assert machines.alive("A")
    machines.resume("A")
    with pytest.raises(PreconditionError, match="resume A: it is not paused"):
        machines.resume("A")


def test_power_cut_takes_what_was_not_flushed_and_says_how_much(machines: SimMachines) -> None:
    assert 1 == len(machines.unflushed("B"))
    assert "1 batches were not durable" == machines.flush("B")
    assert () == machines.unflushed("B")
    assert "0 batches were not durable" == machines.flush("B")
    assert "killed; 1 batches became 0, 1 logs changed" == machines.power_loss("A")
    assert "killed; 1 batches became 1, 0 logs changed" == machines.power_loss("B")
    ends = [log.log_end_offset for name in "AB" if (log := machines.replica_log(name, TOPIC, 0)) is not None]
    assert [0, 2] == ends


def test_nobody_has_a_log_who_is_no_replica(machines: SimMachines) -> None:
    assert None is machines.replica_log("C", TOPIC, 0)


def test_active_segment_goes_when_its_node_is_down(machines: SimMachines) -> None:
    with pytest.raises(PreconditionError, match="delete a segment of A: it runs"):
        machines.delete_active_segment("A", TOPIC, 0)
    machines.kill("A")
    assert "00000000000000000000.log deleted" == machines.delete_active_segment("A", TOPIC, 0)
    with pytest.raises(PreconditionError, match="no segment of log-0"):
        machines.delete_active_segment("A", TOPIC, 0)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda machines: machines.boot("A"), "start A: it runs already"),
        (lambda machines: machines.power_loss("C"), "power loss of C: its disk cannot lose power"),
        (lambda machines: (machines.kill("A"), machines.kill("A")), "kill A: no process is there"),
        (lambda machines: (machines.kill("A"), machines.pause("A")), "pause A: no process is there"),
        (lambda machines: (machines.kill("A"), machines.resume("A")), "resume A: no process is there"),
    ],
)
def test_fault_that_cannot_bite_says_why(
    machines: SimMachines, call: Callable[[SimMachines], object], text: str
) -> None:
    with pytest.raises(PreconditionError, match=text):
        call(machines)


def test_node_that_ended_by_itself_has_last_words(world: World, machines: SimMachines) -> None:
    process = world.nodes["A"].process
    assert process is not None
    world.nodes["A"].end(process, "for a test")
    machines.drain("A")
    assert ("ended: for a test", "") == (machines.log_text("A"), machines.log_text("B"))
