"""At rest every broker holds to what topics have of their own; each way not to is named."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from targets.broker.core.topic_configs import AwaitConfigs
from targets.broker.core.zookeeper import (
    CONFIG_TOPICS,
    ZkError,
    ZkNode,
    ZkResult,
    config_path,
    encode_config,
    topic_path,
)
from targets.simulator.broker.oracles.settings import misread, wrong_settings
from targets.simulator.broker.world import World
from targets.simulator.zookeeper import ops
from tests.simulator.worlds import TOPIC, TP, WAIT_S, Ops, cluster


def world_of(own: Mapping[str, str]) -> World:
    """Return a world whose topic has these settings of its own, at rest."""
    world = cluster("kip380", replicas=("A", "B"))
    world.record_into(Ops())
    if own:
        write(world, own)
    assert world.until(lambda: not [*wrong_settings(world)], WAIT_S)
    return world


def write(world: World, own: Mapping[str, str], *, tell: bool = True) -> None:
    told = (ops.Set(path=CONFIG_TOPICS, data=b"", version=ops.ANY_VERSION),) if tell else ()
    world.zookeeper.tree.write((ops.Create(path=config_path(TOPIC), data=encode_config(own)), *told), ops.OPERATOR)


def wrong(world: World) -> list[str]:
    return [text for _, text in wrong_settings(world)]


@pytest.mark.parametrize("own", [{}, {"segment.bytes": "150"}, {"retention.ms": "90000", "segment.bytes": "400"}])
def test_broker_that_has_read_them_follows_them(own: dict[str, str]) -> None:
    world = world_of(own)
    log = world.nodes["A"].disk.logs[TP]
    assert int(own.get("segment.bytes", world.nodes["A"].disk.segment_bytes)) == log.segment_bytes


def test_brokers_that_are_not_told_are_named() -> None:
    """Kafka's ConfigEntityChangeNotification."""
    world = world_of({})
    write(world, {"segment.bytes": "150"}, tell=False)
    world.run(1.0)
    expected = "knows {} as what topics have of their own, and it is {'log': {'segment.bytes': '150'}}"
    assert {f"{name} {expected}" for name in world.nodes} == {*wrong(world)}


def test_log_that_goes_on_as_before_is_named() -> None:
    world = world_of({"segment.bytes": "150"})
    world.nodes["B"].disk.logs[TP].configure(400, 0)
    assert ["B begins the files of log-0 at 400 bytes; expected 150"] == wrong(world)


def test_broker_that_does_not_look_at_ages_is_named() -> None:
    world = world_of({"retention.ms": "90000"})
    process = world.nodes["A"].process
    assert process is not None
    process.broker.state.timers.drop(("retention",))
    assert ["A looks no more at the age and size of its logs, which log has limits for"] == wrong(world)


def test_broker_without_a_session_is_left_alone() -> None:
    world = world_of({})
    write(world, {"segment.bytes": "150"}, tell=False)
    world.nodes["A"].kill()
    world.zookeeper.expire(world.nodes["B"].process.broker.state.session)  # type: ignore[union-attr]
    assert not [text for text in wrong(world) if text[0] in "AB"]


def test_what_a_topic_had_that_is_gone_may_be_known_still() -> None:
    world = world_of({"segment.bytes": "150"})
    world.zookeeper.tree.write((ops.Delete(path=topic_path(TOPIC)),), ops.OPERATOR)
    assert not wrong(world)


ABOUT = AwaitConfigs(names=(TOPIC,), starting=False, number=1)
THERE = ZkNode(data=b"", version=0, owner=0, czxid=10)
OWN = encode_config({"segment.bytes": "150"})


@pytest.mark.parametrize(
    ("results", "told"),
    [
        ((ZkNode(data=OWN, version=0, owner=0, czxid=11, mzxid=11), THERE), ""),
        ((ZkNode(data=OWN, version=0, owner=0, czxid=9, mzxid=9), THERE), "it has read {}"),
        ((ZkNode(data=OWN, version=0, owner=0, czxid=11, mzxid=11), ZkError.NO_NODE), "it has read {}"),
        ((ZkError.NO_NODE, THERE), "it has read {}"),
        ((ZkError.LOST, THERE), ""),
    ],
)
def test_broker_that_takes_others_than_it_has_read_is_named(results: tuple[ZkResult, ...], told: str) -> None:
    """Settings go with their topic: what was written before there was one are those of an older one."""
    process = world_of({"segment.bytes": "150"}).nodes["A"].process
    assert process is not None
    state = process.broker.state
    assert misread(ABOUT, results, {state.session}, state).endswith(told)
    assert bool(told) == bool(misread(ABOUT, results, {state.session}, state))
    assert "" == misread(ABOUT, results, {state.session + 1}, state)
    assert "" == misread(None, results, {state.session}, state)
