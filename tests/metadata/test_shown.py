"""Metadata of a target's own code: what they show is recorded once; what cannot be makes the run unknown."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import limits
from harness.cleanup.process import until
from harness.events import Assigned, ControllerNamed, Event, MetadataState
from harness.events import Members as MembersNow
from harness.history.file import History
from harness.metadata.followed import Followed
from harness.metadata.polled import Polled
from harness.metadata.shown import Shown
from harness.model import HistoryError, OpType, PreconditionError
from harness.target.metadata import Look, Office, PartitionTruth
from tests.clusters import run_of

PLACE = ("log", 0)
IDS = {"A": 1, "B": 2, "C": 3}
LED = PartitionTruth(leader="A", epoch=1, in_sync=("A", "B"))
FIRST = Look(
    states={PLACE: LED},
    members={"A": 5, "B": 6},
    office=Office(node="C", member=7, incarnation=1),
    assigned={PLACE: ("A", "B")},
)


class Room:
    """A run whose events are kept, and the metadata that are open in it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.history = stack.enter_context(History(folder / "history.jsonl"))
        self.events: list[Event] = []
        self.history.listeners.append(lambda op: self.events.append(op.event))
        self._stack = stack

    def polled(self, look: Callable[[], Any]) -> Polled:
        return self._open(Polled(run_of(self.history, ids=IDS), look))

    def followed(self, looks: Iterator[Any], end: Callable[[], None] = lambda: None) -> Followed:
        return self._open(Followed(run_of(self.history, ids=IDS), looks, end))

    def _open(self, made: Any) -> Any:
        self._stack.callback(made.close)
        return made

    def lost(self) -> str:
        """Return why the history cannot be whole any more."""
        with pytest.raises(HistoryError) as raised:
            self.history.record("metadata", OpType.INFO, ControllerNamed(node=None))
        return str(raised.value)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with ExitStack() as stack:
        yield Room(tmp_path, stack)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "METADATA_LOOK_S_MAX", 0.05)
    monkeypatch.setattr(limits, "METADATA_END_S_MAX", 0.05)


