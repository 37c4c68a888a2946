"""What compaction may remove, and what it has to: bugs that the oracles name, and a sound world without a word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from targets.broker.core import compaction
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.oracles.compacted import Compacted
from targets.simulator.broker.oracles.records import Records
from targets.simulator.broker.storage import cleaner
from targets.simulator.broker.world import World
from tests.simulator.broker.oracles.planted import log_of, patch, post, produce, replica_of, sentence_of, watched
from tests.simulator.broker.oracles.test_unclean import written
from tests.simulator.worlds import TOPIC, TP, WAIT_S, state

SETTINGS = {"compact": True, "compaction_check_ms": 10}
Plant = Callable[[pytest.MonkeyPatch], None]


def compacted(plant: Callable[[], None] = lambda: None) -> tuple[World, Oracles]:
    """Return a world that has run for a while with records of two keys, from offset 3 on, each in its own file."""
    world, oracles = watched(settings=SETTINGS, segment_bytes=1)
    plant()
    client = SimClient(world)
    client.produce(TOPIC, 0, "m", ["k0/m.0", "k1/m.1", "k0/m.2", "k0/m.3", "k1/m.4"], acks=-1, singly=True)
    world.run(0.5)
    return world, oracles


def test_sound_compaction_is_silent_and_leaves_the_newest_of_each_key() -> None:
    world, oracles = compacted()
    for name in "ABC":
        assert [0, 2, 4, 6, 7] == [batch.base_offset for batch in log_of(world, name).batches]
    assert {} == oracles.violations


def _takes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_of(original: Any, staying: Any, group: Any) -> Any:
        return original(replace(staying, newest=dict.fromkeys(staying.newest, 1 << 40)), group)

    patch(monkeypatch, cleaner._Staying, "of", all_of)


def _leaves_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_of(original: Any, staying: Any, group: Any) -> Any:
        return original(replace(staying, newest=dict.fromkeys(staying.newest, -1)), group)

    patch(monkeypatch, cleaner._Staying, "of", none_of)


def _begins_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    patch(monkeypatch, compaction, "begin", lambda _original, _core: None)


@pytest.mark.parametrize(
    ("plant", "rule", "says"),
    [
        (_takes_all, Rule.COMMITTED, "was committed at offset"),
        (_leaves_all, Rule.DUE, "has compacted log-0 up to"),
        (_begins_no_more, Rule.DUE, "compacts its logs no more"),
    ],
)
def test_planted_bug_is_named(plant: Plant, rule: Rule, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, oracles = compacted(lambda: plant(monkeypatch))
    assert says in sentence_of(oracles, rule)


def test_nothing_is_excused_where_logs_are_not_compacted() -> None:
    world, oracles = watched(segment_bytes=1)
    SimClient(world).produce(TOPIC, 0, "m", ["k0/m.0", "k0/m.1"], acks=-1, singly=True)
    log = log_of(world, "B")
    log.segments[2].batches.clear()
    log.changes += 1
    world.run(0.5)
    assert "k0/m.0" in " ".join(each.sentence for each in oracles.violations.values())


def test_newer_record_that_is_lost_since_excuses_what_was_compacted_for_it() -> None:
    """A power loss takes it from the ISR; a broker that compacted before has neither it nor what it replaced."""
    world = watched(settings=SETTINGS)[0]
    records = Records()
    SimClient(world).produce(TOPIC, 0, "m", ["k0/m.0", "k0/m.1", "k1/m.2"], acks=-1)
    *_, old, new, other = records.of_batches(log_of(world, "A").batches)
    committed = [old, new]
    found = Compacted(world, records, committed)
    assert [True, False] == [found.may_remove(offset) for offset in (0, 1)]
    committed[1] = other
    assert [True, False] == [found.may_remove(offset) for offset in (0, 1)]
    found.forget()
    assert not found.may_remove(0)


def replaced_unheard(plant: Callable[[], None] = lambda: None) -> tuple[World, Oracles]:
    """Return a world in which C, which is down, was elected, and A and B, which have not heard, compact on."""
    world, oracles = watched(settings=SETTINGS | {"unclean_election": True}, segment_bytes=1)
    plant()
    world.nodes["C"].kill()
    world.zookeeper.expire(world.zookeeper.session_of(f"/brokers/ids/{world.ids['C']}"))
    assert world.until(lambda: state(world).isr == (world.ids["A"], world.ids["B"]), WAIT_S)
    SimClient(world).produce(TOPIC, 0, "m", ["k0/m.0", "k1/m.1"], acks=-1, singly=True)
    written(world, "C", 9)
    for value in ("k0/m.2", "k2/m.3"):
        post(world, "A", produce(value))
        world.run(0.05)
    return world, oracles


def test_replaced_leader_and_its_follower_compact_by_what_they_commit_on_their_own() -> None:
    """Nothing of it is committed for good; they compact one after the other, and agree all the same."""
    world, oracles = replaced_unheard()
    assert world.until(lambda: replica_of(world, "B").high_watermark == 7, WAIT_S)
    for name in "AB":
        assert [0, 2, 4, 5, 6] == [batch.base_offset for batch in log_of(world, name).batches]
    assert {(Rule.OFFICE, TP)} == oracles.violations.keys()  # no controller wrote this election


def test_replaced_leader_that_removes_what_has_no_newer_record_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _, oracles = replaced_unheard(lambda: _takes_all(monkeypatch))
    assert "differs from it at offset 4: k1/m.1 against nothing" in sentence_of(oracles, Rule.PREFIX)
