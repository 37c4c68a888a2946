"""The broker's sessions on a real ZooKeeper: expired, kept, and with an unreachable server."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from harness import limits
from harness.cleanup.process import until
from harness.target.wire import METADATA
from targets.broker.coordination import client
from targets.broker.core.events import ZkAnswered, ZkFired, ZkSession
from targets.broker.core.zookeeper import (
    ZkChildren,
    ZkCreate,
    ZkError,
    ZkExists,
    ZkGet,
    ZkMulti,
    ZkNames,
    ZkNode,
)
from targets.zookeeper.sessions import owner_of
from tests.broker.conftest import NODE, Connected

pytestmark = pytest.mark.slow


# --- sessions ------------------------------------------------------------------------------------------------
def test_expired_session_is_told_first_then_what_was_under_way_is_lost_then_the_new_one_begins(
    zk: Connected,
) -> None:
    hold = zk.hold_answers()
    zk.coordination.ask(1, (ZkCreate(path="/mine", ephemeral=True),))
    hold.wait(limits.CONDITION_WAIT_S_MAX)
    zk.expire()
    zk.fabric.drop(hold)
    lost, ended, began = [e for e in zk.until_session() if not isinstance(e, ZkFired)]
    # The connection is lost before the client can learn that the session has expired.
    assert ZkAnswered(tag=1, session=zk.session, results=(ZkError.LOST,)) == lost
    assert ZkSession(session=0) == ended
    assert isinstance(began, ZkSession)
    assert began.session not in (0, zk.session)
    zk.coordination.ask(2, (ZkExists(path="/mine"),))
    assert ZkAnswered(tag=2, session=began.session, results=(ZkError.NO_NODE,)) == zk.answer(2)


def test_what_was_asked_while_nobody_knew_of_the_expiry_is_lost_with_the_old_session(zk: Connected) -> None:
    cut = zk.fabric.cut(NODE, METADATA, close=True)
    zk.expire()
    zk.coordination.ask(1, (ZkGet(path="/"),))
    zk.fabric.heal(cut)
    answers = [e for e in zk.until_session() if isinstance(e, ZkAnswered)]
    assert [(1, (ZkError.LOST,))] == [(e.tag, e.results) for e in answers]
    assert answers[0].session in (0, zk.session)


def test_watch_fires_when_its_session_ends(zk: Connected) -> None:
    zk.coordination.ask(1, (ZkChildren(path="/", watch=True),))
    zk.answer(1)
    zk.expire()
    assert ZkFired(path="/") in zk.until_session()


def test_ask_that_kazoo_forgot_between_two_sessions_is_answered_when_the_new_one_begins(
    zk: Connected, monkeypatch: pytest.MonkeyPatch
) -> None:
    kazoo = zk.coordination._client
    forget: Callable[..., None] = lambda *_: None  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(kazoo, "_call", forget)
        zk.coordination.ask(1, (ZkGet(path="/"), ZkGet(path="/")))
    zk.expire()
    events = zk.until_session()
    assert ZkAnswered(tag=1, session=0, results=(ZkError.LOST, ZkError.LOST)) in events
    zk.coordination.ask(2, (ZkExists(path="/no"),))
    assert (ZkError.NO_NODE,) == zk.answer(2).results


# --- an unreachable server -----------------------------------------------------------------------------------
def test_lost_connection_ends_no_session_and_fires_watches_so_that_they_are_set_again(zk: Connected) -> None:
    zk.coordination.ask(1, (ZkChildren(path="/", watch=True),))
    zk.answer(1)
    cut = zk.fabric.cut(NODE, METADATA, close=True)
    assert ZkFired(path="/") == zk.next()
    zk.other.create(f"{zk.chroot}/meanwhile", b"")
    zk.coordination.ask(2, (ZkChildren(path="/", watch=True),))
    zk.fabric.heal(cut)
    assert ZkAnswered(tag=2, session=zk.session, results=(ZkNames(names=("meanwhile",)),)) == zk.next()
    zk.other.create(f"{zk.chroot}/later", b"")
    assert ZkFired(path="/") == zk.next()
    assert [] == [event for event in zk.seen if isinstance(event, ZkSession)]


def test_write_whose_answer_was_lost_is_lost_though_it_happened(zk: Connected) -> None:
    hold = zk.hold_answers()
    zk.coordination.ask(1, (ZkMulti(ops=(ZkCreate(path="/done"),)),))
    hold.wait(limits.CONDITION_WAIT_S_MAX)
    zk.fabric.drop(hold)
    assert ZkAnswered(tag=1, session=zk.session, results=(ZkError.LOST,)) == zk.next()
    zk.coordination.ask(2, (ZkExists(path="/done"),))
    assert isinstance(zk.answer(2).results[0], ZkNode)


def test_held_answers_come_late_and_in_order(zk: Connected) -> None:
    hold = zk.hold_answers()
    for tag in range(20):
        zk.coordination.ask(tag, (ZkGet(path="/"),))
    hold.wait(limits.CONDITION_WAIT_S_MAX)
    assert zk.events.empty()
    zk.fabric.release(hold)
    answers = [zk.next() for _ in range(20)]
    assert [(tag, zk.session) for tag in range(20)] == [(e.tag, e.session) for e in answers]  # type: ignore[union-attr]


def test_asking_never_blocks_however_much_is_asked_without_a_server(zk: Connected) -> None:
    """After some hundred requests kazoo itself blocks its caller until the connection is back."""
    cut = zk.fabric.cut(NODE, METADATA, close=True)
    assert until(lambda: not zk.coordination._client.connected, limits.CONDITION_WAIT_S_MAX)

    def ask() -> None:
        for tag in range(1000):
            zk.coordination.ask(tag, (ZkGet(path="/"),))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(limits.PROCESS_END_S_MAX)
    blocked = asking.is_alive()
    zk.fabric.heal(cut)
    assert not blocked
    answers = [zk.next() for _ in range(1000)]
    assert [(tag, ZkNode) for tag in range(1000)] == [
        (event.tag, type(event.results[0])) for event in answers if isinstance(event, ZkAnswered)
    ]


def test_stop_does_not_wait_for_a_server_that_says_nothing(zk: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "STOP_S_MAX", 0.05)
    zk.coordination.ask(1, (ZkCreate(path="/mine", ephemeral=True),))
    zk.answer(1)
    zk.fabric.cut(NODE, METADATA)
    zk.coordination.stop()
    ending = [thread for thread in threading.enumerate() if thread.name == "zookeeper-end"]
    assert owner_of(zk.address, f"{zk.chroot}/mine") is not None
    zk.fabric.heal_all()
    for thread in ending:
        thread.join(limits.CONDITION_WAIT_S_MAX)
    assert [True] == [not thread.is_alive() for thread in ending]
