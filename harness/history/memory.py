"""A history in memory, for runs of which only the verdict is kept."""

from __future__ import annotations

from harness.history.file import History
from harness.model import Op


class MemoryHistory(History):
    """
    Keeps ops in a list.

    Attributes:
        ops: all ops, in index order.
        path: where the history would be; nothing is written there.
    """

    def _open(self) -> None:
        self.ops: list[Op] = []

    def _write(self, op: Op) -> None:
        self.ops.append(op)

    def _shut(self) -> None:
        pass
