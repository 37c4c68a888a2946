"""A node's connections behave as those of the broker's own driver: closes, waiting requests, redialling."""

from __future__ import annotations

from targets.broker.core.events import Answered, Hungup, Received
from targets.broker.core.messages import FetchRequest, LeaderAndIsrRequest
from targets.broker.core.rounds import FETCHES
from targets.broker.core.zookeeper import broker_path
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.peers import ANSWER_NS_MAX
from tests.simulator.worlds import TOPIC, TP, WAIT_S, Steps, boot, cluster, kill, leads


def test_killed_nodes_peers_are_told_and_what_waits_there_is_given_up() -> None:
    world = cluster()
    world.run(0.02)
    leader, follower = Steps(world, "A"), Steps(world, "B")
    kill(world, "A")
    world.run(0.01)
    assert [None] == [event.response for event in follower.of(Answered)]
    boot(world, "A")
    world.run(0.2)
    kill(world, "B")
    world.run(0.01)
    assert 1 == len(leader.of(Hungup))
    assert {} == world.nodes["A"].process.broker.state.fetches.requests  # type: ignore[union-attr]


def test_follower_asks_a_dead_leader_again_after_each_refusal_and_finds_it_when_it_is_back() -> None:
    world = cluster("hw")
    kill(world, "A")
    refused = world.network.refused
    world.run(1.0)
    assert 10 < world.network.refused - refused < 25
    boot(world, "A")
    assert world.until(lambda: leads(world, "A"), WAIT_S)
    SimClient(world).produce(TOPIC, 0, "m1", ["m1.0"], acks=-1)
    assert 1 == world.nodes["B"].disk.logs[TP].end_offset


def test_broker_that_is_not_registered_cannot_be_dialled_but_stays_connected() -> None:
    """The broker is a zombie: its session has expired, and its connections stay open."""
    world = cluster()
    world.links.cut("A", "metadata")
    world.run(0.02)
    fetches = Steps(world, "A")
    world.zookeeper.expire(world.zookeeper.session_of(broker_path(1)))
    world.links.hold("command", "C", "B", "request")
    world.run(0.2)
    assert fetches.of(Received)
    world.links.close_links("B", "A")
    world.run(0.01)
    before, dialled = len(fetches.of(Received)), world.network.refused
    world.run(0.5)
    assert (before, dialled) == (len(fetches.of(Received)), world.network.refused)


def test_connection_takes_one_request_at_a_time() -> None:
    """A request that arrives while a fetch waits on the same connection waits for the fetch's answer."""
    world = cluster(settings={"fetch_wait_ms_max": 1_000})
    world.run(0.1)
    steps = Steps(world, "A")
    pipe = next(p for p in world.network.pipes.values() if (p.link, p.channel) == (("B", "A"), FETCHES))
    request = FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1, partitions=())
    world.network.send(pipe, 0, (-1, request), request)
    world.run(0.1)
    assert [] == steps.of(Received)
    world.run(1.0)
    assert request in [event.request for event in steps.of(Received)]


def test_question_without_an_answer_is_given_up_after_a_while() -> None:
    world = cluster()
    world.run(0.02)
    asked_ns = world.clock.now_ns
    steps = Steps(world, "B")
    world.links.cut("B", "A")
    world.run(ANSWER_NS_MAX / 1e9 - 1)
    assert [] == steps.of(Answered)
    assert world.until(lambda: bool(steps.of(Answered)), 2)
    assert (None, True) == (steps.of(Answered)[0].response, world.clock.now_ns - asked_ns >= ANSWER_NS_MAX - 10**8)


def test_doubled_command_is_taken_twice_and_answered_once() -> None:
    world = cluster(replicas=("B", "A"))
    steps, controller = Steps(world, "A"), Steps(world, "C")
    world.links.double("command", "C", "A")
    SimClient(world).create_topic("other", [1, 2])
    world.run(0.1)
    commands = [e.request for e in steps.of(Received) if isinstance(e.request, LeaderAndIsrRequest)]
    assert (2, True) == (len(commands), commands[0] is commands[1])
    answered = [event.tag for event in controller.of(Answered)]
    assert len(answered) == len(set(answered))
