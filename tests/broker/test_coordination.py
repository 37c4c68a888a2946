"""The broker's connection to a real ZooKeeper: answers in order, one for every ask."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

import pytest

from harness import limits
from targets.broker.coordination.multi_read import READS_TOGETHER_MAX
from targets.broker.core.events import Event, ZkAnswered, ZkFired
from targets.broker.core.zookeeper import (
    ZkCheck,
    ZkChildren,
    ZkCreate,
    ZkDelete,
    ZkDone,
    ZkError,
    ZkExists,
    ZkGet,
    ZkMulti,
    ZkNames,
    ZkNode,
    ZkSet,
)
from targets.zookeeper.sessions import owner_of
from tests.broker.conftest import Connected

pytestmark = pytest.mark.slow


# --- order ---------------------------------------------------------------------------------------------------
def test_answers_come_in_the_order_of_the_asks_whatever_is_asked(zk: Connected) -> None:
    asks = [
        lambda n: (ZkCreate(path=f"/n{n}"),),
        lambda n: (ZkGet(path="/"), ZkChildren(path="/")),
        lambda _: (),
        lambda n: (ZkMulti(ops=(ZkCheck(path="/", version=7), ZkCreate(path=f"/m{n}"))),),
        lambda n: (ZkExists(path=f"/n{n}", watch=True),),
    ]
    for number in range(300):
        zk.coordination.ask(number, asks[number % len(asks)](number))
    assert list(range(300)) == [event.tag for event in (zk.next() for _ in range(300)) if _is_answer(event)]


def _is_answer(event: Event) -> bool:
    return isinstance(event, ZkAnswered)


def test_empty_ask_keeps_its_place(zk: Connected) -> None:
    zk.coordination.ask(1, (ZkGet(path="/"),))
    zk.coordination.ask(2, ())
    zk.coordination.ask(3, (ZkGet(path="/"),))
    answers = [zk.answer(tag) for tag in (1, 2, 3)]
    assert [ZkAnswered(tag=2, session=zk.session, results=()), 3] == [answers[1], len(zk.seen)]


def test_empty_ask_is_answered_when_the_connection_is_lost(zk: Connected) -> None:
    hold = zk.hold_answers()
    zk.coordination.ask(1, ())
    hold.wait(limits.CONDITION_WAIT_S_MAX)
    zk.fabric.drop(hold)
    assert ZkAnswered(tag=1, session=zk.session, results=()) == zk.next()


def disorders(events: Sequence[Event]) -> list[str]:
    """
    Return violations of ZooKeeper's order: a watch before the read that set it, a change read before its watch.

    Args:
        events: odd tags read /n with a watch, even tags without; at most one watch is set at a time.
    """
    found: list[str] = []
    watched: int | None = None
    for event in events:
        match event:
            case ZkFired():
                if watched is None:
                    found.append("fired before the read that set the watch")
                watched = None
            case ZkAnswered(tag=tag, results=(ZkNode(version=version),)):
                if watched is not None and version != watched:
                    found.append(f"version {version} shown, watched at {watched}, before the watch fired")
                if tag % 2:
                    watched = version
    return found


def test_watch_comes_after_the_read_that_set_it_and_before_the_result_that_shows_the_change(
    zk: Connected,
) -> None:
    zk.other.create(f"{zk.chroot}/n", b"")
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            zk.other.set(f"{zk.chroot}/n", b"")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        tags, fired, under_way = itertools.count(1), 0, 1
        zk.coordination.ask(1, (ZkExists(path="/n", watch=True),))
        while fired < 200:
            while under_way < 4:
                zk.coordination.ask(2 * next(tags), (ZkGet(path="/n"),))
                under_way += 1
            if isinstance(zk.next(), ZkFired):
                fired += 1
                zk.coordination.ask(2 * next(tags) + 1, (ZkExists(path="/n", watch=True),))
                under_way += 1
            else:
                under_way -= 1
    finally:
        over.set()
        writer.join()
    assert [] == disorders(zk.seen)


def test_disorder_is_found() -> None:
    def shown(tag: int, version: int) -> ZkAnswered:
        return ZkAnswered(tag=tag, session=1, results=(ZkNode(data=b"", version=version, owner=0, czxid=1),))

    fired = ZkFired(path="/n")
    assert [] == disorders([shown(1, 4), shown(2, 4), fired, shown(2, 5), shown(3, 6), fired])
    assert ["fired before the read that set the watch"] == disorders([fired, shown(1, 4)])
    assert 1 == len(disorders([shown(1, 4), shown(2, 5), fired]))


# --- results -------------------------------------------------------------------------------------------------
def test_reads_tell_what_is_there(zk: Connected) -> None:
    zk.other.create(f"{zk.chroot}/there", b"data")
    zk.coordination.ask(
        1,
        (
            ZkGet(path="/there"),
            ZkChildren(path="/"),
            ZkGet(path="/no"),
            ZkExists(path="/no"),
            ZkChildren(path="/no"),
            ZkExists(path="/there"),
        ),
    )
    node, names, *nothing, exists = zk.answer(1).results
    stat = zk.other.exists(f"{zk.chroot}/there")
    assert ZkNode(data=b"data", version=0, owner=0, czxid=stat.czxid, mzxid=stat.mzxid) == node
    assert ZkNames(names=("there",)) == names
    assert [ZkError.NO_NODE] * 3 == nothing
    assert ZkNode(data=b"", version=0, owner=0, czxid=stat.czxid, mzxid=stat.mzxid) == exists


@pytest.mark.parametrize("reads", [2, READS_TOGETHER_MAX, 2 * READS_TOGETHER_MAX + 1])
def test_many_reads_tell_each_what_is_there(zk: Connected, reads: int) -> None:
    """Every third node is missing, every fifth has no data; a read is as one that is asked alone."""
    there = [number for number in range(reads) if number % 3]
    for number in there:
        data = b"" if number % 5 == 0 else b"x" * (number * 97 % 5_000 + 1)
        zk.other.create(f"{zk.chroot}/r{number}", data)
    zk.coordination.ask(1, tuple(ZkGet(path=f"/r{number}") for number in range(reads)))
    for number in range(reads):
        zk.coordination.ask(2 + number, (ZkGet(path=f"/r{number}"),))
    together = zk.answer(1).results
    assert together == tuple(zk.answer(2 + number).results[0] for number in range(reads))
    assert [number % 3 == 0 for number in range(reads)] == [result is ZkError.NO_NODE for result in together]


def test_reads_keep_their_places_among_others(zk: Connected) -> None:
    zk.other.create(f"{zk.chroot}/n", b"1")
    get, none = ZkGet(path="/n"), ZkGet(path="/none")
    zk.coordination.ask(1, (get, none, ZkChildren(path="/"), none, ZkExists(path="/n"), get, get))
    kinds = [type(result) if not isinstance(result, ZkError) else result for result in zk.answer(1).results]
    assert [ZkNode, ZkError.NO_NODE, ZkNames, ZkError.NO_NODE, ZkNode, ZkNode, ZkNode] == kinds


def test_many_reads_are_lost_with_their_connection(zk: Connected) -> None:
    hold = zk.hold_answers()
    zk.coordination.ask(1, (ZkGet(path="/"), ZkGet(path="/none")))
    hold.wait(limits.CONDITION_WAIT_S_MAX)
    zk.fabric.drop(hold)
    assert (ZkError.LOST,) * 2 == zk.answer(1).results


def test_creates_say_what_hinders_them(zk: Connected) -> None:
    creates = (ZkCreate(path="/new"), ZkCreate(path="/new"), ZkCreate(path="/no/child"))
    zk.coordination.ask(1, creates)
    assert (ZkDone(), ZkError.NODE_EXISTS, ZkError.NO_NODE) == zk.answer(1).results


def test_ephemeral_belongs_to_the_session_and_goes_when_it_is_stopped(zk: Connected) -> None:
    zk.coordination.ask(1, (ZkCreate(path="/mine", ephemeral=True), ZkGet(path="/mine")))
    done, node = zk.answer(1).results
    assert ZkDone() == done
    assert isinstance(node, ZkNode)
    assert zk.session == node.owner
    zk.coordination.stop()
    assert owner_of(zk.address, f"{zk.chroot}/mine") is None


@pytest.mark.parametrize(
    ("part", "error"),
    [
        (ZkSet(path="/old", data=b"2", version=7), ZkError.BAD_VERSION),
        (ZkDelete(path="/old", version=7), ZkError.BAD_VERSION),
        (ZkCheck(path="/old", version=7), ZkError.BAD_VERSION),
        (ZkCreate(path="/old"), ZkError.NODE_EXISTS),
        (ZkSet(path="/no", data=b"", version=0), ZkError.NO_NODE),
        (ZkDelete(path="/no"), ZkError.NO_NODE),
        (ZkCheck(path="/no", version=0), ZkError.NO_NODE),
        (ZkCreate(path="/no/child"), ZkError.NO_NODE),
    ],
)
def test_multi_that_fails_in_its_middle_names_that_error_and_does_nothing(
    zk: Connected, part: ZkSet | ZkDelete | ZkCheck | ZkCreate, error: ZkError
) -> None:
    zk.other.create(f"{zk.chroot}/old", b"1")
    ops = (ZkCreate(path="/before"), part, ZkSet(path="/old", data=b"after", version=0))
    zk.coordination.ask(1, (ZkMulti(ops=ops),))
    zk.coordination.ask(2, (ZkExists(path="/before"), ZkGet(path="/old")))
    assert (error,) == zk.answer(1).results
    before, old = zk.answer(2).results
    assert ZkError.NO_NODE == before
    assert isinstance(old, ZkNode)
    assert (b"1", 0) == (old.data, old.version)


def test_multi_under_the_right_versions_does_all_of_it(zk: Connected) -> None:
    zk.other.create(f"{zk.chroot}/old", b"1")
    ops = (ZkCheck(path="/old", version=0), ZkSet(path="/old", data=b"2", version=0), ZkCreate(path="/new"))
    zk.coordination.ask(1, (ZkMulti(ops=ops), ZkChildren(path="/"), ZkGet(path="/old")))
    done, names, old = zk.answer(1).results
    assert (ZkDone(), ZkNames(names=("new", "old"))) == (done, names)
    assert isinstance(old, ZkNode)
    assert (b"2", 1) == (old.data, old.version)
