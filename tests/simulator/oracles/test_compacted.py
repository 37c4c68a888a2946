"""What compaction may remove, and what it has to: bugs that the oracles name, and a sound world without a word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from targets.broker.core import compaction
from targets.simulator import cleaner
from targets.simulator.client import SimClient
from targets.simulator.oracles import Oracles, Rule
from targets.simulator.oracles.compacted import Compacted
from targets.simulator.oracles.records import Records
from targets.simulator.world import World
from tests.simulator.oracles.planted import log_of, patch, sentence_of, watched
from tests.simulator.worlds import TOPIC

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
