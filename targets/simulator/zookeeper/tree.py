"""
ZooKeeper's tree: nodes, conditional writes, multis, one-shot watches; no connections and no time.

Every write, even a refused one, has a number of its own (zxid); a multi has one for all its parts.
A watch fires once for each watcher that set it, in the order in which they were set.
Source:  Apache ZooKeeper's programmer's guide: "ZooKeeper Watches", "Consistency Guarantees".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from targets.simulator.zookeeper.ops import (
    ANY_VERSION,
    Check,
    Children,
    Create,
    Delete,
    Done,
    Error,
    Exists,
    Get,
    Multi,
    Names,
    Node,
    Op,
    Result,
    Set,
    Sync,
    Write,
)

DATA: Final = "data"
CHILDREN: Final = "children"


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
        self.nodes: dict[str, Node] = {}
        self.zxid = 0
        self.changed: list[Callable[[str], None]] = []
        self.wrote: list[Callable[[Sequence[Write], int], None]] = []
        self._children: dict[str, dict[str, None]] = {"": {}}
        self._watches: dict[tuple[str, str], dict[int, None]] = {}
        self._fire = fire

    # --- reading ---------------------------------------------------------------------------------------------
    def do(self, op: Op, session: int, watcher: int) -> Result:
        """Perform one operation for a session; a watch is set for the watcher."""
        match op:
            case Get(path=path):
                return self.nodes.get(path, Error.NO_NODE)
            case Exists(path=path, watch=watch):
                if watch:
                    self._watch(DATA, path, watcher)
                return self._stat(path)
            case Children(path=path, watch=watch):
                if path not in self.nodes:
                    return Error.NO_NODE
                if watch:
                    self._watch(CHILDREN, path, watcher)
                return Names(names=tuple(sorted(self._children.get(path, ()))))
            case Sync():
                return Done()  # there is one state, and all servers have it
            case Multi(parts=parts):
                return self.write(parts, session)
            case Create():
                return self.write((op,), session)

    def _stat(self, path: str) -> Result:
        if path == "/":
            return Node(data=b"", version=0, owner=0, czxid=0)
        node = self.nodes.get(path)
        if node is None:
            return Error.NO_NODE
        return Node(data=b"", version=node.version, owner=node.owner, czxid=node.czxid, mzxid=node.mzxid)

    def _watch(self, kind: str, path: str, watcher: int) -> None:
        self._watches.setdefault((kind, path), {})[watcher] = None

    def forget(self, watcher: int) -> None:
        """Drop all watches of a watcher whose connection is lost."""
        for waiting in self._watches.values():
            waiting.pop(watcher, None)

    # --- writing ---------------------------------------------------------------------------------------------
    def write(self, parts: Sequence[Write], session: int) -> Result:
        """Perform all of the writes or none."""
        self.zxid += 1
        undo: list[tuple[str, Node | None]] = []
        for part in parts:
            error = self._write(part, session, undo)
            if error is not None:
                for path, before in reversed(undo):
                    self._put(path, before)
                return error
        for witness in self.wrote:
            witness(parts, session)
        for part in parts:
            if not isinstance(part, Check):
                self._announce(part.path, parent=not isinstance(part, Set))
        return Done()

    def end_session(self, session: int) -> None:
        """Delete the ephemerals of a session, as one write."""
        gone = [path for path, node in self.nodes.items() if node.owner == session]
        self.zxid += 1
        for path in gone:
            self._put(path, None)
        for path in gone:
            self._announce(path, parent=True)

    def _write(self, part: Write, session: int, undo: list[tuple[str, Node | None]]) -> Error | None:
        # A caller's own word for it would be refused, or do nothing.
        assert isinstance(part, Write), f"{part!r}: expected a write of {Write}"
        path = part.path
        node = self.nodes.get(path)
        if isinstance(part, Create):
            if node is not None:
                return Error.NODE_EXISTS
            parent = path.rpartition("/")[0]
            if parent and parent not in self.nodes:
                return Error.NO_NODE
            owner = session if part.ephemeral else 0
            made = Node(data=part.data, version=0, owner=owner, czxid=self.zxid, mzxid=self.zxid)
            undo.append((path, None))
            self._put(path, made)
            return None
        if node is None:
            return Error.NO_NODE
        if part.version not in (ANY_VERSION, node.version):
            return Error.BAD_VERSION
        if isinstance(part, Set):
            undo.append((path, node))
            version = node.version + 1
            data, owner, czxid = part.data, node.owner, node.czxid
            self._put(path, Node(data=data, version=version, owner=owner, czxid=czxid, mzxid=self.zxid))
        elif isinstance(part, Delete):
            if self._children.get(path):
                return Error.REFUSED
            undo.append((path, node))
            self._put(path, None)
        return None

    def _put(self, path: str, node: Node | None) -> None:
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
