"""What is said on a route, by whom and to whom, and how far a follower of a stream is by it."""

from __future__ import annotations

import pytest

from harness.target.wire import UNKNOWN, Between, Direction, Seen, Word, words_of
from targets.nats.wire import memory as module
from targets.nats.wire.memory import Memory, Recent, Role
from targets.nats.wire.reading import MESSAGES, ClientReading, RouteReading
from targets.nats.wire.wire import LINKS, WIRE
from tests.targets.nats.wire.wire import (
    GROUP,
    PEER_STATE,
    Route,
    answer,
    append_entry,
    asked,
    given,
    rmsg,
    stored,
    stream_message,
    vote,
    vote_request,
)

# Name of a group -> what its append entries and its votes are called.
WORDS = {
    GROUP: ("fetch", "Vote"),
    "_meta_": ("MetaAppendEntry", "MetaVote"),
    "C-R3F-abcdefgh": ("OtherAppendEntry", "OtherVote"),
    "other": ("OtherAppendEntry", "OtherVote"),
}


@pytest.fixture(params=[("L", "F"), ("F", "L")], ids=["leader dialled", "follower dialled"])
def route(request: pytest.FixtureRequest) -> Route:
    return Route(*request.param)


# --- fetches ---------------------------------------------------------------------------------------------------
def test_append_entry_answers_the_follower_and_its_answer_asks_for_what_is_next(route: Route) -> None:
    assert given("fetch", ("log", 5)) == route.appends(7, stored(5), stored(6))
    assert [] == route.said  # nobody asked
    assert asked("fetch", ("log", 7)) == route.answers(8)
    assert [("log", 0, 7)] == route.offsets("fetch")
    assert [] == route.errors


def test_heartbeat_is_a_fetch_from_behind_the_last_message(route: Route) -> None:
    route.appends(7, stored(5))
    assert given("fetch", ("log", 6)) == route.appends(8)
    assert asked("fetch", ("log", 6)) == route.answers(8)
    assert given("fetch") == route.appends(9)  # nobody knows what is at 9
    assert asked("fetch") == route.answers(9)
    assert [("log", 0, 6)] == route.offsets("fetch")


def test_entry_without_messages_leaves_the_stream_where_it_is(route: Route) -> None:
    route.appends(7, stored(5))
    assert given("fetch", ("log", 6)) == route.appends(8, PEER_STATE)
    assert asked("fetch", ("log", 6)) == route.answers(9)
    assert given("fetch", ("log", 6)) == route.appends(9, (0, b"\x06{}"))  # a record is deleted
    assert given("fetch", ("log", 6)) == route.appends(10)


@pytest.mark.parametrize("entry", [(0, b"\x05{}"), (0, b"\x0e\xff\xff"), (0, b"\x63")])
def test_entry_that_may_move_the_end_unseen_makes_it_unknown(route: Route, entry: tuple[int, bytes]) -> None:
    route.appends(8, stored(7))  # a term before had another entry there
    route.appends(7, stored(5))
    assert given("fetch", ("log", 6)) == route.appends(8, entry, term=2)
    assert asked("fetch") == route.answers(9)
    assert given("fetch", ("log", 9)) == route.appends(9, stored(9), term=2)
    assert asked("fetch", ("log", 10)) == route.answers(10)


def test_snapshot_is_at_the_index_that_it_covers(route: Route) -> None:
    route.appends(7, stored(5))
    route.appends(8, stored(6))
    assert given("fetch", ("log", 6)) == route.appends(8, (6, b"state"), PEER_STATE)
    assert asked("fetch", ("log", 7)) == route.answers(9)


def test_another_term_overwrites_what_was_at_an_index() -> None:
    memory = Memory()
    old, new = Route("A", "B", memory), Route("B", "A", memory)
    old.appends(7, stored(5), stored(6), sender="A")
    assert given("fetch", ("log", 4), link=("A", "B")) == new.appends(7, stored(4), sender="B", term=2)
    assert asked("fetch", ("log", 5), link=("A", "B")) == new.answers(8, to="B")


def test_offset_is_recorded_when_it_changes_up_or_down_and_each_partition_for_itself(route: Route) -> None:
    second = "S-R3F-second"
    for group, index, sequence in ((GROUP, 1, 5), (second, 1, 9), (GROUP, 2, 6), (GROUP, 2, 6), (GROUP, 1, 5)):
        route.appends(index, stored(sequence, "log-0" if group == GROUP else "log-1"), group=group)
        route.answers(index + 1, group=group)
    assert [("log", 0, 6), ("log", 1, 10), ("log", 0, 7), ("log", 0, 6)] == route.offsets("fetch")


