"""What is done to nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from harness.events.base import OP_F, Event, OpType, key


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection(Event):
    """
    A fault, or what undoes one, that is tried on nodes.

    `f` is its name, one of nemeses.md; `heal-FAULT` undoes a fault that no other fault undoes. Checkers, counts
    and timelines read it by its effect, whose words are in harness/effect.py.
    """

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INVOKE, OpType.OK, OpType.FAIL, OpType.INFO)
    PROCESS: ClassVar[str] = "nemesis"

    name: str = field(metadata=key(name=OP_F))
    nodes: tuple[str, ...] = field(metadata=key("names of nodes"))
    effect: str = field(default="", metadata=key("what it does to them; absent in older histories"))
    band: str = field(default="", metadata=key("how timelines shade it"))
    heals: tuple[str, ...] | None = field(default=None, metadata=key("the effects that it undoes, if any"))
    probe: str | None = field(default=None, metadata=key("on ok: what was seen that proves that it bit"))
    error: str = field(default="", metadata=key("on fail; on info, where a random schedule goes on"))
