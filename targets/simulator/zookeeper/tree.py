"""
ZooKeeper's tree: nodes, conditional writes, multis, one-shot watches; no connections and no time.

Every write, even a refused one, has a number of its own (zxid); a multi has one for all its parts.
A watch fires once for each watcher that set it, in the order in which they were set.
Source:  Apache ZooKeeper's programmer's guide: "ZooKeeper Watches", "Consistency Guarantees".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

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
    ZkOp,
    ZkResult,
    ZkSet,
    ZkSync,
)

ANY_VERSION: Final = -1
DATA: Final = "data"
CHILDREN: Final = "children"

ZkWrite: TypeAlias = ZkCreate | ZkSet | ZkDelete | ZkCheck


class Tree:
    """
    Nodes by path.

    Attributes:
        watches: (kind, path) -> the watchers' numbers.
        fire: called with (watcher, kind, path) for each watch that fires.
        changed: called with the path of every node that was created, changed or deleted.
        wrote: called with every write that was performed and its session, before anyone else learns of it.
    """

    def __init__(self, fire: Callable[[int, str, str], None]) -> None:
        self.nodes: dict[str, ZkNode] = {}
        self.zxid = 0
        self.changed: list[Callable[[str], None]] = []
        self.wrote: list[Callable[[Sequence[ZkWrite], int], None]] = []
        self._children: dict[str, dict[str, None]] = {"": {}}
        self._watches: dict[tuple[str, str], dict[int, None]] = {}
        self._fire = fire

    # --- reading ---------------------------------------------------------------------------------------------
    def do(self, op: ZkOp, session: int, watcher: int) -> ZkResult:
        """Perform one operation for a session; a watch is set for the watcher."""
        match op:
            case ZkGet(path=path):
                return self.nodes.get(path, ZkError.NO_NODE)
            case ZkExists(path=path, watch=watch):
                if watch:
                    self._watch(DATA, path, watcher)
                return self._stat(path)
            case ZkChildren(path=path, watch=watch):
                if path not in self.nodes:
                    return ZkError.NO_NODE
                if watch:
                    self._watch(CHILDREN, path, watcher)
                return ZkNames(names=tuple(sorted(self._children.get(path, ()))))
            case ZkSync():
                return ZkDone()  # there is one state, and all servers have it
            case ZkMulti(ops=parts):
                return self.write(parts, session)
            case ZkCreate():
                return self.write((op,), session)

    def _stat(self, path: str) -> ZkResult:
        if path == "/":
            return ZkNode(data=b"", version=0, owner=0, czxid=0)
        node = self.nodes.get(path)
        if node is None:
            return ZkError.NO_NODE
        return ZkNode(data=b"", version=node.version, owner=node.owner, czxid=node.czxid, mzxid=node.mzxid)

    def _watch(self, kind: str, path: str, watcher: int) -> None:
        self._watches.setdefault((kind, path), {})[watcher] = None

    def forget(self, watcher: int) -> None:
        """Drop all watches of a watcher whose connection is lost."""
        for waiting in self._watches.values():
            waiting.pop(watcher, None)

    # --- writing ---------------------------------------------------------------------------------------------
    def write(self, parts: Sequence[ZkWrite], session: int) -> ZkResult:
        """Perform all of the writes or none."""
        self.zxid += 1
        undo: list[tuple[str, ZkNode | None]] = []
        for part in parts:
            error = self._write(part, session, undo)
            if error is not None:
                for path, before in reversed(undo):
                    self._put(path, before)
                return error
        for witness in self.wrote:
            witness(parts, session)
        for part in parts:
            if not isinstance(part, ZkCheck):
                self._announce(part.path, parent=not isinstance(part, ZkSet))
        return ZkDone()

    def end_session(self, session: int) -> None:
        """Delete the ephemerals of a session, as one write."""
        gone = [path for path, node in self.nodes.items() if node.owner == session]
        self.zxid += 1
        for path in gone:
            self._put(path, None)
        for path in gone:
            self._announce(path, parent=True)

    def _write(self, part: ZkWrite, session: int, undo: list[tuple[str, ZkNode | None]]) -> ZkError | None:
        path = part.path
        node = self.nodes.get(path)
        if isinstance(part, ZkCreate):
            if node is not None:
                return ZkError.NODE_EXISTS
            parent = path.rpartition("/")[0]
            if parent and parent not in self.nodes:
                return ZkError.NO_NODE
            owner = session if part.ephemeral else 0
            made = ZkNode(data=part.data, version=0, owner=owner, czxid=self.zxid, mzxid=self.zxid)
            undo.append((path, None))
            self._put(path, made)
            return None
        if node is None:
            return ZkError.NO_NODE
        if part.version not in (ANY_VERSION, node.version):
            return ZkError.BAD_VERSION
        if isinstance(part, ZkSet):
            undo.append((path, node))
            version = node.version + 1
            data, owner, czxid = part.data, node.owner, node.czxid
            self._put(path, ZkNode(data=data, version=version, owner=owner, czxid=czxid, mzxid=self.zxid))
        elif isinstance(part, ZkDelete):
            if self._children.get(path):
                return ZkError.REFUSED
            undo.append((path, node))
            self._put(path, None)
        return None

    def _put(self, path: str, node: ZkNode | None) -> None:
        parent, _, name = path.rpartition("/")
        if node is None:
            self.nodes.pop(path, None)
            self._children[parent].pop(name, None)
        else:
            self.nodes[path] = node
            self._children.setdefault(parent, {})[name] = None

    def _announce(self, path: str, *, parent: bool) -> None:
        self._fire_all(DATA, path)
        if parent:
            if path not in self.nodes:
                self._fire_all(CHILDREN, path)
            self._fire_all(CHILDREN, path.rpartition("/")[0] or "/")
        for listener in self.changed:
            listener(path)

    def _fire_all(self, kind: str, path: str) -> None:
        for watcher in self._watches.pop((kind, path), ()):
            self._fire(watcher, kind, path)
