"""An operator deletes what he has written by hand, and writes the next topic, while brokers write about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from targets.broker.core.assignments import decode_topic, encode_assignment
from targets.broker.core.made import is_made_path
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.topic_configs import changes
from targets.broker.core.zookeeper import ZkError, topic_path
from targets.simulator.broker.coordination import writes
from targets.simulator.broker.disturbances.next_topics import MOST, NextTopics
from targets.simulator.broker.world import World
from targets.simulator.zookeeper import ops
from tests.kept import exhaustive
from tests.simulator.broker.disturbances.test_administrator import LAST_LINE, NODES, step
from tests.simulator.worlds import cluster

TOPIC = "spare"
PATH = topic_path(TOPIC)
SEEDS = range(40)


class Stage:
    """A world with a topic that is written by hand; `gone` has what was below each that went."""

    def __init__(self, seed: int) -> None:
        self.world: World = cluster("kip380", replicas=NODES)
        self.gone: list[list[str]] = []
        self.next_ones = 0
        self.operator = NextTopics(self.world, seed, [TOPIC], LAST_LINE)
        self.world.zookeeper.tree.wrote.append(self._wrote)

    def _wrote(self, parts: Sequence[ops.Write], session: int) -> None:
        if session == ops.OPERATOR:
            deleted = [part.path for part in parts if isinstance(part, ops.Delete)]
            self.gone += [deleted] if deleted else []
            self.next_ones += any(isinstance(part, ops.Create) and part.path == PATH for part in parts)

    def play(self, settings: Mapping[str, str] | None = None) -> None:
        """Write the first topic, and what it has of its own."""
        ids, tree = tuple(self.world.ids.values()), self.world.zookeeper.tree
        tree.write((ops.Create(path=PATH, data=encode_assignment({0: ids})),), ops.OPERATOR)
        if settings:
            tree.write(writes(changes(TOPIC, ZkError.NO_NODE, settings)), ops.OPERATOR)
        self.world.run(1.0)


def test_next_topic_comes_before_its_predecessor_has_a_mark_after_that_and_after_its_first_state() -> None:
    had: set[str] = set()
    for seed in SEEDS:
        stage = Stage(seed)
        stage.operator.listen(step(0))
        stage.play()
        assert len(stage.gone) == stage.next_ones - 1 <= MOST
        for below in stage.gone:
            states = [path for path in below if path.endswith("/leaderAndISR")]
            had.add("states" if states else "mark" if any(map(is_made_path, below)) else "nothing")
        has = decode_topic(stage.world.zookeeper.tree.nodes[PATH].data)
        assert has.made, "the last one has its mark in the end"
    assert {"nothing", "mark", "states"} == had


def test_settings_go_with_their_topic_and_brokers_hear_of_it() -> None:
    for seed in SEEDS:
        stage = Stage(seed)
        stage.operator.listen(step(0))
        stage.play({"segment.bytes": "150"})
        left = {} if stage.gone else {TOPIC}
        assert {*left} == {
            name for node in stage.world.nodes.values() if node.broker for name in node.broker.state.topic_configs
        }


@exhaustive
@pytest.mark.parametrize("lines", [(), (0, LAST_LINE)], ids=["before the first step", "after the last"])
def test_no_topic_follows_when_no_schedule_is_played(lines: tuple[int, ...]) -> None:
    for seed in SEEDS:
        stage = Stage(seed)
        for line in lines:
            stage.operator.listen(step(line))
        stage.play()
        assert ([], 1) == (stage.gone, stage.next_ones)


def test_no_topic_follows_where_a_broker_knows_topics_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in SEEDS:
        stage = Stage(seed)
        older = stage.world.nodes["C"]
        monkeypatch.setattr(older, "config", replace(older.config, rules=PROTOCOLS["kip320"]))
        stage.operator.listen(step(0))
        stage.play()
        assert ([], 1) == (stage.gone, stage.next_ones)
