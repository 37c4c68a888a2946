"""What servers say of themselves is one state of each stream, and the meta group's leader is the controller."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from harness.events import ControllerNamed, Event, MetadataState
from harness.launch import Address
from harness.model import PreconditionError, TargetError
from harness.target.metadata import Look, Office, PartitionTruth, TargetRun
from targets.nats.asking import FOLLOWER, LEADER, META, Group, Told
from targets.nats.seen import Seen
from targets.nats.streams import peer_of
from targets.nats.view import NatsView
from tests.targets.nats.groups import GROUP, NAMES, OTHER, Node, Words, both, group, leads, nodes, told
from tests.targets.nats.server import Asked, Serve, Talk, answers, hangs_up, server, servers

CANDIDATE = "CANDIDATE"
AT = ("log", 0)


def state_after(*looks: Words) -> PartitionTruth | None:
    """Return the state that the last of these looks shows."""
    seen = Seen(NAMES)
    for words in looks:
        look = seen.look(told(words))
    return look.states.get(AT)


def truth(leader: str | None, epoch: int, members: str = NAMES) -> PartitionTruth:
    names = sorted(members, key=peer_of)
    return PartitionTruth(leader=leader, epoch=epoch, in_sync=tuple(names))


# --- one group -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", [*permutations(NAMES)], ids="".join)
def test_leader_is_who_says_so_and_all_agree(order: tuple[str, ...]) -> None:
    first, *others = order
    assert truth(first, 3) == state_after(leads(first, 3, *others))


@pytest.mark.parametrize(
    ("words", "leader", "epoch"),
    [
        # Two say so: a higher term counts.
        ({**leads("A", 2), **leads("B", 3, "C")}, "B", 3),
        ({**leads("C", 5), **leads("B", 3, "A")}, "C", 5),
        # Followers of an older leader say nothing against a new one.
        ({**leads("B", 3), "A": (FOLLOWER, 2, "C"), "C": (FOLLOWER, 2, "C")}, "B", 3),
        # The leader does not answer: its followers name it.
        ({"A": (FOLLOWER, 3, "B"), "C": (FOLLOWER, 3, "B")}, "B", 3),
        ({"A": (FOLLOWER, 3, "B")}, "B", 3),
        ({"A": (FOLLOWER, 2, "A"), "C": (FOLLOWER, 3, "B")}, "B", 3),
        # An older leader still says so, and a follower names the new one, which does not answer.
        ({**leads("A", 2), "C": (FOLLOWER, 3, "B")}, "B", 3),
        # Who stands for election knows nobody.
        ({**leads("A", 2), "C": (CANDIDATE, 4, "")}, "A", 2),
    ],
)
def test_leader_is_the_one_of_the_highest_term(words: Words, leader: str, epoch: int) -> None:
    assert truth(leader, epoch) == state_after(words)


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"A": (FOLLOWER, 0, ""), "B": (FOLLOWER, 0, ""), "C": (FOLLOWER, 0, "")},
        {"A": (CANDIDATE, 1, ""), "B": (FOLLOWER, 1, ""), "C": (FOLLOWER, 1, "")},
    ],
)
def test_group_has_no_state_before_its_first_leader(words: Words) -> None:
    assert None is state_after(words)


@pytest.mark.parametrize(
    "words",
    [
        {"A": (CANDIDATE, 4, ""), "B": (FOLLOWER, 3, ""), "C": (FOLLOWER, 3, "")},
        {"A": (FOLLOWER, 3, ""), "B": (FOLLOWER, 3, "")},
        {"C": (CANDIDATE, 9, "")},
        # An older leader is none, nor is whom its followers name.
        {"C": (LEADER, 2, "C"), "B": (CANDIDATE, 4, "")},
        {"C": (LEADER, 2, "C"), "B": (FOLLOWER, 2, "C")},
        {"C": (FOLLOWER, 2, "B")},
    ],
)
def test_without_a_leader_the_last_term_stands_and_nobody_leads(words: Words) -> None:
    assert truth(None, 3) == state_after(leads("A", 3, "B", "C"), words)


def test_term_does_not_fall_when_an_older_leader_comes_back() -> None:
    seen = Seen(NAMES)
    steps: list[tuple[Words, str | None, int]] = [
        (leads("A", 2, "B", "C"), "A", 2),
        (leads("B", 3, "C"), "B", 3),
        ({**leads("A", 2), **leads("B", 3, "C")}, "B", 3),
        ({**leads("A", 2), "C": (FOLLOWER, 3, "B")}, "B", 3),
        ({"A": (CANDIDATE, 4, ""), "B": (FOLLOWER, 3, ""), "C": (FOLLOWER, 3, "")}, None, 3),
        (leads("B", 5, "A", "C"), "B", 5),
    ]
    for words, leader, epoch in steps:
        assert truth(leader, epoch) == seen.look(told(words)).states[AT]


def test_leader_that_followers_name_wrongly_is_the_one_that_says_so_itself() -> None:
    assert truth("B", 3) == state_after({"A": (FOLLOWER, 3, "C")}, leads("B", 3, "A"))
    assert truth("B", 3) == state_after(leads("B", 3, "A"), {"A": (FOLLOWER, 3, "B")})


def test_ids_that_are_none_of_the_run_are_nobody() -> None:
    seen = Seen("AB")
    look = seen.look(told({"A": (FOLLOWER, 3, "X"), "B": (FOLLOWER, 3, "X")}, members="ABX"))
    found = look.states[AT]
    assert (None, 3) == (found.leader, found.epoch)
    assert sorted(map(str, ("A", "B", None))) == sorted(map(str, found.in_sync))
    assert found.in_sync == look.assigned[AT]


def test_members_are_those_that_the_leader_of_the_newest_term_names() -> None:
    before = told(leads("A", 2), members="ABC")
    after = told({"B": (LEADER, 3, "B"), "D": (FOLLOWER, 3, "B")}, members="BCD")
    for words, members in (({**before, **after}, "BCD"), ({**before, "D": after["D"]}, "BCD")):
        found = Seen("ABCD").look(words).states[AT]
        assert {*members} == {*found.in_sync}


def test_members_are_the_leader_s_word_before_a_follower_s() -> None:
    words = {**told(leads("A", 3), members="ABC"), **told({"D": (FOLLOWER, 3, "A")}, members="ABCD")}
    assert {*"ABC"} == {*Seen("ABCD").look(words).states[AT].in_sync}


# --- all groups ------------------------------------------------------------------------------------------------
def test_member_s_snapshot_ends_before_its_log_begins() -> None:
    seen, found = Seen(NAMES), told(leads("A", 2, "B", "C"))
    for name, first in (("A", 9), ("B", 1), ("C", 0)):
        groups = {GROUP: replace(found[name].groups[GROUP], first=first)}
        found[name] = replace(found[name], groups=groups)
    seen.look(found)
    assert {AT: {"A": 8, "B": 0, "C": 0}} == seen.snapshots
    seen.look({})
    assert {} == seen.snapshots


def test_every_stream_has_a_state_of_its_own() -> None:
    seen = Seen(NAMES)
    look = seen.look(both(told(leads("A", 2, "B", "C")), told(leads("C", 7, "A", "B"), OTHER)))
    assert {("log", 0): truth("A", 2), ("log", 1): truth("C", 7)} == look.states
    assert {place: state.in_sync for place, state in look.states.items()} == look.assigned
    look = seen.look(both(told({"A": (FOLLOWER, 2, "")}), told(leads("B", 8, "A"), OTHER)))
    assert {("log", 0): truth(None, 2), ("log", 1): truth("B", 8)} == look.states


def made_again(words: Words, before: Words | None = None) -> dict[str, Told]:
    """Return what is said of the stream's second group, and what others say of its first."""
    known = {name: replace(each, streams={OTHER: "log-0"}) for name, each in told(words, OTHER).items()}
    return both(told(before or {}), known)


