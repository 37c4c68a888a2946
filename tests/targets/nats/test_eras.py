"""A stream's leader epochs never fall, although its terms begin anew when it has more than one replica again."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from targets.nats import eras
from targets.nats.asking import LEADER, Group, Told
from targets.nats.seen import Seen
from targets.nats.streams import peer_of
from tests.targets.nats.groups import GROUP, NAMES, both, leads, told

AT = ("log", 0)
NEXT = "S-R3F-next"
Told_ = Mapping[str, Told]


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eras, "_before", {})


def alone(name: str, group: str = GROUP) -> Told_:
    """Return what a server says that has the stream alone."""
    own = peer_of(name)
    lone = Group(name=group, state=LEADER, term=0, leader=own, members=(own,), is_alone=True)
    return {name: Told(groups={group: lone}, streams={group: "log-0"})}


def next_(words: Mapping[str, tuple[str, int, str]]) -> Told_:
    """Return what servers say of the stream's next group."""
    return {name: Told(groups=each.groups, streams={NEXT: "log-0"}) for name, each in told(words, NEXT).items()}


def after(*looks: Told_) -> tuple[str | None, int, tuple[str | None, ...]]:
    """Return who leads, in which epoch, and who the members are, as the last look shows."""
    seen = Seen(NAMES)
    for each in looks:
        found = seen.look(each)
    state = found.states[AT]
    return state.leader, state.epoch, tuple(sorted(map(str, state.in_sync)))


ABC = ("A", "B", "C")
FIRST = told(leads("A", 4, "B", "C"))


def test_leader_that_has_the_stream_alone_leads_on_in_its_epoch() -> None:
    assert ("A", 4, ("A",)) == after(FIRST, alone("A"))
    # Those that are still there are none that lead.
    assert ("A", 4, ("A",)) == after(FIRST, both(alone("A"), told({"B": ("FOLLOWER", 4, "A")})))
    # Another name of the group is no other stream.
    assert ("A", 4, ("A",)) == after(FIRST, alone("A", "S-R1F-one"))


def test_other_server_that_has_it_alone_leads_in_the_next_epoch() -> None:
    assert ("B", 5, ("B",)) == after(FIRST, alone("B"))
    assert ("B", 5, ("B",)) == after(FIRST, alone("B"), alone("B"))


@pytest.mark.parametrize("name", [GROUP, NEXT])
def test_terms_that_begin_anew_follow_those_before(name: str) -> None:
    words = leads("A", 1, "B", "C")
    again = told(words) if name == GROUP else next_(words)
    assert ("A", 5, ABC) == after(FIRST, alone("A"), again)
    assert 4 == eras.before(name)


def test_group_without_a_leader_yet_keeps_the_epoch_and_has_none() -> None:
    waiting = told(dict.fromkeys(NAMES, ("FOLLOWER", 1, "")))
    assert (None, 4, ABC) == after(FIRST, alone("A"), waiting)


def test_group_in_another_s_place_begins_an_era_too_and_what_is_past_does_not_come_back() -> None:
    assert ("B", 5, ABC) == after(FIRST, next_(leads("B", 1, "A", "C")))
    # Who was down names the group that was.
    late = both(next_(leads("B", 1, "A")), told({"C": ("FOLLOWER", 4, "A")}))
    assert ("B", 5, ABC) == after(FIRST, next_(leads("B", 1, "A", "C")), late)
    # Who was down when it was alone has yet to hear that it has company.
    company = next_(leads("B", 1, "C"))
    assert ("B", 5, ABC) == after(FIRST, alone("A"), company, both(company, alone("A")))


def test_of_many_groups_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eras, "_GROUPS_MAX", 2)
    for number, name in enumerate("abca", start=1):
        eras.begin(name, number)
    assert [4, 0, 3] == [eras.before(name) for name in "abc"]
