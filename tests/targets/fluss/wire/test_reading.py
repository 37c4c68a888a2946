"""What is said on a connection between servers of Fluss, and to which request an answer belongs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness.fabric.limits import WHOLE_BYTES_MAX
from harness.target.length_prefix import LENGTH_MAX
from harness.target.wire import UNKNOWN, Between, Direction, Message, NotFramedError, Seen, Word, words_of
from targets.fluss.wire import reading as module
from targets.fluss.wire.frames import Api, Type, api_word
from targets.fluss.wire.protobuf import message
from targets.fluss.wire.reading import FlussReading
from targets.fluss.wire.wire import LINKS, WIRE
from targets.zookeeper.packets import ZooKeeperReading
from tests.events.as_recorded import as_recorded
from tests.targets.fluss.wire.wire import (
    COMMANDS,
    FETCH,
    answer,
    bucket_of,
    command,
    commands,
    error,
    fetch,
    learned,
    request,
)

NAMES = {1: "A", 2: "B"}
LINK = ("B", "A")
LOG, SECOND = ("log", 0), ("log", 1)


class Read:
    """A reading of the connection of B to A, and all that its frames said."""

    def __init__(self) -> None:
        self.reading = FlussReading(LINK, NAMES)
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.errors: list[str] = []

    def request(self, frame: bytes) -> Seen:
        return self._read(frame, Direction.REQUEST)

    def answer(self, frame: bytes) -> Seen:
        return self._read(frame, Direction.ANSWER)

    def fetches(self, number: int, places: Mapping[tuple[str, int], int]) -> Seen:
        return self.request(request(Api.FetchLog, number, fetch(places)))

    def _read(self, frame: bytes, direction: Direction) -> Seen:
        assert len(frame) == self.reading.size(frame, 0, direction)
        found: Message = self.reading.read(frame, direction)
        assert (LINK, direction) == (found.seen.link, found.seen.direction)
        self.said += map(as_recorded, found.events)
        self.errors += [found.error] if found.error else []
        return found.seen

    def offsets(self, f: str) -> list[tuple[str, int, int]]:
        """Return topic, partition and offset of each event of this kind."""
        return [(value["topic"], value["partition"], value["offset"]) for name, value in self.said if name == f]


def seen(api: str, direction: Direction, number: int, *offsets: tuple[str, int], version: int = 0) -> Seen:
    return Seen(link=LINK, api=api, direction=direction, version=version, offsets=offsets, correlation=number)


# --- fetches ---------------------------------------------------------------------------------------------------
def test_fetch_names_its_buckets_and_offsets_and_so_does_its_answer() -> None:
    read = Read()
    offsets = (("log", 5), ("log", 300), ("u", 2**40))
    assert seen("fetch", Direction.REQUEST, 7, *offsets) == read.request(FETCH)
    assert [("log", 0, 5), ("log", 1, 300), ("u", 0, 2**40)] == read.offsets("fetch")
    assert [] == read.offsets("fetched")
    assert seen("fetch", Direction.ANSWER, 7, *offsets) == read.answer(answer(7))
    assert [("log", 0, 5), ("log", 1, 300), ("u", 0, 2**40)] == read.offsets("fetched")
    assert [] == read.errors


def test_offset_is_recorded_when_it_changes_up_or_down_and_each_bucket_for_itself() -> None:
    read = Read()
    for number, places in enumerate(({LOG: 5, SECOND: 1}, {LOG: 5, SECOND: 2}, {LOG: 4}, {LOG: 5, SECOND: 2})):
        read.fetches(number, places)
        read.answer(answer(number))
    changes = [("log", 0, 5), ("log", 1, 1), ("log", 1, 2), ("log", 0, 4), ("log", 0, 5)]
    assert (changes, changes) == (read.offsets("fetch"), read.offsets("fetched"))


def test_buckets_of_one_table_are_told_apart() -> None:
    read = Read()
    table = message(
        [(1, int.from_bytes(b"log")), (2, 0), *((4, message([(2, at), (3, 10 + at)])) for at in range(3))]
    )
    read.request(request(Api.FetchLog, 1, message([(1, 2), (3, table)])))
    assert [("log", 0, 10), ("log", 1, 11), ("log", 2, 12)] == read.offsets("fetch")


def test_answers_that_come_in_another_order_find_their_requests() -> None:
    read = Read()
    read.fetches(1, {LOG: 5})
    read.request(request(Api.ListOffsets, 2))
    read.fetches(3, {SECOND: 9})
    assert seen("fetch", Direction.ANSWER, 3, ("log", 9)) == read.answer(answer(3))
    assert seen("ListOffsets", Direction.ANSWER, 2) == read.answer(answer(2))
    assert seen("fetch", Direction.ANSWER, 1, ("log", 5)) == read.answer(answer(1))
    assert [("log", 1, 9), ("log", 0, 5)] == read.offsets("fetched")
    assert [] == read.errors


@pytest.mark.parametrize("kind", [Type.ERROR, Type.FAILURE, 7])
def test_error_in_place_of_an_answer_fetches_nothing(kind: int) -> None:
    read = Read()
    read.fetches(1, {LOG: 5})
    assert "fetch" == read.answer(answer(1, message([(1, 12), (2, b"not the leader")]), kind)).api
    assert ([], []) == (read.offsets("fetched"), read.errors)
    # What it was answered later is news.
    read.fetches(2, {LOG: 5})
    read.answer(answer(2))
    assert ([("log", 0, 5)], [("log", 0, 5)]) == (read.offsets("fetch"), read.offsets("fetched"))


def test_table_that_the_harness_did_not_make_is_named_by_its_number() -> None:
    read = Read()
    table = message([(1, 2**62), (4, message([(2, 0), (3, 1)]))])
    read.request(request(Api.FetchLog, 1, message([(3, table)])))
    assert [(f"table-{2**62}", 0, 1)] == read.offsets("fetch")


# --- commands --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("packed", [False, True])
def test_command_is_learned_when_it_is_answered_with_the_error_of_each_bucket(packed: bool) -> None:
    read = Read()
    told = [command(LOG, 1, 3, [1, 2], packed=packed), command(SECOND, -1, 4, [2, 3], packed=packed)]
    assert seen("command", Direction.REQUEST, 8) == read.request(
        request(Api.NotifyLeaderAndIsr, 8, commands(*told))
    )
    assert [] == read.said
    assert seen("command", Direction.ANSWER, 8) == read.answer(answer(8, learned([(SECOND, 21), (LOG, 0)])))
    assert [
        ("learned", LOG, "A", 3, ["A", "B"], 0),
        ("learned", SECOND, None, 4, ["B", "3"], 21),
    ] == [
        (f, (of["topic"], of["partition"]), of["leader"], of["epoch"], of["isr"], of["error"])
        for f, of in read.said
    ]
    assert [] == read.errors


def test_command_that_is_refused_as_a_whole_is_not_learned() -> None:
    read = Read()
    read.request(COMMANDS)
    assert "command" == read.answer(error(8, 40, "stale coordinator")).api
    assert ([], []) == (read.said, read.errors)


def test_answer_to_a_command_that_cannot_be_read_is_said_and_not_learned() -> None:
    read = Read()
    read.request(COMMANDS)
    assert "command" == read.answer(answer(8, learned([(LOG, 0)])[:-1])).api
    assert [] == read.said
    (said,) = read.errors
    assert said.startswith("answer to command: byte ")


def test_stop_has_a_word_of_its_own_and_names_nothing() -> None:
    read = Read()
    stop = message([(2, message([(1, bucket_of(LOG)), (2, 1), (3, 4)]))])
    assert seen("stop-command", Direction.REQUEST, 3) == read.request(request(Api.StopReplica, 3, stop))
    assert seen("stop-command", Direction.ANSWER, 3) == read.answer(answer(3))
    assert ([], []) == (read.said, read.errors)


# --- what does not fit -----------------------------------------------------------------------------------------
def test_answer_to_nothing_is_an_error_and_no_exception() -> None:
    read = Read()
    assert Seen(link=LINK, api=UNKNOWN, direction=Direction.ANSWER, correlation=5) == read.answer(answer(5))
    assert ["answer to request 5; expected that of a request before it"] == read.errors


@pytest.mark.parametrize(
    ("key", "body", "word"),
    [
        (Api.FetchLog, fetch({LOG: 5})[:-1], "fetch"),
        (Api.FetchLog, b"\x1a\x7f", "fetch"),
        (Api.FetchLog, message([(3, 5)]), "fetch"),
        (Api.FetchLog, message([(3, message([(1, b"log")]))]) + message([(3, message([(4, 1)]))]), "fetch"),
        (Api.NotifyLeaderAndIsr, commands(command(LOG, 1, 3, [1]))[:-1], "command"),
        (Api.NotifyLeaderAndIsr, message([(2, message([(2, 1)]))]), "command"),
        (Api.NotifyLeaderAndIsr, commands(message([(2, bucket_of(LOG)), (3, b"A")])), "command"),
    ],
)
def test_request_that_cannot_be_read_is_said_and_its_answer_is_understood(
    key: Api, body: bytes, word: str
) -> None:
    read = Read()
    assert seen(word, Direction.REQUEST, 1) == read.request(request(key, 1, body))
    (said,) = read.errors
    assert said.startswith(f"{word}: ")
    assert seen(word, Direction.ANSWER, 1) == read.answer(answer(1))
    assert ([], 1) == (read.said, len(read.errors))


@pytest.mark.parametrize("size", range(8))
def test_request_too_short_for_its_head_is_said(size: int) -> None:
    read = Read()
    frame = size.to_bytes(4) + request(Api.FetchLog, 1)[4 : 4 + size]
    assert Seen(link=LINK, api=UNKNOWN, direction=Direction.REQUEST) == read.request(frame)
    assert [f"request of {4 + size} bytes"] == [said.split(":")[0] for said in read.errors]


@pytest.mark.parametrize("size", range(5))
def test_answer_too_short_for_its_head_is_said(size: int) -> None:
    read = Read()
    read.fetches(0, {LOG: 1})
    frame = size.to_bytes(4) + answer(0)[4 : 4 + size]
    assert Seen(link=LINK, api=UNKNOWN, direction=Direction.ANSWER) == read.answer(frame)
    assert [f"answer of {4 + size} bytes"] == [said.split(":")[0] for said in read.errors]
    assert [] == read.offsets("fetched")


@pytest.mark.parametrize("length", [-1, -(2**31), LENGTH_MAX + 1, 2**31 - 1])
@pytest.mark.parametrize("direction", Direction)
def test_frame_with_a_length_that_no_frame_has_is_not_framed(length: int, direction: Direction) -> None:
    with pytest.raises(NotFramedError, match=f"frame length {length}; expected a frame"):
        FlussReading(LINK, NAMES).size(length.to_bytes(4, signed=True) + bytes(20), 0, direction)


def test_size_is_that_of_the_frame_at_the_offset_and_none_before_its_length_is_there() -> None:
    reading = FlussReading(LINK, NAMES)
    assert [0, 0, 0, 0] == [reading.size(FETCH[:size], 0, Direction.REQUEST) for size in range(4)]
    assert len(FETCH) == reading.size(FETCH[:4], 0, Direction.REQUEST)
    assert len(FETCH) == reading.size(COMMANDS + FETCH, len(COMMANDS), Direction.REQUEST)


def test_frame_that_is_streamed_cannot_be_doubled_and_a_fetch_of_that_size_is_said() -> None:
    reading = FlussReading(LINK, NAMES)
    body = bytes(WHOLE_BYTES_MAX)
    pieces = {key: request(key, 1, body)[:1000] for key in (Api.ProduceLog, Api.FetchLog)}
    produced, fetched = (reading.read(piece, Direction.REQUEST) for piece in pieces.values())
    assert (("ProduceLog", -1), "") == ((produced.seen.api, produced.seen.correlation), produced.error)
    assert ("fetch", -1) == (fetched.seen.api, fetched.seen.correlation)
    assert "expected one that is not streamed" in fetched.error


# --- what is remembered ----------------------------------------------------------------------------------------
def test_request_that_is_doubled_has_two_answers_and_both_are_understood() -> None:
    read = Read()
    read.request(COMMANDS)
    read.reading.sent_again(8)
    for _ in range(2):
        assert "command" == read.answer(answer(8, learned([(LOG, 0), (SECOND, 0)]))).api
    assert ([3, 4, 3, 4], []) == ([of["epoch"] for _, of in read.said], read.errors)


def test_request_that_takes_the_number_of_another_is_the_one_that_is_answered() -> None:
    read = Read()
    read.fetches(1, {LOG: 5})
    read.answer(answer(1))
    read.request(request(Api.AdjustIsr, 1))
    assert seen("AdjustIsr", Direction.ANSWER, 1) == read.answer(answer(1))
    assert [("log", 0, 5)] == read.offsets("fetched")


def test_beyond_the_bound_the_oldest_request_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PENDING_REQUESTS_MAX", 3)
    read = Read()
    for number in (1, 2, 3, 1, 4):  # the first one is the newest but one then
        read.fetches(number, {LOG: number})
    assert [UNKNOWN, "fetch", "fetch", "fetch"] == [read.answer(answer(number)).api for number in (2, 3, 1, 4)]
    assert ["answer to request 2; expected that of a request before it"] == read.errors


# --- the wire --------------------------------------------------------------------------------------------------
def test_word_of_every_request_is_known_to_rules_and_others_are_named_by_their_numbers() -> None:
    assert {api_word(key) for key in Api} <= {*words_of(WIRE)}
    assert ["fetch", "command", "stop-command", "ProduceLog", "api-1", "api--3"] == [
        api_word(key) for key in (1015, 1018, 1019, 1014, 1, -3)
    ]


def test_what_stands_for_a_general_word_is_what_frames_are_called() -> None:
    stands = WIRE.stands({})
    assert {*Word} == {*stands}
    assert ("fetch", "FetchLog") == (stands[Word.QUESTION].api, stands[Word.QUESTION].own)
    assert "" == stands[Word.EPOCH_QUESTION].api
    assert ("NotifyLeaderAndIsr", "StopReplica") == (stands[Word.COMMAND].own, stands[Word.STOP].own)


def test_each_kind_of_link_is_read_as_what_goes_over_it() -> None:
    hearing = WIRE.hear(NAMES)
    kinds = {kind.between: hearing.reading(kind, LINK) for kind in LINKS}
    assert isinstance(kinds[Between.NODES], FlussReading)
    assert isinstance(kinds[Between.METADATA], ZooKeeperReading)
    of_clients = kinds[Between.CLIENTS]
    assert of_clients is not None
    assert UNKNOWN == of_clients.read(FETCH, Direction.REQUEST).seen.api
