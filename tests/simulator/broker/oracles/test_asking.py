"""What followers ask: one thing of a kind at a time, at once, and in turn; a broker that does not is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from targets.broker.core import rounds
from targets.broker.core.fetcher import Fetcher, Kind
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.oracles import Oracles
from targets.simulator.broker.world import World
from tests.simulator.broker.oracles.planted import patch, watched
from tests.simulator.worlds import TOPIC, TP

Plant = Callable[[pytest.MonkeyPatch], None]
OTHER = "other"


def asked(plant: Plant | None = None, monkeypatch: pytest.MonkeyPatch | None = None) -> set[str]:
    """Return what is said of a world in which a second partition comes, and records come to both."""
    world, oracles = watched()
    if plant is not None and monkeypatch is not None:
        plant(monkeypatch)
    _work(world)
    return _said(oracles)


def _work(world: World) -> None:
    client = SimClient(world)
    client.create_topic(OTHER, [world.ids[name] for name in ("A", "B", "C")])
    world.run(0.3)
    for topic in (TOPIC, OTHER, TOPIC, OTHER):
        client.produce(topic, 0, f"{topic}{world.steps}", ["x"], acks=1)
        world.run(0.1)


def _said(oracles: Oracles) -> set[str]:
    return {violation.sentence.partition(" s: ")[2] for violation in oracles.violations.values()}


def test_sound_followers_ask_without_a_violation() -> None:
    assert set() == asked()


def _sends_while_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    patch(monkeypatch, rounds, "_may_send", lambda *_: True)


def _waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    patch(monkeypatch, rounds, "_may_send", lambda _original, _core, _fetcher, kind: kind is not Kind.FETCH)


def _keeps_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fetcher, "to_the_end", lambda *_: None)


@pytest.mark.parametrize(
    ("plant", "says"),
    [
        (_sends_while_one_waits, f"B asks broker 1 (fetch), and {TP} awaits its answer to an earlier request."),
        (_waits_for_nothing, f" does not ask broker 1 (fetch) about {TP}, and nothing is in the way."),
        (_keeps_its_turn, "which was given records, fetch before"),
    ],
)
def test_follower_that_asks_wrongly_is_named(plant: Plant, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = asked(plant, monkeypatch)
    assert any(says in sentence for sentence in found), found
