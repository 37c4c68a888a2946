"""The base of all events: the sources and types of ops, and the metadata of fields for the codec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final

# The name of a field that is the op's own `f`, not a key of its value.
OP_F: Final = "<f>"


class Source(StrEnum):
    """What recorded an op. A checker declares which sources it needs."""

    CLIENT = "client"
    NEMESIS = "nemesis"
    FABRIC = "fabric"
    METADATA = "metadata"
    BROKER = "broker"
    LOG = "log"
    RUNNER = "runner"
    SIMULATOR = "simulator"


class OpType(StrEnum):
    """The type of an op: `fail` only if it certainly did not happen, `info` if it may have happened."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Event:
    """
    The meaning of an op. harness/events/__init__.py has the (source, f) of every class.

    A field with a default may be absent from an op, and is not written if it equals its default.

    Attributes:
        TYPES: the types that an op with this event may have.
        PROCESS: the op's process; "" for the name of a node.
    """

    __slots__ = ()

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INFO,)
    PROCESS: ClassVar[str] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Event):
    """An event that this version does not know: from another broker or another version. Its run is unknown."""

    source: Source
    f: str
    value: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfPartition(Event):
    """An event about one partition."""

    topic: str
    partition: int


def key(doc: str = "", *, name: str = "", beside: str = "") -> Mapping[str, str]:
    """
    Return a field's metadata.

    Args:
        doc: the description in docs/history.md.
        name: the key in JSON if it is not the field's name; OP_F for the op's own f.
        beside: another field of the event; if that one is written, this one is written too, even if it is null.
    """
    return {"doc": doc, "name": name, "beside": beside}
