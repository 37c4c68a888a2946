"""ZooKeeper's tree: conditional writes, multis, ephemerals, one-shot watches."""

from __future__ import annotations

import pytest

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
from targets.simulator.zookeeper.tree import Tree

ME, OTHER = 1, 2


class Grove:
    """A tree, and the watches that fired."""

    def __init__(self) -> None:
        self.fired: list[tuple[int, str, str]] = []
        self.tree = Tree(lambda watcher, kind, path: self.fired.append((watcher, kind, path)))
        self.do(ZkCreate(path="/a", data=b"0"))

    def do(self, op: object, session: int = ME, watcher: int = ME) -> object:
        return self.tree.do(op, session, watcher)  # type: ignore[arg-type]

    def write(self, *parts: ZkCreate | ZkSet | ZkDelete | ZkCheck) -> object:
        return self.do(ZkMulti(ops=parts))


@pytest.fixture
def grove() -> Grove:
    return Grove()


def test_node_is_made_read_written_under_its_version_and_removed(grove: Grove) -> None:
    assert ZkNode(data=b"0", version=0, owner=0, czxid=1, mzxid=1) == grove.do(ZkGet(path="/a"))
    assert ZkDone() == grove.write(ZkSet(path="/a", data=b"1", version=0))
    assert ZkNode(data=b"1", version=1, owner=0, czxid=1, mzxid=2) == grove.do(ZkGet(path="/a"))
    assert ZkNode(data=b"", version=1, owner=0, czxid=1, mzxid=2) == grove.do(ZkExists(path="/a"))
    assert ZkError.BAD_VERSION == grove.write(ZkSet(path="/a", data=b"2", version=0))
    assert ZkError.BAD_VERSION == grove.write(ZkDelete(path="/a", version=0))
    assert ZkDone() == grove.write(ZkDelete(path="/a"))
    assert ZkError.NO_NODE == grove.do(ZkGet(path="/a"))
    assert isinstance(grove.do(ZkExists(path="/")), ZkNode)


@pytest.mark.parametrize(
    ("op", "error"),
    [
        (ZkCreate(path="/a"), ZkError.NODE_EXISTS),
        (ZkCreate(path="/b/c"), ZkError.NO_NODE),
        (ZkMulti(ops=(ZkSet(path="/b", data=b"", version=-1),)), ZkError.NO_NODE),
        (ZkMulti(ops=(ZkDelete(path="/b"),)), ZkError.NO_NODE),
        (ZkMulti(ops=(ZkCheck(path="/b", version=-1),)), ZkError.NO_NODE),
        (ZkExists(path="/b"), ZkError.NO_NODE),
        (ZkChildren(path="/b"), ZkError.NO_NODE),
    ],
)
def test_what_cannot_be_done_says_why(grove: Grove, op: object, error: ZkError) -> None:
    assert error == grove.do(op)


def test_node_with_children_is_not_removed_and_lists_them_in_order(grove: Grove) -> None:
    grove.write(ZkCreate(path="/a/y"), ZkCreate(path="/a/x"), ZkCreate(path="/a/x/deep"))
    assert ZkNames(names=("x", "y")) == grove.do(ZkChildren(path="/a"))
    assert ZkNames(names=()) == grove.do(ZkChildren(path="/a/y"))
    assert ZkError.REFUSED == grove.write(ZkDelete(path="/a"))


def test_multi_is_all_or_nothing_and_one_write(grove: Grove) -> None:
    before = dict(grove.tree.nodes)
    refused = grove.write(
        ZkCreate(path="/b"),
        ZkSet(path="/a", data=b"1", version=0),
        ZkDelete(path="/b"),
        ZkCheck(path="/a", version=7),
    )
    assert (ZkError.BAD_VERSION, before, []) == (refused, grove.tree.nodes, grove.fired)
    assert ZkDone() == grove.write(ZkCheck(path="/a", version=0), ZkCreate(path="/b"), ZkCreate(path="/b/c"))
    found = [grove.do(ZkGet(path=path)) for path in ("/b", "/b/c")]
    assert [3, 3] == [node.czxid for node in found if isinstance(node, ZkNode)]


def test_undone_multi_leaves_children_as_they_were(grove: Grove) -> None:
    grove.write(ZkCreate(path="/a/x"))
    grove.write(ZkDelete(path="/a/x"), ZkCreate(path="/a/y"), ZkCheck(path="/a", version=7))
    assert ZkNames(names=("x",)) == grove.do(ZkChildren(path="/a"))


def test_ephemerals_end_with_their_session_in_one_write(grove: Grove) -> None:
    grove.do(ZkCreate(path="/a/mine", ephemeral=True))
    grove.do(ZkCreate(path="/a/other", ephemeral=True), session=OTHER)
    before = grove.tree.zxid
    grove.do(ZkChildren(path="/a", watch=True), watcher=7)
    grove.tree.end_session(ME)
    assert (ZkNames(names=("other",)), before + 1) == (grove.do(ZkChildren(path="/a")), grove.tree.zxid)
    assert [(7, "children", "/a")] == grove.fired


def test_watch_fires_once_for_everyone_who_set_it_and_once_for_who_set_it_twice(grove: Grove) -> None:
    for watcher in (2, 1, 2):
        grove.do(ZkExists(path="/a", watch=True), watcher=watcher)
    grove.write(ZkSet(path="/a", data=b"1", version=-1))
    grove.write(ZkSet(path="/a", data=b"2", version=-1))
    assert [(2, "data", "/a"), (1, "data", "/a")] == grove.fired


def test_watch_on_what_is_not_there_fires_when_it_comes(grove: Grove) -> None:
    grove.do(ZkExists(path="/b", watch=True))
    grove.do(ZkChildren(path="/c", watch=True))
    grove.write(ZkCreate(path="/b"))
    grove.write(ZkCreate(path="/c"), ZkCreate(path="/c/d"))
    # The children of a missing node cannot be watched.
    assert [(ME, "data", "/b")] == grove.fired


def test_children_watch_fires_for_children_and_for_the_end_of_their_parent(grove: Grove) -> None:
    grove.do(ZkChildren(path="/a", watch=True))
    grove.write(ZkSet(path="/a", data=b"1", version=-1))
    assert [] == grove.fired
    grove.write(ZkDelete(path="/a"))
    assert [(ME, "children", "/a")] == grove.fired


def test_watches_go_with_who_set_them(grove: Grove) -> None:
    grove.do(ZkExists(path="/a", watch=True))
    grove.tree.forget(ME)
    grove.write(ZkDelete(path="/a"))
    assert [] == grove.fired


def test_every_change_is_heard_of_and_no_refused_one(grove: Grove) -> None:
    heard: list[str] = []
    grove.tree.changed.append(heard.append)
    grove.write(ZkCheck(path="/a", version=0), ZkCreate(path="/b"), ZkSet(path="/a", data=b"", version=0))
    grove.write(ZkCreate(path="/b"))
    assert ["/b", "/a"] == heard
