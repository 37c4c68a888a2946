"""What all events share: who may see one, what an op may be, and what the codec must know of a field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final

# The field that is the op's own `f`, and no key of its value.
OP_F: Final = "<f>"


class Source(StrEnum):
    """Who saw it. A checker declares which sources it needs."""

    CLIENT = "client"
    NEMESIS = "nemesis"
    FABRIC = "fabric"
    ZOOKEEPER = "zookeeper"
    BROKER = "broker"
    LOG = "log"
    RUNNER = "runner"
    SIMULATOR = "simulator"


class OpType(StrEnum):
    """`fail` only when it surely did not happen; what may or may not have happened is `info`."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Event:
    """
    What an op says. harness/events/__init__.py has the (source, f) of every class.

    Attributes:
        TYPES: the types that an op with this event may have.
        PROCESS: the op's process; "" where it is the name of a node.

    A field that has a default may be absent from an op, and is not written while it equals its default.
    """

    __slots__ = ()

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INFO,)
    PROCESS: ClassVar[str] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Event):
    """An event that this version does not know: of another broker, or of another version."""

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
        doc: what docs/history.md says of it beside its name and type.
        name: the key in JSON where it is not the field's name; OP_F where it is the op's own f.
        beside: the field of the same event whose presence decides whether this one is written, so that a null
            is kept.
    """
    return {"doc": doc, "name": name, "beside": beside}
