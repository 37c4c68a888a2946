"""What a cluster of NATS holds true, as its servers tell of their Raft groups, looked at again and again."""

from __future__ import annotations

from harness.metadata import Polled
from harness.target.metadata import Look, TargetRun
from targets.nats.asking import Servers
from targets.nats.seen import Seen


class NatsView(Polled):
    """The view of one cluster; see harness/target/metadata.py for every call."""

    def __init__(self, run: TargetRun) -> None:
        self._servers = Servers(run.nodes)
        self._seen = Seen(run.ids)
        super().__init__(run, self._looked)

    def _looked(self) -> Look | None:
        told = self._servers.all()
        return self._seen.look(told) if told else None

    def snapshot(self, topic: str, partition: int, name: str) -> int:
        """Return up to which index a node's snapshot of the stream's Raft log goes, as it says now; 0 for none."""
        self.refresh()
        return self._seen.snapshots.get((topic, partition), {}).get(name, 0)

    def close(self) -> None:
        """End the looks, then what they ask with."""
        super().close()
        self._servers.close()