def test_follower_that_has_another_log_asks_and_is_sent_what_it_lacks_in_an_inbox(route: Route) -> None:
    route.appends(7, stored(5))
    route.appends(8, stored(6))
    refused = rmsg(f"$NRG.R.L{GROUP}", answer(8, success=False), "$NRG.CR.x")
    assert asked("fetch", ("log", 6)) == route.sends("F", refused)
    assert [] == route.offsets("fetch")
    again = rmsg("$NRG.CR.x", append_entry(8, [stored(6)]), "$NRG.CP.y")
    assert given("fetch", ("log", 6)) == route.sends("L", again)
    assert asked("fetch", ("log", 7)) == route.sends("F", rmsg("$NRG.CP.y", answer(9)))
    assert [("log", 0, 7)] == route.offsets("fetch")
    # A paused one asks for a snapshot, and names an inbox as answers have it.
    assert asked("fetch", ("log", 7)) == route.sends("F", rmsg(f"$NRG.R.L{GROUP}", answer(9)[:24], "$NRG.R.z"))
    snapshot = append_entry(9, [(6, b"state"), PEER_STATE])
    assert given("fetch", ("log", 7)) == route.sends("L", rmsg("$NRG.R.z", snapshot))
    assert [] == route.errors


def test_two_nodes_that_lead_a_group_each_are_told_apart_on_one_route() -> None:
    route = Route("A", "B")
    second = "S-R3F-second"
    assert given("fetch", ("log", 5), link=("B", "A")) == route.appends(7, stored(5), sender="A")
    assert given("fetch", ("u", 3), link=("A", "B")) == route.appends(
        7, stored(3, "u-0"), sender="B", group=second
    )
    assert asked("fetch", ("log", 6), link=("B", "A")) == route.answers(8, to="A")
    assert asked("fetch", ("u", 4), link=("A", "B")) == route.answers(8, to="B", group=second)


def test_stream_that_the_harness_did_not_make_is_a_topic_and_its_first_subject_stays() -> None:
    route = Route()
    assert given("fetch", ("orders.eu", 5)) == route.appends(7, stored(5, "orders.eu"))
    assert given("fetch", ("orders.eu", 6)) == route.appends(8, stored(6, "orders.us"))


def test_connections_of_a_run_share_what_they_heard() -> None:
    hearing = WIRE.hear({})
    for link in (("L", "F"), ("G", "L")):
        reading = hearing.reading(LINKS[0], link)
        assert reading is not None
        frame = rmsg(f"$NRG.AE.{GROUP}", append_entry(7, [stored(5)]), "$NRG.R.x")
        if link[0] == "L":
            reading.read(frame, Direction.REQUEST)
        else:
            found = reading.read(rmsg("$NRG.R.x", answer(8)), Direction.REQUEST)
            assert asked("fetch", ("log", 6), link=("G", "L")) == found.seen


# --- other groups, votes, proposals ----------------------------------------------------------------------------
@pytest.mark.parametrize("group", WORDS)
def test_groups_are_told_apart_by_their_names(route: Route, group: str) -> None:
    append_word, vote_word = WORDS[group]
    assert asked(vote_word) == route.sends("F", rmsg(f"$NRG.V.{group}", vote_request(), "$NRG.R.v"))
    assert given(vote_word) == route.sends("L", rmsg("$NRG.R.v", vote()))
    assert append_word == route.appends(7, PEER_STATE, group=group).api
    assert asked(append_word) == route.answers(8, group=group)
    refused = rmsg(f"$NRG.R.L{group}", answer(8, success=False), "$NRG.CR.x")
    assert asked(append_word) == route.sends("F", refused)
    assert given(append_word) == route.sends("L", rmsg("$NRG.CR.x", append_entry(8), "$NRG.CP.y"))
    assert asked(append_word) == route.sends("F", rmsg("$NRG.CP.y", answer(8)))
    assert asked("Proposal") == route.sends("F", rmsg(f"$NRG.P.{group}", b"proposal"))
    assert asked("RemovePeer") == route.sends("F", rmsg(f"$NRG.RP.{group}", b"peer_id_"))
    assert ([], []) == (route.said, route.errors)