class Changing:
    """Something that is looked at, and changed by the test; it yields each change too."""

    def __init__(self, look: Any) -> None:
        self.look = look
        self._changes: list[Any] = [look]
        self._changed = threading.Condition()
        self._over = False

    def set(self, look: Any) -> None:
        with self._changed:
            self.look = look
            self._changes.append(look)
            self._changed.notify_all()

    def __iter__(self) -> Iterator[Any]:
        for number in range(10**9):
            with self._changed:
                self._changed.wait_for(lambda at=number: self._over or len(self._changes) > at)
                if self._over:
                    return
                found = self._changes[number]
            yield found

    def end(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()


def test_polled_metadata_answer_from_a_look_that_began_after_the_question(room: Room) -> None:
    seen = Changing(FIRST)
    metadata = room.polled(lambda: seen.look)
    assert (5, 0, "C") == (metadata.incarnation("A"), metadata.incarnation("C"), metadata.controller())
    assert ({0: ("A", "B")}, {}) == (metadata.assignment("log"), metadata.assignment("other"))
    assert FIRST.office == metadata.office()
    assert None is metadata.truth("log", 1)
    for epoch in range(2, 20):  # each is seen at once, although looks are rare
        seen.set(Look(states={PLACE: replace(LED, epoch=epoch)}))
        found = metadata.truth(*PLACE)
        assert found is not None
        assert (epoch, epoch - 1) == (found.epoch, found.version)


def test_what_cannot_be_seen_now_is_as_it_was(room: Room) -> None:
    seen = Changing(FIRST)
    metadata = room.polled(lambda: seen.look)
    assert 5 == metadata.incarnation("A")
    seen.set(None)
    assert 5 == metadata.incarnation("A")


def test_changes_are_recorded_once_from_the_watch_on_beginning_with_what_is_there(room: Room) -> None:
    seen = Changing(FIRST)
    metadata = room.polled(lambda: seen.look)
    assert "C" == metadata.controller()
    assert [] == room.events
    metadata.watch([PLACE])
    state = MetadataState(topic="log", partition=0, leader="A", epoch=1, isr=("A", "B"), version=0)
    expected: list[Event] = [MembersNow(nodes=("A", "B")), ControllerNamed(node="C"), state]
    assert expected == room.events
    seen.set(Look(states={PLACE: replace(LED, leader=None)}, members={"B": 6}, assigned={PLACE: ("B", "C")}))
    for _ in range(3):
        assert 0 == metadata.incarnation("A")
    expected += [
        MembersNow(nodes=("B",)),
        ControllerNamed(node=None),
        replace(state, leader=None, version=1),
        Assigned(topic="log", partition=0, replicas=("B", "C")),
    ]
    assert expected == room.events


def test_what_a_system_never_shows_is_no_event_and_what_is_gone_is_one(room: Room) -> None:
    seen = Changing(Look(states={PLACE: LED}))
    metadata = room.polled(lambda: seen.look)
    metadata.watch([PLACE])
    assert [MetadataState] == [type(event) for event in room.events]
    seen.set(FIRST)
    metadata.refresh()
    seen.set(Look(states={PLACE: LED}))
    metadata.refresh()
    assert [MembersNow(nodes=()), ControllerNamed(node=None)] == room.events[-2:]


def test_iterator_that_waits_for_a_change_says_so_now_and_then_and_needs_no_end(room: Room) -> None:
    def looks() -> Iterator[Look | None]:
        yield from (FIRST, None, replace(FIRST, office=None))
        while True:
            yield None
            threading.Event().wait(0.01)

    metadata = room.followed(looks())
    metadata.refresh()
    assert until(lambda: metadata.controller() is None, limits.METADATA_LOOK_S_MAX)
    metadata.close()


def test_followed_metadata_record_every_change_in_order(room: Room) -> None:
    seen = Changing(FIRST)
    metadata = room.followed(iter(seen), seen.end)
    metadata.watch([PLACE])
    last = threading.Event()
    room.history.listeners.append(lambda op: last.set() if getattr(op.event, "epoch", 0) == 50 else None)
    for epoch in range(2, 51):
        seen.set(replace(FIRST, states={PLACE: replace(LED, epoch=epoch)}))
    assert last.wait(limits.METADATA_LOOK_S_MAX)
    epochs = [event.epoch for event in room.events if isinstance(event, MetadataState)]
    assert ([*range(1, 51)], True) == (epochs, metadata.exact)
    metadata.close()
    metadata.close()


NONSENSE = {
    "nothing of the kind": ("7", r"'7'; expected a Look"),
    "a leader that is no node": (
        Look(states={PLACE: replace(LED, leader="Z")}),
        r"state of log-0: .*leader='Z'.*; expected nodes of A, B, C or None",
    ),
    "a stranger that has not heard": (
        Look(states={PLACE: replace(LED, unheard=frozenset("Z"))}),
        r"state of log-0: .*unheard=frozenset\(\{'Z'\}\).*; expected nodes of A, B, C or None",
    ),
    "an epoch that is no number": (
        Look(states={PLACE: replace(LED, epoch="1")}),  # type: ignore[arg-type]
        r"state of log-0: .*epoch='1'.* and whole numbers",
    ),
    "replicas that are one text": (Look(assigned={PLACE: "AB"}), r"replicas of log-0: 'AB'"),  # type: ignore[dict-item]
    "a member of no incarnation": (Look(members={"A": 0}), r"member 'A', incarnation 0"),
    "a stranger in the office": (
        Look(office=Office(node="Z", member=1, incarnation=1)),
        r"office: Office\(node='Z'",
    ),
    "the word of a stranger": (Look(said={PLACE: {"Z": "waits"}}), r"what is said of log-0: .*'Z'"),
    "a word that is none": (Look(said={PLACE: {"A": 7}}), r"what is said of log-0: .*7"),  # type: ignore[dict-item]
    "states that are none": (Look(states=7), r"Look\(.*states=7.*; expected a Look"),  # type: ignore[arg-type]
    "a text without end": (Look(states={PLACE: replace(LED, leader="Z" * 10**6)}), r".*…; expected nodes of"),
}


@pytest.mark.parametrize("nonsense", NONSENSE)
@pytest.mark.parametrize("way", ["polled", "followed"])
def test_nonsense_is_an_observation_lost_and_every_later_question_says_so(
    room: Room, nonsense: str, way: str
) -> None:
    look, says = NONSENSE[nonsense]
    metadata: Shown = room.polled(lambda: look) if way == "polled" else room.followed(iter([look]))
    for _ in range(2):
        with pytest.raises(PreconditionError, match=rf"^target broker, metadata: {says}") as raised:
            metadata.controller()
    assert len(str(raised.value)) < 1_000
    assert "target broker, metadata: " in room.lost()


def asked_after_the_end(metadata: Shown) -> None:
    metadata._thread.join()
    metadata.controller()


@pytest.mark.parametrize("way", ["polled", "followed"])
def test_what_the_code_raises_is_an_observation_lost(room: Room, way: str) -> None:
    def raising() -> Iterator[Look]:
        yield FIRST
        raise ZeroDivisionError("a bug")

    looks = raising()
    metadata: Shown = room.polled(lambda: next(looks)) if way == "polled" else room.followed(looks)
    with suppress(PreconditionError):
        metadata.controller()
    with pytest.raises(PreconditionError, match=r"^target broker, metadata: ZeroDivisionError: a bug"):
        asked_after_the_end(metadata)
    assert "target broker, metadata: ZeroDivisionError: a bug" in room.lost()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("way", "says"), [
    ("polled", r"no answer within 0.05 s; expected a look to end"),
    ("followed", r"no look within 0.05 s; expected one at the beginning"),
])  # fmt: skip
def test_metadata_that_never_answer_are_given_up_in_time_and_do_not_hold_the_run(
    room: Room, way: str, says: str
) -> None:
    hang = threading.Event()

    def hanging() -> Iterator[Look]:
        hang.wait()
        yield FIRST

    looks = hanging()
    run = run_of(room.history, ids=IDS)
    metadata = Polled(run, lambda: next(looks)) if way == "polled" else Followed(run, looks, hang.wait)
    with pytest.raises(PreconditionError, match=rf"^target broker, metadata: {says}"):
        metadata.watch([PLACE])
    with pytest.raises(
        PreconditionError, match=r"metadata: at work 0.05 s after the end of the run; expected it to"
    ):
        metadata.close()
    metadata.close()
    hang.set()
    metadata._thread.join()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("way", ["polled", "followed"])
