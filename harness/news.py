"""
What was seen since the scenario last did something: for conditions about what happens, not about what stands.

Source:  the run's own history; ops that a condition looks for are kept, all others pass.
"""

from __future__ import annotations

from typing import Final

from harness.fabric.rules import link_matches
from harness.model import Op, OpType, Source

_KEPT: Final = {
    Source.FABRIC: frozenset({"epoch-question", "epoch-answer", "fetch", "fetched", "lost", "delayed", "doubled"}),
    Source.BROKER: frozenset({"truncate", "fenced", "printed"}),
}


class News:
    """A listener of a history."""

    def __init__(self) -> None:
        self._ops: list[Op] = []
        self._bitten: list[Op] = []

    def turn(self) -> None:
        """Forget: the scenario is about to do something."""
        self._ops.clear()

    def listen(self, op: Op) -> None:
        """Take note of an op as it is recorded, in whatever thread."""
        if op.type is OpType.INFO and op.f in _KEPT.get(op.source, ()):
            self._ops.append(op)
            if op.f in ("lost", "delayed", "doubled"):
                self._bitten.append(op)

    def on_link(self, f: str, src: str, dst: str) -> list[Op]:
        """What the fabric saw of that kind on a link."""
        return [op for op in list(self._ops) if op.f == f and op.value.get("link") == [src, dst]]

    def of_node(self, f: str, name: str) -> list[Op]:
        """What a node told of that kind, or printed."""
        return [op for op in list(self._ops) if op.process == name and f in (op.f, op.value.get("what"))]

    @property
    def bites(self) -> int:
        """How often a cut, a delay or a doubling was seen to bite so far."""
        return len(self._bitten)

    def bit(self, f: str, src: str, dst: str, *, api: str = "", since: int = 0) -> bool:
        """Whether one bit on a link after the first `since` bites; `api` where it is about one."""
        return any(
            op.f == f
            and link_matches((src, dst), tuple(op.value["link"]))
            and api in ("", "*", op.value.get("api"))
            for op in self._bitten[since:]
        )