@pytest.mark.parametrize(
    ("payload", "word"),
    [
        (answer(8), "OtherAppendEntry"),
        (answer(8)[:24], "OtherAppendEntry"),
        (b"", "Message"),
        (bytes(40), "Message"),
    ],
)
def test_inbox_that_no_frame_has_named_is_told_by_the_length_of_what_it_is_sent(
    route: Route, payload: bytes, word: str
) -> None:
    assert asked(word) == route.sends("F", rmsg("$NRG.R.unknown", payload))
    assert given("OtherVote") == route.sends("L", rmsg("$NRG.R.unknown", vote()))
    assert given("OtherAppendEntry") == route.sends("L", rmsg("$NRG.CR.unknown", append_entry(3), "$NRG.R.a"))
    assert [] == route.errors


def test_unknown_inbox_makes_none_that_is_known_unknown(route: Route) -> None:
    route.appends(7, stored(5))
    route.sends("L", rmsg("$NRG.CR.unknown", append_entry(3), f"$NRG.R.L{GROUP}"))
    assert asked("fetch", ("log", 6)) == route.answers(8)


# --- a stream's catch-up, and the rest -------------------------------------------------------------------------
def test_catch_up_of_a_stream_is_asked_for_sent_and_taken(route: Route) -> None:
    assert asked("StreamSync") == route.sends("F", rmsg("$JSC.SYNC.s", b"{}", "$JSC.R.r"))
    assert given("StreamSync") == route.sends("L", rmsg("$JSC.R.r", b"message", "$JSC.ACK.a.7"))
    assert given("StreamSync") == route.sends("L", rmsg("$JSC.R.r"))
    assert asked("StreamSync") == route.sends("F", rmsg("$JSC.ACK.a.7"))
    # The answer to another question of servers, and a message of a catch-up whose beginning was not heard.
    assert asked("Message", link=("L", "F")) == route.sends("L", rmsg("$JSC.R.other", b"{}"))
    assert given("StreamSync") == route.sends("L", rmsg("$JSC.R.other", b"message", "$JSC.ACK.b.7"))


@pytest.mark.parametrize("sender", ["L", "F"])
@pytest.mark.parametrize(
    ("frame", "word"),
    [
        (rmsg("log-0", b"value", "_INBOX.x.1", account="$G"), "Message"),
        (b"HMSG $G log-0 12 12\r\nNATS/1.0\r\n\r\n\r\n", "Message"),
        (b"LMSG leaf $G log-0 0 5\r\nvalue\r\n", "Message"),
        *(
            (rmsg(each), "Message")
            for each in ("$SYS.SERVER.ACCOUNT.x", "$JSC.ARU.x", "$NRG", "$NRG.AEX.y", "$JSC")
        ),
        *((line, "Route") for line in (b"PING\r\n", b"INFO {}\r\n", b"RS+ $SYS $NRG.AE.S-x\r\n", b"-ERR 'x'\r\n")),
    ],
)
def test_any_other_frame_is_asked_by_its_sender(route: Route, frame: bytes, word: str, sender: str) -> None:
    link = (sender, "F" if sender == "L" else "L")
    assert asked(word, link=link) == route.sends(sender, frame)
    assert ([], []) == (route.said, route.errors)


@pytest.mark.parametrize("subject", ["$NRG.AE", "$NRG.AE.", "$NRG.V", "$NRG.R", "$NRG.CR", "$JSC.R", "$NRG.P"])
def test_subject_that_ends_early_names_no_group(route: Route, subject: str) -> None:
    assert route.sends("L", rmsg(subject, b"", "reply")).api in MESSAGES
    assert [] == route.errors


# --- what does not fit -----------------------------------------------------------------------------------------
def test_append_entry_and_answer_that_cannot_be_read_are_said(route: Route) -> None:
    route.appends(7, stored(5))
    short = append_entry(8, [stored(6)])[:-9]
    assert given("fetch") == route.sends("L", rmsg(f"$NRG.AE.{GROUP}", short, "$NRG.R.x"))
    assert asked("fetch") == route.sends("F", rmsg("$NRG.R.x", b"short"))
    assert ["entry 0 of 39", "answer to an append entry of 5"] == [
        each.split(" bytes")[0] for each in route.errors
    ]
    assert asked("fetch", ("log", 6)) == route.answers(8)


def test_message_that_cannot_be_read_is_said(route: Route) -> None:
    frame = b"HMSG $SYS $NRG.AE.x 99 5\r\nvalue\r\n"
    assert asked(UNKNOWN, link=("L", "F")) == route.sends("L", frame)
    assert ["header of 99 bytes in a message of 5; expected it within"] == route.errors