def test_who_named_an_earlier_group_last_has_not_heard_of_the_stream_that_was_made_again() -> None:
    seen = Seen(NAMES)
    assert frozenset() == seen.look(told(leads("A", 2, "B", "C"))).states[AT].unheard
    steps: list[tuple[dict[str, Told], str]] = [
        (made_again(leads("A", 1, "B")), "C"),  # C is down
        (
            made_again(leads("A", 1, "B"), {"C": (FOLLOWER, 2, "")}),
            "C",
        ),  # it is back, and knows the first one alone
        (both(made_again(leads("A", 1, "B")), {"C": Told()}), "C"),  # it has thrown that away
        (made_again(leads("A", 1, "B", "C")), ""),
        (made_again(leads("A", 1)), ""),
    ]
    for words, unheard in steps:
        assert frozenset(unheard) == seen.look(words).states[AT].unheard


def test_server_that_still_has_an_earlier_group_beside_the_new_one_has_heard_of_it() -> None:
    seen = Seen(NAMES)
    seen.look(told(leads("A", 2, "B", "C")))
    look = seen.look(made_again(leads("A", 3, "B", "C"), {"C": (FOLLOWER, 2, "")}))
    assert frozenset() == look.states[AT].unheard


def test_meta_group_s_leader_holds_the_office_until_there_is_none() -> None:
    seen = Seen(NAMES)
    look = seen.look(told(leads("B", 4, "A", "C"), META))
    assert ({}, Office(node="B", member=0, incarnation=4)) == (look.states, look.office)
    assert None is seen.look(told({"A": (FOLLOWER, 4, ""), "C": (CANDIDATE, 5, "")}, META)).office
    assert Office(node="B", member=0, incarnation=6) == seen.look(told(leads("B", 6, "A"), META)).office
    assert None is Seen(NAMES).look(told({"A": (FOLLOWER, 0, "")}, META)).office


