"""Nodes that printed, in their present process, that they give up: that it ends, or serves a partition no more."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.events import Printed


@dataclass(slots=True, kw_only=True)
class GivenUp:
    """
    A listener of a history.

    Attributes:
        exited: the nodes that printed that they exit, and were not started since.
        failed: those that printed that they serve a partition no more until they are started again.
    """

    exited: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def note(self, node: str, event: object) -> bool:
        """Note what a node printed; return True if it is a word of giving up."""
        match event:
            case Printed(what="exiting"):
                self.exited.add(node)
            case Printed(what="failed"):
                self.failed.add(node)
            case _:
                return False
        return True

    def starts(self, node: str) -> None:
        """Forget what an earlier process of a node printed."""
        self.exited.discard(node)
        self.failed.discard(node)
