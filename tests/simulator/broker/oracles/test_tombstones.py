"""How long tombstones stay in a world: bugs that the oracles name, and a sound world without a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from targets.broker.core.tombstones import TombstoneDelay
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.storage.records import content_of
from targets.simulator.broker.world import World
from tests.simulator.broker.oracles.planted import log_of, patch, sentence_of, watched
from tests.simulator.worlds import TOPIC

SETTINGS = {"compact": True, "compaction_check_ms": 10, "delete_retention_ms": 400}
Plant = Callable[[pytest.MonkeyPatch], None]


def cleaned(rounds: int, plant: Callable[[], None] = lambda: None) -> tuple[World, Oracles]:
    """Return a world in which k0 was deleted, and which has cleaned its logs about every 200 ms since."""
    world, oracles = watched(settings=SETTINGS, segment_bytes=1)
    plant()
    client = SimClient(world)
    client.produce(TOPIC, 0, "m", ["k0/m.0", "k0/~m.1", "k1/m.2"], acks=-1, singly=True)
    for number in range(rounds):
        world.run(0.2)
        client.produce(TOPIC, 0, "n", [f"k1/n.{number}"], acks=-1)
    world.run(0.1)
    return world, oracles


def of_k0(world: World, name: str) -> list[str]:
    values = [value for batch in log_of(world, name).batches for _, _, value in content_of(batch.payload).records]
    return [value for value in values if value.startswith("k0")]


def test_tombstone_stays_for_its_delay_on_every_replica_and_goes_then() -> None:
    for rounds, left in ((1, ["k0/~m.1"]), (5, [])):
        world, oracles = cleaned(rounds)
        assert [left] * 3 == [of_k0(world, name) for name in "ABC"]
        assert {} == oracles.violations


def _drops_with_the_next_cleaning(monkeypatch: pytest.MonkeyPatch) -> None:
    patch(
        monkeypatch, TombstoneDelay, "is_over", lambda _original, _delay, horizon_ms, **_: horizon_ms is not None
    )


def _begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    patch(monkeypatch, TombstoneDelay, "horizon_of", lambda original, delay, _horizon_ms: original(delay, None))


def _never_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    patch(monkeypatch, TombstoneDelay, "is_over", lambda _original, _delay, _horizon_ms, **_: False)


@pytest.mark.parametrize(
    ("plant", "rule", "says"),
    [
        (_drops_with_the_next_cleaning, Rule.COMMITTED, "k0/~m.1 was committed at offset"),
        (_begins_again, Rule.DUE, "ms may go at"),
        (_never_drops, Rule.DUE, "ms is there at"),
    ],
)
def test_planted_bug_is_named(
    plant: Callable[[pytest.MonkeyPatch], Any], rule: Rule, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, oracles = cleaned(5, lambda: plant(monkeypatch))
    assert says in sentence_of(oracles, rule)
