"""ZooKeeper's tree: conditional writes, multis, ephemerals, one-shot watches."""

from __future__ import annotations

import pytest

from targets.broker.core.zookeeper import ZkDelete
from targets.simulator.zookeeper import ops
from targets.simulator.zookeeper.tree import Tree

ME, OTHER = 1, 2


class Grove:
    """A tree, and the watches that fired."""

    def __init__(self) -> None:
        self.fired: list[tuple[int, str, str]] = []
        self.tree = Tree(lambda watcher, kind, path: self.fired.append((watcher, kind, path)))
        self.do(ops.Create(path="/a", data=b"0"))

    def do(self, op: object, session: int = ME, watcher: int = ME) -> object:
        return self.tree.do(op, session, watcher)  # type: ignore[arg-type]

    def write(self, *parts: ops.Create | ops.Set | ops.Delete | ops.Check) -> object:
        return self.do(ops.Multi(parts=parts))


@pytest.fixture
def grove() -> Grove:
    return Grove()


def test_node_is_made_read_written_under_its_version_and_removed(grove: Grove) -> None:
    assert ops.Node(data=b"0", version=0, owner=0, czxid=1, mzxid=1) == grove.do(ops.Get(path="/a"))
    assert ops.Done() == grove.write(ops.Set(path="/a", data=b"1", version=0))
    assert ops.Node(data=b"1", version=1, owner=0, czxid=1, mzxid=2) == grove.do(ops.Get(path="/a"))
    assert ops.Node(data=b"", version=1, owner=0, czxid=1, mzxid=2) == grove.do(ops.Exists(path="/a"))
    assert ops.Error.BAD_VERSION == grove.write(ops.Set(path="/a", data=b"2", version=0))
    assert ops.Error.BAD_VERSION == grove.write(ops.Delete(path="/a", version=0))
    assert ops.Done() == grove.write(ops.Delete(path="/a"))
    assert ops.Error.NO_NODE == grove.do(ops.Get(path="/a"))
    assert isinstance(grove.do(ops.Exists(path="/")), ops.Node)


@pytest.mark.parametrize(
    ("op", "error"),
    [
        (ops.Create(path="/a"), ops.Error.NODE_EXISTS),
        (ops.Create(path="/b/c"), ops.Error.NO_NODE),
        (ops.Multi(parts=(ops.Set(path="/b", data=b"", version=-1),)), ops.Error.NO_NODE),
        (ops.Multi(parts=(ops.Delete(path="/b"),)), ops.Error.NO_NODE),
        (ops.Multi(parts=(ops.Check(path="/b", version=-1),)), ops.Error.NO_NODE),
        (ops.Exists(path="/b"), ops.Error.NO_NODE),
        (ops.Children(path="/b"), ops.Error.NO_NODE),
    ],
)
def test_what_cannot_be_done_says_why(grove: Grove, op: object, error: ops.Error) -> None:
    assert error == grove.do(op)


def test_node_with_children_is_not_removed_and_lists_them_in_order(grove: Grove) -> None:
    grove.write(ops.Create(path="/a/y"), ops.Create(path="/a/x"), ops.Create(path="/a/x/deep"))
    assert ops.Names(names=("x", "y")) == grove.do(ops.Children(path="/a"))
    assert ops.Names(names=()) == grove.do(ops.Children(path="/a/y"))
    assert ops.Error.REFUSED == grove.write(ops.Delete(path="/a"))


def test_multi_is_all_or_nothing_and_one_write(grove: Grove) -> None:
    before = dict(grove.tree.nodes)
    refused = grove.write(
        ops.Create(path="/b"),
        ops.Set(path="/a", data=b"1", version=0),
        ops.Delete(path="/b"),
        ops.Check(path="/a", version=7),
    )
    assert (ops.Error.BAD_VERSION, before, []) == (refused, grove.tree.nodes, grove.fired)
    assert ops.Done() == grove.write(
        ops.Check(path="/a", version=0), ops.Create(path="/b"), ops.Create(path="/b/c")
    )
    found = [grove.do(ops.Get(path=path)) for path in ("/b", "/b/c")]
    assert [3, 3] == [node.czxid for node in found if isinstance(node, ops.Node)]


def test_undone_multi_leaves_children_as_they_were(grove: Grove) -> None:
    grove.write(ops.Create(path="/a/x"))
    grove.write(ops.Delete(path="/a/x"), ops.Create(path="/a/y"), ops.Check(path="/a", version=7))
    assert ops.Names(names=("x",)) == grove.do(ops.Children(path="/a"))


def test_ephemerals_end_with_their_session_in_one_write(grove: Grove) -> None:
    grove.do(ops.Create(path="/a/mine", ephemeral=True))
    grove.do(ops.Create(path="/a/other", ephemeral=True), session=OTHER)
    before = grove.tree.zxid
    grove.do(ops.Children(path="/a", watch=True), watcher=7)
    grove.tree.end_session(ME)
    assert (ops.Names(names=("other",)), before + 1) == (grove.do(ops.Children(path="/a")), grove.tree.zxid)
    assert [(7, "children", "/a")] == grove.fired


def test_watch_fires_once_for_everyone_who_set_it_and_once_for_who_set_it_twice(grove: Grove) -> None:
    for watcher in (2, 1, 2):
        grove.do(ops.Exists(path="/a", watch=True), watcher=watcher)
    grove.write(ops.Set(path="/a", data=b"1", version=-1))
    grove.write(ops.Set(path="/a", data=b"2", version=-1))
    assert [(2, "data", "/a"), (1, "data", "/a")] == grove.fired


def test_watch_on_what_is_not_there_fires_when_it_comes(grove: Grove) -> None:
    grove.do(ops.Exists(path="/b", watch=True))
    grove.do(ops.Children(path="/c", watch=True))
    grove.write(ops.Create(path="/b"))
    grove.write(ops.Create(path="/c"), ops.Create(path="/c/d"))
    # The children of a missing node cannot be watched.
    assert [(ME, "data", "/b")] == grove.fired


def test_children_watch_fires_for_children_and_for_the_end_of_their_parent(grove: Grove) -> None:
    grove.do(ops.Children(path="/a", watch=True))
    grove.write(ops.Set(path="/a", data=b"1", version=-1))
    assert [] == grove.fired
    grove.write(ops.Delete(path="/a"))
    assert [(ME, "children", "/a")] == grove.fired


def test_watches_go_with_who_set_them(grove: Grove) -> None:
    grove.do(ops.Exists(path="/a", watch=True))
    grove.tree.forget(ME)
    grove.write(ops.Delete(path="/a"))
    assert [] == grove.fired


def test_every_change_is_heard_of_and_no_refused_one(grove: Grove) -> None:
    heard: list[str] = []
    grove.tree.changed.append(heard.append)
    grove.write(ops.Check(path="/a", version=0), ops.Create(path="/b"), ops.Set(path="/a", data=b"", version=0))
    grove.write(ops.Create(path="/b"))
    assert ["/b", "/a"] == heard


def test_write_in_another_vocabulary_is_no_write(grove: Grove) -> None:
    with pytest.raises(AssertionError, match=r"^ZkDelete\(path='/a', version=-1\): expected a write"):
        grove.tree.write((ZkDelete(path="/a"),), ME)  # type: ignore[arg-type]
    assert "/a" in grove.tree.nodes
