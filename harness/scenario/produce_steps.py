"""
What a scenario produces: awaited, refused, or under way while the scenario goes on.

harness/scenario/steps.py has the step.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from harness.cluster.client import Client, Underway
from harness.cluster.cluster import PARTITION, TOPIC, Cluster
from harness.model import PreconditionError, UsageError
from harness.scenario.offsets import RecordOffsets
from harness.scenario.steps import MEANWHILE, REFUSED, Produce


class Produces:
    """The produces of one run."""

    def __init__(self, cluster: Cluster, client: Client, record_offsets: RecordOffsets) -> None:
        self._cluster = cluster
        self._client = client
        self._record_offsets = record_offsets
        self._underway: dict[str, Underway] = {}

    def act(self, step: Produce) -> None:
        """Take a produce step."""
        name, options = step.group, self._options(step)
        refused = step.outcome == REFUSED
        values = self._record_offsets.values(name)
        if step.outcome == MEANWHILE:
            leader = self._cluster.leader()
            self._record_offsets.expected(name, max(0, self._cluster.log_end(leader)) if leader else 0)
            self._underway[name] = self._client.begin_produce(TOPIC, PARTITION, name, values, **options)
            return
        try:
            offsets = self._client.produce(TOPIC, PARTITION, name, values, **options)
        except PreconditionError:
            if refused:
                return
            raise
        if refused:
            raise PreconditionError(f"{step}: acknowledged at {offsets}; expected no acknowledgement")
        self._record_offsets.acknowledged(name, offsets)

    def _options(self, step: Produce) -> dict[str, Any]:
        """Return what a client is told beside the records; what the step leaves open is left to the client."""
        found: dict[str, Any] = {"acks": step.acks}
        if step.singly:
            found["singly"] = True
        if step.codec is not None:
            found["codec"] = step.codec
        if step.via is not None:
            found["via"] = self._cluster.address_of(step.via)
        if step.within_ms is not None:
            found["timeout_s"] = float(step.within_ms) / 1000
        return found

    def acked(self, name: str) -> bool:
        """Whether every record of a group that is under way was acknowledged; raises once one surely is not."""
        if name not in self._underway:
            raise UsageError(f"acked {name}: not produced meanwhile; expected one of {sorted(self._underway)}")
        if not self._underway[name].done:
            return False
        self._record_offsets.acknowledged(name, self._underway[name].result())
        return True

    def end(self) -> None:
        """Wait until whatever is under way has its outcome, which the history then holds."""
        with suppress(PreconditionError):  # what was not acknowledged is in the history too
            self._cluster.await_(self._ended, lambda: f"the outcome of {', '.join(self._underway)}")
        self._underway.clear()

    def _ended(self) -> bool:
        return all(underway.done for underway in self._underway.values())
