"""A coordination on a real ZooKeeper, with its own chroot, behind a link that a test can hold or cut."""

from __future__ import annotations

import itertools
import queue
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from kazoo.client import KazooClient

from harness import limits
from harness.fabric.fabric import Fabric
from harness.fabric.holds import Hold
from harness.launch import Address
from harness.target.wire import METADATA, Between, Word
from targets.broker.coordination.client import Coordination
from targets.broker.core.events import Event, ZkAnswered, ZkSession
from targets.broker_target.target import TARGET
from targets.zookeeper.sessions import close_session

NODE = "A"
# Longer than any test, so that a session ends only if the test ends it.
SESSION_TIMEOUT_MS = 60_000
_chroots = itertools.count()


@dataclass(slots=True, kw_only=True)
class Connected:
    """A coordination with its own chroot, the events that it posted, and the fabric of its link to ZooKeeper."""

    coordination: Coordination
    address: Address
    chroot: str
    session: int
    fabric: Fabric
    other: KazooClient
    events: queue.Queue[Event]
    seen: list[Event] = field(default_factory=list)

    def next(self) -> Event:
        """
        Wait for the next event and return it.

        Raises:
            queue.Empty: no event arrived in time.
        """
        self.seen.append(self.events.get(timeout=limits.CONDITION_WAIT_S_MAX))
        return self.seen[-1]

    def answer(self, tag: int) -> ZkAnswered:
        """Skip events up to the answer of that ask; return the answer."""
        while True:
            event = self.next()
            if isinstance(event, ZkAnswered) and event.tag == tag:
                return event

    def until_session(self) -> list[Event]:
        """Return all events up to the next new session."""
        events: list[Event] = []
        while not (events and isinstance(events[-1], ZkSession) and events[-1].session):
            events.append(self.next())
        return events

    def hold_answers(self) -> Hold:
        """Hold ZooKeeper's answers on the link."""
        return self.fabric.hold(Word.METADATA_REQUEST, NODE, METADATA, "answer")

    def expire(self) -> None:
        """End the session on the server's side."""
        close_session(self.address, self.session & 0xFFFFFFFFFFFFFFFF)


@pytest.fixture(scope="module")
def other(zookeeper: Address) -> Iterator[KazooClient]:
    """A second ZooKeeper client, without the link."""
    writer = KazooClient(str(zookeeper))
    writer.start(timeout=limits.SERVICE_START_S_MAX)
    yield writer
    writer.stop()
    writer.close()


@pytest.fixture
def zk(zookeeper: Address, other: KazooClient) -> Iterator[Connected]:
    """A coordination in its first session."""
    chroot = f"/coordination-{next(_chroots)}"
    other.ensure_path(chroot)
    with Fabric("127.0.0.1", lambda *_: None, target=TARGET.name, wire=TARGET.wire) as fabric:
        fabric.add_node(NODE, 1)
        link = fabric.add_link(Between.METADATA, zookeeper, src=NODE, dst=METADATA)
        events: queue.Queue[Event] = queue.Queue()
        coordination = Coordination(f"{link}{chroot}", SESSION_TIMEOUT_MS, events.put)
        coordination.start()
        first = events.get(timeout=limits.CONDITION_WAIT_S_MAX)
        assert isinstance(first, ZkSession)
        yield Connected(
            coordination=coordination,
            address=zookeeper,
            chroot=chroot,
            session=first.session,
            fabric=fabric,
            other=other,
            events=events,
        )
        fabric.heal_all()
        coordination.stop()
