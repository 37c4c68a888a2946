"""Link steps: the calls to the fabric that they make, and the error if a rule affected no frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.history.file import History
from harness.model import OpType, PreconditionError, Source, UsageError
from harness.scenario.link_steps import LinkSteps
from harness.scenario.offsets import RecordOffsets
from harness.scenario.recent_events import RecentEvents
from harness.scenario.words import MessageWords
from tests.events.filled import filled
from tests.scenario.fakes import FakeCluster, FakeLinks
from tests.scenario.words import step

Act = Callable[[str], None]


class Room:
    """The link steps of one run, and a method that records events of the fabric."""

    def __init__(self, cluster: FakeCluster, history: History) -> None:
        self.fabric: FakeLinks = cluster.fabric  # type: ignore[assignment]
        self.calls = cluster.calls
        self.history = history
        recent = RecentEvents()
        history.listeners.append(recent.listen)
        self.links = LinkSteps(cluster, RecordOffsets(counts={"m1": 3}), recent, MessageWords(cluster.target, {}))

    def act(self, text: str) -> None:
        """Run a step."""
        self.links.act(step(text))

    def saw(self, f: str, src: str, dst: str, **more: Any) -> None:
        """Record an event of the fabric."""
        self.history.record_line(
            Source.FABRIC, "fabric", OpType.INFO, f, filled(Source.FABRIC, f, {"link": [src, dst], **more})
        )


@pytest.fixture
def room(cluster: FakeCluster, history: History) -> Room:
    return Room(cluster, history)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("hold answers fetch A -> B", ("hold", "fetch", "A", "B", "answer", None)),
        ("hold requests fetch A -> B from end(m1)", ("hold", "fetch", "A", "B", "request", 3)),
        ("hold requests question A -> B", ("hold", "epoch-question", "A", "B", "request", None)),
        ("cut A -> B", ("cut", "A", "B", {"both_ways": False, "close": False})),
        ("cut A <-> B", ("cut", "A", "B", {"both_ways": True, "close": False})),
        ("cut A -> metadata close", ("cut", "A", "metadata", {"both_ways": False, "close": True})),
        ("delay answers fetch A -> B 0.5", ("delay", "fetch", "A", "B", "answer", 0.5)),
        ("double command C -> A", ("double", "command", "C", "A")),
        ("release all", ("release",)),
        ("heal all", ("heal",)),
    ],
)
def test_step_asks_the_fabric_for_what_it_says(room: Room, text: str, call: tuple[Any, ...]) -> None:
    room.act(text)
    assert [call] == room.calls


def test_release_by_name_lets_go_that_hold_alone(room: Room) -> None:
    for text in ("hold requests command C -> A", "hold requests command C -> B"):
        room.act(text)
    room.act("release command C -> A")
    assert [("release", "command", "C", "A", "request", None)] == room.calls[2:]
    with pytest.raises(UsageError, match=r"command C -> A: no such hold; .*command C -> B"):
        room.act("release command C -> A")


def test_direction_tells_two_holds_of_one_link_apart(room: Room) -> None:
    room.act("hold answers fetch A -> B")
    room.act("hold requests fetch A -> B")
    room.act("release answers fetch A -> B")
    assert [("release", "fetch", "A", "B", "answer", None)] == room.calls[2:]
    assert {"requests fetch A -> B": True} == room.links.seen()


def test_drop_cuts_and_resets_while_it_releases_what_is_held(room: Room) -> None:
    room.act("hold requests fetch A -> B")
    room.act("drop fetch A -> B")
    assert ["hold", "cut", "release", "heal"] == [call[0] for call in room.calls]
    assert room.calls[1][-1]["close"]
    assert {} == room.links.seen()


def test_drop_of_nothing_is_no_drop(room: Room) -> None:
    room.fabric.frames = ()
    room.act("hold requests fetch A -> B")
    with pytest.raises(PreconditionError, match="drop fetch A -> B: nothing is held"):
        room.act("drop fetch A -> B")


@pytest.mark.parametrize(
    ("text", "bite"),
    [
        ("cut A -> B", ("lost", {})),
        ("cut B <-> A", ("lost", {})),
        ("cut A -> *", ("lost", {})),
        ("delay requests fetch A -> B 1", ("delayed", {"api": "fetch"})),
        ("double fetch A -> B", ("doubled", {"api": "fetch"})),
        ("double question A -> B", ("doubled", {"api": "epoch-question"})),
    ],
)
def test_rule_must_have_bitten_before_it_is_healed_and_at_the_end(
    room: Room, text: str, bite: tuple[str, dict[str, str]]
) -> None:
    room.act(text)
    f, more = bite
    others = [(f, "A", "C", more), ("held", "A", "B", more)]
    if more:
        others.append((f, "A", "B", {"api": "Produce"}))
    if "*" not in text:
        for other, src, dst, about in others:
            room.saw(other, src, dst, **about)
    with pytest.raises(PreconditionError, match="no frame was " + f):
        room.links.prove()
    room.saw(f, "A", "B", **more)
    room.links.prove()
    room.act("heal all")
    assert [] == room.links.rules


def test_heal_all_undoes_all_and_tells_which_rule_never_bit(room: Room) -> None:
    room.act("cut A -> B")
    with pytest.raises(PreconditionError, match="cut A -> B: no frame was lost; expected one at least"):
        room.act("heal all")
    assert [("heal",)] == room.calls[1:]


def test_bite_of_an_earlier_rule_is_not_that_of_a_later(room: Room) -> None:
    room.act("cut A -> B")
    room.saw("lost", "A", "B")
    room.act("heal A -> B")
    room.act("cut A -> B")
    assert not room.links.has_bitten("lost", "A", "B")
    with pytest.raises(PreconditionError, match="cut A -> B: no frame was lost"):
        room.links.prove()
    room.saw("lost", "A", "B")
    assert room.links.has_bitten("lost", "A", "B")


def test_rule_is_undone_also_when_it_never_bit(room: Room) -> None:
    room.act("cut A -> B")
    with pytest.raises(PreconditionError, match="cut A -> B: no frame was lost"):
        room.act("heal A -> B")
    assert [("heal", "cut", "A", "B")] == room.calls[1:]
    assert [] == room.links.rules


def test_heal_of_a_link_undoes_its_rules_alone(room: Room) -> None:
    room.act("cut A -> B")
    room.act("double fetch C -> B")
    room.saw("lost", "A", "B")
    room.act("heal A -> B")
    assert [("heal", "cut", "A", "B")] == [call for call in room.calls if call[0] == "heal"]
    assert ["double fetch C -> B"] == [str(rule.step) for rule in room.links.rules]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("heal A -> B", "heal A -> B: nothing to heal; expected one of"),
        ("release fetch A -> B", "held fetch A -> B: no such hold"),
    ],
)
def test_step_about_what_does_not_stand_is_told(room: Room, text: str, told: str) -> None:
    with pytest.raises(UsageError) as raised:
        room.act(text)
    assert told in str(raised.value)


def test_bite_of_no_rule_is_a_mistake_of_the_scenario(room: Room) -> None:
    room.act("cut A -> C")
    with pytest.raises(UsageError, match=r"lost A -> B: no such rule; .*cut A -> C"):
        room.links.has_bitten("lost", "A", "B")