def test_look_that_loops_is_ended_with_the_run(room: Room, way: str) -> None:
    def spinning() -> Iterator[Look]:
        for _ in itertools.count():
            pass
        yield FIRST

    looks, run = spinning(), run_of(room.history, ids=IDS)
    metadata = Polled(run, lambda: next(looks)) if way == "polled" else Followed(run, looks, lambda: None)
    with suppress(PreconditionError):
        metadata.controller()  # so that it looks
    with pytest.raises(PreconditionError, match=r"metadata: at work 0\.05 s after the end of the run"):
        metadata.close()
    metadata._thread.join()


def test_end_that_raises_is_named(room: Room) -> None:
    seen = Changing(FIRST)

    def end() -> None:
        seen.end()
        raise ZeroDivisionError("a bug")

    metadata = Followed(run_of(room.history, ids=IDS), iter(seen), end)
    said = "target broker, metadata: its end raised ZeroDivisionError: a bug; expected it to let its looks end"
    with pytest.raises(PreconditionError, match=said):
        metadata.close()


def test_watch_that_yields_without_end_is_given_up_and_ends(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "METADATA_LOOKS_PER_S_MAX", 20)

    def endless() -> Iterator[Look]:
        while True:
            yield FIRST

    metadata = room.followed(endless())
    metadata._thread.join()
    with pytest.raises(
        PreconditionError, match=r"metadata: more than 20 looks in a second; expected one a change"
    ):
        metadata.controller()


def test_watch_that_ends_before_the_run_is_an_observation_lost(room: Room) -> None:
    metadata = room.followed(iter([FIRST]))
    metadata._thread.join()
    with pytest.raises(PreconditionError, match=r"metadata: its looks ended; expected them to last as long"):
        metadata.controller()