def test_entry_too_large_to_be_collected_says_its_first_message_and_no_last_one() -> None:
    route = Route()
    route.appends(7, stored(5))
    route.appends(8, stored(6))
    large = 0, stream_message(5, body=bytes(300_000))
    one, two = (append_entry(7, entries) for entries in ([large], [large, stored(6)]))
    for payload, following in ((two, ()), (one, (("log", 6),))):
        frame = rmsg(f"$NRG.AE.{GROUP}", payload, f"$NRG.R.L{GROUP}")
        assert given("fetch", ("log", 5)) == route.read("L", frame[: 64 * 1024]).seen
        assert asked("fetch", *following) == route.answers(8)
    assert [] == route.errors


@pytest.mark.parametrize("sequence", [2**63, 2**64 - 1])
def test_sequence_that_no_stream_has_is_not_said(route: Route, sequence: int) -> None:
    route.appends(7, stored(5))
    assert given("fetch", ("log", 6)) == route.appends(8, stored(sequence))
    assert asked("fetch") == route.answers(9)


# --- what is remembered ----------------------------------------------------------------------------------------
def test_beyond_the_bound_the_oldest_index_is_forgotten_and_one_that_is_asked_for_is_not_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "INDEXES_MAX", 3)
    route = Route()
    for index in (1, 2, 3):
        route.appends(index, stored(index))
    assert asked("fetch", ("log", 2)) == route.answers(2)
    route.appends(4, stored(4))
    assert [(("log", 2),), (), (("log", 4),), (("log", 5),)] == [route.answers(at).offsets for at in (2, 3, 4, 5)]


def test_beyond_the_bound_inboxes_and_groups_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INBOXES_MAX", 2)
    monkeypatch.setattr(module, "GROUPS_MAX", 2)
    route = Route()
    for group in ("S-1", "S-2", "S-3"):
        route.appends(1, stored(1), group=group)
    assert asked("OtherAppendEntry") == route.answers(2, group="S-1")
    assert [asked("fetch", ("log", 2))] * 2 == [route.answers(2, group=each) for each in ("S-2", "S-3")]
    assert given("fetch") == route.appends(2, group="S-1")


def test_recent_values_are_bounded_and_news_are_told() -> None:
    recent: Recent[str, int] = Recent(2)
    assert [True, False, True, True] == [recent.is_news("a", value) for value in (1, 1, 2, 1)]
    recent.put("b", 0)
    assert (1, 0) == (recent.get("a"), recent.get("b"))
    recent.put("c", 3)
    assert (None, 0, 3, 2) == (recent.get("a"), recent.get("b"), recent.get("c"), len(recent))
    recent.forget("b")
    recent.forget("x")
    assert (None, 1) == (recent.get("b"), len(recent))


def test_no_reply_names_no_inbox() -> None:
    memory = Memory()
    memory.name("", Role.APPEND_ANSWERS, GROUP)
    assert (None, "") == memory.role("")


# --- the wire --------------------------------------------------------------------------------------------------
def test_word_of_every_frame_is_known_to_rules() -> None:
    assert {word for words in WORDS.values() for word in words} | {*MESSAGES} <= {*words_of(WIRE)}
    assert len({*MESSAGES}) == len(MESSAGES)


def test_what_stands_for_a_general_word_is_what_frames_are_called() -> None:
    stands = WIRE.stands({})
    assert {*Word} == {*stands}
    assert {"fetch": 2, "": 4} == {api: [each.api for each in stands.values()].count(api) for api in ("fetch", "")}
    assert "AppendEntry of a stream's group, and its answer" == stands[Word.QUESTION].own
    assert all(each.own for each in stands.values())


def test_each_kind_of_link_is_read_as_what_goes_over_it() -> None:
    hearing = WIRE.hear({})
    kinds = {kind.between: hearing.reading(kind, ("A", "B")) for kind in LINKS}
    assert isinstance(kinds[Between.NODES], RouteReading)
    assert isinstance(kinds[Between.CLIENTS], ClientReading)
    assert [True, False] == [kind.either_dials for kind in LINKS]


@pytest.mark.parametrize("direction", Direction)
def test_frames_of_clients_are_told_apart_by_their_direction_alone(direction: Direction) -> None:
    reading = ClientReading(("clients", "A"))
    for frame in (b"PUB log-0 5\r\nvalue\r\n", b"PING\r\n"):
        assert len(frame) == reading.size(frame, 0, direction)
        found = reading.read(frame, direction)
        assert Seen(link=("clients", "A"), api=UNKNOWN, direction=direction) == found.seen
        assert ((), "") == (found.events, found.error)


def test_nothing_is_sent_again() -> None:
    for reading in (ClientReading(("clients", "A")), Route().reading):
        with pytest.raises(AssertionError, match="request 3 was sent again"):
            reading.sent_again(3)