def test_group_of_which_no_server_says_whose_it_is_is_left_out() -> None:
    consumers = told(leads("A", 2, "B"), "C-R3F-consumer")
    assert Look() == Seen(NAMES).look(consumers)
    # One server that knows it is enough.
    nameless = {name: Told(groups=each.groups) for name, each in told(leads("A", 2, "B")).items()}
    assert Look() == Seen(NAMES).look(nameless)
    known = {**nameless, "C": Told(streams={GROUP: "log-0"})}
    assert {AT: truth("A", 2)} == Seen(NAMES).look(known).states


# --- the view --------------------------------------------------------------------------------------------------
@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no server be late on a busy machine."""
    monkeypatch.setattr("targets.nats.asking.PATIENCE_S", 20.0)


@contextmanager
def viewing(
    addresses: Mapping[str, Address], tmp_path: Path
) -> Iterator[tuple[NatsView, list[Event], list[Exception]]]:
    recorded: list[Event] = []
    lost: list[Exception] = []
    run = TargetRun(
        target="nats",
        ids={name: number for number, name in enumerate(NAMES)},
        folder=tmp_path,
        record=recorded.append,
        give_up=lost.append,
        nodes=addresses,
    )
    with closing(NatsView(run)) as view:
        yield view, recorded, lost


@pytest.mark.usefixtures("_patient")
def test_view_shows_and_records_what_servers_say(tmp_path: Path) -> None:
    with (
        servers(nodes(leads("B", 3, "A", "C"))) as addresses,
        viewing(addresses, tmp_path) as (view, recorded, lost),
    ):
        assert ("B", {0: truth("B", 3).in_sync}) == (view.controller(), view.assignment("log"))
        found = view.truth("log", 0)
        assert found is not None and ("B", 3) == (found.leader, found.epoch)
        assert None is view.truth("log", 1)
        view.watch([AT])
        assert ["B"] == [event.node for event in recorded if isinstance(event, ControllerNamed)]
        assert [("B", 3)] == [(e.leader, e.epoch) for e in recorded if isinstance(e, MetadataState)]
        assert [] == lost
    assert not view.exact


@pytest.mark.usefixtures("_patient")
def test_view_of_servers_of_which_none_answers_shows_what_it_saw_last(tmp_path: Path) -> None:
    down = threading.Event()

    def mortal(node: Node) -> Serve:
        def serve(talk: Talk, asked: Asked) -> None:
            answer = hangs_up if down.is_set() else node
            answer(talk, asked)

        return serve

    serves = {name: mortal(node) for name, node in nodes(leads("B", 3, "A", "C")).items()}
    with servers(serves) as addresses, viewing(addresses, tmp_path) as (view, _, lost):
        before = view.truth("log", 0)
        down.set()
        assert before == view.truth("log", 0) is not None
        assert [] == lost


@pytest.mark.usefixtures("_patient")
def test_nonsense_of_a_server_is_an_observation_lost_and_later_asks_are_refused(tmp_path: Path) -> None:
    with server(answers(b"no JSON")) as served, viewing({"A": served.address}, tmp_path) as (view, _, lost):
        says = "target nats, metadata: TargetError: RAFTZ answered b'no JSON'"
        with pytest.raises(PreconditionError, match=says):
            view.controller()
        with pytest.raises(PreconditionError, match=says):
            view.truth("log", 0)
    assert [True] == [isinstance(each, TargetError) and says in str(each) for each in lost]


# --- what is said where a partition is not whole ---------------------------------------------------------------
def said(*groups: tuple[str, Group]) -> Mapping[str, str]:
    looks = [{name: Told(groups={GROUP: each}, streams={GROUP: "log-0"})} for name, each in groups]
    return Seen(NAMES).look(both(*looks)).said[AT]


def test_each_member_says_whom_it_waits_for() -> None:
    leader = replace(group(GROUP, LEADER, 9, "A"), last=12, committed=6, behind=(peer_of("B"), peer_of("C")))
    follower = replace(group(GROUP, FOLLOWER, 9, "A"), last=4, committed=4)
    assert {
        "A": "leads in term 9 up to index 12 of its Raft log, 6 committed, and waits for B, C",
        "B": "follows A in term 9 up to index 4 of its Raft log, 4 committed, and waits for A",
    } == said(("A", leader), ("B", follower))


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (LEADER, "leads in term 3 up to index 0 of its Raft log, 0 committed, and waits for nobody"),
        (FOLLOWER, "is a follower in term 3 up to index 0 of its Raft log, 0 committed, and waits for a leader"),
        (CANDIDATE, "is a candidate in term 3 up to index 0 of its Raft log, 0 committed, and waits for votes"),
    ],
)
def test_member_without_a_leader_waits_for_one_or_for_votes(state: str, says: str) -> None:
    assert {"C": says} == said(("C", group(GROUP, state, 3, "")))


def test_follower_that_has_no_entry_of_its_term_names_the_leader_of_an_earlier_one() -> None:
    """It has voted in the new term; whom it voted for need not lead, and whom it names does not."""
    seen = Seen(NAMES)
    seen.look(told(leads("C", 1, "A", "B")))
    stale = replace(group(GROUP, FOLLOWER, 2, "C"), last_term=1)
    voted = {name: Told(groups={GROUP: stale}, streams={GROUP: "log-0"}) for name in "BC"}
    assert truth(None, 1) == seen.look(voted).states[AT]
    assert truth("A", 2) == seen.look(both(voted, told(leads("A", 2)))).states[AT]
    assert truth("A", 2) == seen.look(told({"B": (FOLLOWER, 2, "A")})).states[AT]
