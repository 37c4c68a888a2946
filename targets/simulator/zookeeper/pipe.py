"""A connection to ZooKeeper, as links see it: one word for all packets, and which of them answer a multi."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from harness.target.wire import Seen, Word
from targets.simulator.engine.pipe import DIRECTIONS, Frame, Pipe

# The tag of answers to multis; all others have none.
MULTI: Final = -2
_PACKET: Final = Word.METADATA_REQUEST.value


@dataclass(slots=True, eq=False)
class ZkFrame(Frame):
    """A packet."""

    @property
    def seen(self) -> Seen:
        """Return what rules see of it, built only when rules exist."""
        return Seen(link=self.link, api=_PACKET, direction=self.direction, multi=self.tag == MULTI)


@dataclass(slots=True, eq=False)
class ZkPipe(Pipe):
    """A client's connection to the server."""

    def frame(self, due_ns: int, direction: int, body: Any, request: Any, tag: int, *, end: bool) -> ZkFrame:
        """Return a packet that is sent on it now."""
        return ZkFrame(due_ns, self.link, DIRECTIONS[direction], body, request, tag, end=end)
