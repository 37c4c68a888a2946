"""Faults that are injected into nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from harness.events.base import OP_F, Event, OpType, key


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection(Event):
    """
    A fault is injected into nodes, or undone.

    `f` is its name, one of nemeses.md; `heal-FAULT` undoes a fault that no other fault undoes. Checkers, counts
    and timelines use its effect (harness/effect.py), never its name.
    """

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INVOKE, OpType.OK, OpType.FAIL, OpType.INFO)
    PROCESS: ClassVar[str] = "nemesis"

    name: str = field(metadata=key(name=OP_F))
    nodes: tuple[str, ...] = field(metadata=key("names of nodes"))
    effect: str = field(default="", metadata=key("its effect on the nodes; absent in older histories"))
    band: str = field(default="", metadata=key("how timelines shade it"))
    heals: tuple[str, ...] | None = field(default=None, metadata=key("the effects that it undoes, if any"))
    probe: str | None = field(default=None, metadata=key("on ok: the evidence that it bit"))
    error: str = field(default="", metadata=key("on fail; on info in a random schedule, which continues"))
