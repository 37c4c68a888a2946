"""
What a client may ask of ZooKeeper, and what it is answered.

A system on ZooKeeper has words of its own for these; its nodes translate them, as they do for a real client.
Source:  Apache ZooKeeper's programmer's guide; ZooDefs.OpCode.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

ANY_VERSION: Final = -1
# In place of a session: who writes by hand.
OPERATOR: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Get:
    """Read a node."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exists:
    """Read a node's stat; with watch, fire once when it appears, changes or is deleted."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Children:
    """List a node's children; with watch, fire once when the list changes."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """Have the server catch up with its leader."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create a node; an ephemeral one goes with the session that created it."""

    path: str
    data: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    """Write a node if it still has this version (ANY_VERSION: whichever it has)."""

    path: str
    data: bytes
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete a node if it still has this version (ANY_VERSION: whichever it has)."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Within a Multi: fail all of it unless the node has this version."""

    path: str
    version: int


Write: TypeAlias = Create | Set | Delete | Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Multi:
    """All of these or none."""

    parts: tuple[Write, ...]


Op: TypeAlias = Get | Exists | Children | Sync | Create | Multi


class Error(StrEnum):
    """Why an operation failed. Only LOST, which a client alone says, leaves open whether a write happened."""

    NO_NODE = "no-node"
    NODE_EXISTS = "node-exists"
    BAD_VERSION = "bad-version"
    LOST = "lost"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """
    A node as it is read.

    Attributes:
        owner: the session of an ephemeral node, 0 for others.
        czxid: the number of the write that created it.
        mzxid: the number of the write that changed it last.
    """

    data: bytes
    version: int
    owner: int
    czxid: int
    mzxid: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The children of a node, sorted."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A write, or a sync, succeeded."""


Result: TypeAlias = Node | Names | Done | Error
